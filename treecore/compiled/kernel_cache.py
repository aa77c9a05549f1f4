"""Where compiled kernels are kept, and how processes that want the same one share the work.

Numba keys its cache by each file's own time stamp and so misses a change in a callee that lives in
another file. Here every module has a folder named after a stamp of all sources that its functions
may call (:mod:`~weald.treecore.compiled.source_stamps`), and nothing depends on a path or a time:
an installation and a checkout of the same sources share what they compile. Kernels that came with
the package (:mod:`~weald.treecore.compiled.packaged`) are looked at first, and only read.

A process that finds its kernel in the cache takes no lock. One that does not takes the lock of that
very function and types, looks again, and compiles. It waits for another process a limited time
only: whoever holds the lock may have been stopped.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from .packaged import packaged_kernels, packaged_level, settings_of
from .source_stamps import EVERYTHING, ROOMS, stamps, state_of_sources

__all__ = ["KernelCache", "cache_directory", "compilation_under_way"]


def cache_directory() -> Path:
    """Folder of the compiled kernels.

    ``WEALD_KERNEL_CACHE`` when that is set, else ``weald/kernels`` in the user's cache folder
    (``XDG_CACHE_HOME``, by default ``~/.cache``).
    """
    configured = os.environ.get("WEALD_KERNEL_CACHE")
    if configured:
        return Path(configured)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "weald" / "kernels"


os.environ["NUMBA_CACHE_DIR"] = str(cache_directory())
_level = packaged_level()
if _level is not None:
    os.environ.update(settings_of(_level))

import numba  # noqa: E402 - the cache folder must be named before numba reads it
from numba.core.caching import (  # noqa: E402 - as above
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
from numba.core.runtime.nrt import rtsys  # noqa: E402 - as above

from .code_library import is_lean  # noqa: E402 - as above

# Somebody else's compilation of one function is waited for so long; then it is compiled here, too.
_LONGEST_WAIT_SECONDS = 30.0
_LOOK_AGAIN_SECONDS = 0.05


@cache
def _stamps() -> dict[str, str]:
    """Stamps of the sources, which are found once for each state of them all."""
    kept = f"stamps-{state_of_sources()}.json"
    packaged = packaged_kernels()
    for folder in (cache_directory(),) if packaged is None else (packaged, cache_directory()):
        with contextlib.suppress(OSError, ValueError):
            read: dict[str, str] = json.loads((folder / kept).read_text())
            return read
    found = stamps()
    with contextlib.suppress(OSError):  # a folder that is only read: found again by the next
        cache_directory().mkdir(parents=True, exist_ok=True)
        unfinished = cache_directory() / f"{kept}.{os.getpid()}"
        unfinished.write_text(json.dumps(found))
        unfinished.replace(cache_directory() / kept)
    return found


def _stamp_of(source: Path) -> str:
    """Stamp of the functions in a file; a test's or a benchmark's may call everything."""
    own = _stamps().get(source.relative_to(ROOMS).as_posix())
    if own is not None:
        return own
    text = source.read_bytes() + _stamps()[EVERYTHING].encode()
    return hashlib.sha256(text).hexdigest()[:16]


class SharedCacheLocator(UserProvidedCacheLocator):
    """Where numba keeps a function of these rooms, wherever they are installed."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        super().__init__(py_func, py_file)
        source = Path(py_file).resolve()
        self._stamp = _stamp_of(source)
        # Only functions made inside others can have the same name in one file.
        self._disambiguator = str(self._lineno) if "<locals>" in py_func.__qualname__ else "0"
        place = source.relative_to(ROOMS).with_suffix("")
        self._cache_path = str(cache_directory() / place / self._stamp)
        packaged = packaged_kernels()
        self.packaged_path = None if packaged is None else str(packaged / place / self._stamp)

    def get_source_stamp(self) -> str:
        """Return a stamp of all sources that the function may call."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name in one file apart."""
        return self._disambiguator

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Any:
        """Return a locator, or nothing for a function of somebody else."""
        here = Path(py_file).resolve().is_relative_to(ROOMS)
        return super().from_function(py_func, py_file) if here else None


