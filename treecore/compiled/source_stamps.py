"""What compiled code depends on: a stamp of every source that a module's functions may call.

A compiled function holds the machine code of what it calls: functions of the modules that its own
imports, directly or not, and implementations of generic functions, which any module may register.
So a module's stamp covers its imports and every module that implements what another one declares.
Docstrings and comments do not count: machine code does not know them.

Finding the stamps takes a tenth of a second, so that they are kept by :func:`state_of_sources`.
"""

import hashlib
import os
import re
from functools import cache
from pathlib import Path

__all__ = ["EVERYTHING", "ROOMS", "stamps", "state_of_sources", "without_prose"]

ROOMS = Path(__file__).resolve().parents[2]

# Under what name the stamp of all sources stands among those of files.
EVERYTHING = ""

_COMPILING_ROOMS = ("treecore", "mcmc")
_IMPORT = re.compile(r"^ *from (\.?[\w.]+|\.+) import (\([^)]*\)|[^\n(]+)", re.MULTILINE)
_IMPLEMENTS = re.compile(r"\bimplements\((\w+)")
_DECLARES = re.compile(r"^@generic(?:_inner)?\ndef (\w+)", re.MULTILINE)
_REGISTERS = re.compile(r"\bregister_\w+\(")
_DOCSTRING = re.compile(r'^ *"""(?:[^"\\]|\\.|"(?!""))*"""', re.MULTILINE)
# A hash in front of which there is no quotation mark cannot be inside a string.
_COMMENT = re.compile(r"""^([^"'#\n]*?) *#[^\n]*$""", re.MULTILINE)


def without_prose(source: str) -> str:
    """The source without docstrings, most comments and blank lines."""
    bare = _COMMENT.sub(r"\1", _DOCSTRING.sub("", source))
    return "\n".join(line for line in bare.splitlines() if line.strip())


@cache
def _read() -> dict[str, bytes]:
    """Every source of the rooms that compile, by its path in the package, in order."""
    found = {}
    for room in _COMPILING_ROOMS:
        for folder, _, names in os.walk(ROOMS / room):
            for name in names:
                if name.endswith(".py"):
                    path = Path(folder, name)
                    found[path.relative_to(ROOMS).as_posix()] = path.read_bytes()
    return dict(sorted(found.items()))


@cache
def state_of_sources() -> str:
    """What changes whenever a source of these rooms does, be it in its prose only."""
    digest = hashlib.sha256()
    for name, text in _read().items():
        digest.update(f"{name}\0{len(text)}\0".encode())
        digest.update(text)
    return digest.hexdigest()[:16]


@cache
def _sources() -> dict[str, str]:
    """Every source of the rooms that compile, without its prose, by its path in the package."""
    return {name: without_prose(text.decode()) for name, text in _read().items()}


def _files_of(module: str) -> list[str]:
    place = module.replace(".", "/")
    found = (f"{place}.py", f"{place}/__init__.py")
    return [each for each in found if each in _sources()]


@cache
def _imports(file: str) -> frozenset[str]:
    """Files of these rooms that a file imports."""
    folder = file.rpartition("/")[0].replace("/", ".")
    found: set[str] = set()
    for module, names in _IMPORT.findall(_sources()[file]):
        if module.startswith("."):
            base = folder + module.rstrip(".") if module != "." else folder
        elif module.startswith("weald."):
            base = module.removeprefix("weald.")
        else:
            continue
        found.update(_files_of(base))
        for name in names.strip("()\n ").split(","):
            found.update(_files_of(f"{base}.{name.split(' as ')[0].strip()}"))
    return frozenset(found)


def _reached(files: set[str]) -> set[str]:
    """The files, what they import, what that imports, and so on."""
    found, pending = set(files), list(files)
    while pending:
        new = _imports(pending.pop()) - found
        found |= new
        pending += new
    return found


def _implements_others(text: str) -> bool:
    """Whether a source implements a generic function that another one declares.

    Who calls one that is declared here imports this file.
    """
    if _REGISTERS.search(text):
        return True
    return not set(_IMPLEMENTS.findall(text)) <= set(_DECLARES.findall(text))


@cache
def _implementations() -> frozenset[str]:
    """The files that implement generic functions of others, with what they import."""
    found = {file for file, text in _sources().items() if _implements_others(text)}
    return frozenset(_reached(found))


@cache
def _digest(file: str) -> bytes:
    return hashlib.sha256(f"{file}\0{_sources()[file]}".encode()).digest()


def _stamp(files: frozenset[str]) -> str:
    digest = hashlib.sha256()
    for each in sorted(files):
        digest.update(_digest(each))
    return digest.hexdigest()[:16]


def stamps() -> dict[str, str]:
    """Stamp of the functions in each source, and of all sources under :data:`EVERYTHING`."""
    everything = frozenset(_sources())
    found = {name: _stamp(_implementations() | _reached({name})) for name in everything}
    return found | {EVERYTHING: _stamp(everything)}