numba.config.CACHE_DIR = str(cache_directory())  # type: ignore[attr-defined]  # set at run time
if _level is not None:
    # Somebody may have imported numba before.
    numba.config.CPU_NAME = os.environ["NUMBA_CPU_NAME"]  # type: ignore[attr-defined]  # as above
    numba.config.CPU_FEATURES = os.environ["NUMBA_CPU_FEATURES"]  # type: ignore[attr-defined]  # as above


@cache
def _lock_file() -> int | None:
    try:
        cache_directory().mkdir(parents=True, exist_ok=True)
        return os.open(cache_directory() / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None  # a folder that is only read: there is nothing to share


# Places in the lock file that this process holds; more than none while it compiles.
_held: list[int] = []


def compilation_under_way() -> bool:
    """Whether this process is compiling a kernel, or waiting for another that does."""
    return bool(_held)


def _acquire(place: int, *, waits: bool = True) -> None:
    """Take one byte of the lock file, whose owner ends with its process; or give up waiting."""
    file = _lock_file()
    _held.append(place)
    if file is None:
        return
    give_up = time.monotonic() + (_LONGEST_WAIT_SECONDS if waits else 0.0)
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                return
            time.sleep(_LOOK_AGAIN_SECONDS)
        except OSError:
            return  # a file system without locks: compiled twice at worst
        else:
            return


def _release(place: int) -> None:
    file = _lock_file()
    _held.remove(place)
    if file is not None and place not in _held:
        with contextlib.suppress(OSError):
            fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


class _SharedFiles(CompileResultCacheImpl):
    """Files of a function, in the first of these places that will have it.

    Numba has a setting for the places, and forgets it: a compiler that finds the environment
    changed since numba was imported, as by this module where somebody else imported numba first,
    reads all settings from there again.
    """

    # The last two are what numba falls back to where the folder cannot be written.
    _locator_classes: ClassVar[list[type[Any]]] = [  # type: ignore[misc]  # numba has it so, too
        SharedCacheLocator,
        UserProvidedCacheLocator,
        InTreeCacheLocator,
        UserWideCacheLocator,
    ]


class KernelCache(FunctionCache):
    """One function's compiled forms on disk, shared by processes."""

    _impl_class = _SharedFiles

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        self._function = f"{py_func.__module__}.{py_func.__qualname__}"
        self._locked: dict[Any, int] = {}
        locator = self._impl.locator
        packaged = getattr(locator, "packaged_path", None)
        self._packaged = packaged and IndexDataCacheFile(
            packaged, self._impl.filename_base, locator.get_source_stamp()
        )

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        if self._packaged and self._enabled:
            data = self._packaged.load(self._index_key(sig, target_context.codegen()))
            # What is compiled here needs more of what it calls than a package brings.
            if data is not None and not (_held and is_lean(data[0])):
                return self._impl.rebuild(target_context, data)
        return super()._load_overload(sig, target_context)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the compiled form; where there is none, return nothing and hold its lock.

        Numba would first load everything that it can compile with, a fifth of a second. Machine
        code needs the runtime alone.
        """
        rtsys.initialize(target_context)
        found = self._load_overload(sig, target_context)
        if found is not None or sig in self._locked:
            return found
        place = _place_of(f"{self._function}{sig}")
        # What a kernel calls is compiled while its own byte is held: two processes that wait for
        # what is called would each want the other's.
        _acquire(place, waits=not _held)
        self._locked[sig] = place
        found = self._load_overload(sig, target_context)
        if found is not None:
            self.release(sig)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the compiled form, and let others have it."""
        # Other types of the same function go into the same index.
        index = _place_of(self._function)
        _acquire(index)
        try:
            super().save_overload(sig, data)
        finally:
            _release(index)
            self.release(sig)

    def release(self, sig: Any) -> None:
        """Give the lock of a compiled form back, whatever became of it."""
        place = self._locked.pop(sig, None)
        if place is not None:
            _release(place)


def _place_of(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")
