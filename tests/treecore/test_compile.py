"""The cache of compiled kernels, as several processes use it at the same time."""

import ast
import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.servers.kernels import SETTINGS
from weald.treecore.compiled import packaged as packages
from weald.treecore.compiled import source_stamps
from weald.treecore.compiled.packaged import LEVELS, MANIFEST, made_by, settings_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

# Says where it comes from when it is ready, waits for a line, and tells how often it compiled the
# function itself.
SCRIPT = """
import sys
import numpy as np
from numba.core import event
from weald.mcmc.estimate.consensus import _membership, membership
from weald.treecore.compiled import compile, kernel_cache

class Compilations(event.Listener):
    found = 0
    def on_start(self, compilation):
        self.found += compilation.data["dispatcher"] is _membership
    def on_end(self, compilation):
        pass

kernel_cache._LONGEST_WAIT_SECONDS = float(sys.argv[1])
seen = Compilations()
event.register("numba:compile", seen)
print(compile.__file__, flush=True)
sys.stdin.readline()
membership(np.zeros((3, 4), dtype=np.int64), np.zeros(4, dtype=np.int64))
print(seen.found)
"""


USE = """
import numpy as np
from weald.mcmc.estimate.consensus import membership

membership(np.zeros((3, 4), dtype=np.int64), np.zeros(4, dtype=np.int64))
"""

# Compiles a caller of the function, which is called from Python before where that is asked for.
OTHER_CALLER = """
import sys
import numpy as np
from weald.mcmc.estimate.consensus import _membership, membership
from weald.treecore.compiled.compile import compiled

@compiled
def caller(draws, labels, shares):
    _membership(draws, labels, labels, shares, shares)

draws, labels = np.zeros((3, 4), dtype=np.int64), np.zeros(4, dtype=np.int64)
if sys.argv[1]:
    membership(draws, labels)
caller(draws, labels, np.zeros(4))
"""


def copy_of_the_sources(folder: Path) -> dict[str, str]:
    """Environment of a process that imports the rooms from another place."""
    shutil.copytree(ROOT / "weald", folder / "weald", symlinks=False)
    for source in folder.rglob("*.py"):
        os.utime(source, (0, 0))
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize("installed_twice", [False, True])
def test_a_function_is_compiled_by_one_process_of_several(
    tmp_path: Path, installed_twice: bool
) -> None:
    environment = {**os.environ, "WEALD_KERNEL_CACHE": str(tmp_path / "kernels")}
    elsewhere = copy_of_the_sources(tmp_path / "copy") if installed_twice else {}
    command = [sys.executable, "-c", SCRIPT, "600"]
    both = [
        subprocess.Popen(
            command,
            env=environment | place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        for place in ({}, elsewhere)
    ]
    places = set()
    for process in both:
        assert process.stdout is not None
        places.add(process.stdout.readline())
    assert len(places) == 1 + installed_twice
    for process in both:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate(timeout=600)[0] for process in both]
    assert sorted(int(each) for each in said) == [0, 1]


def choosing_by_itself() -> dict[str, str]:
    """Environment of a process that is not told which processor to compile for."""
    return {name: value for name, value in os.environ.items() if name not in SETTINGS}


def run_script(environment: dict[str, str], patience: float = 600.0) -> tuple[int, str]:
    """How often a process of its own compiled the function, and what it said on standard error."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, str(patience)],
        env=choosing_by_itself() | environment,
        input="\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return int(done.stdout.split()[-1]), done.stderr


def compilations(cache: Path, patience: float) -> int:
    """How often a process of its own compiled the function."""
    return run_script({"WEALD_KERNEL_CACHE": str(cache)}, patience)[0]


def test_a_stopped_compiler_keeps_nobody_from_what_is_there(tmp_path: Path) -> None:
    """Its locks are of its own functions, are not asked for in vain, and are waited for briefly."""
    cache = tmp_path / "kernels"
    cache.mkdir()
    with (cache / "lock").open("w") as lock:
        # As a process that was stopped while it compiled everything.
        fcntl.lockf(lock, fcntl.LOCK_EX)
        assert compilations(cache, 0.1) == 1
        # Whoever finds a kernel in the cache takes no lock at all.
        assert compilations(cache, 600.0) == 0


# Compiles a function that calls a cached one; tells what it loaded before, and what it computed.
CALLER = """
import sys
import numpy as np
from numba.core import event
from weald.mcmc.estimate.consensus import _membership
from weald.treecore.compiled.compile import compiled

class Compilations(event.Listener):
    found = []
    def on_start(self, compilation):
        function = compilation.data["dispatcher"]
        if type(function) is type(_membership):
            self.found.append(function.py_func.__name__)
    def on_end(self, compilation):
        pass

event.register("numba:compile", Compilations())
draws, labels, ones = np.eye(3, 4, dtype=np.int64), np.array([0, 0, 1, 1]), np.ones(4, np.int64)

@compiled
def caller(draws, labels, ones, probability, stability):
    _membership(draws, labels, ones, probability, stability)
    return probability.sum()

_membership(draws, labels, ones, np.zeros(4), stability := np.zeros(4))
print("numba.typed.typeddict" in sys.modules, *Compilations.found)
print(caller(draws, labels, ones, probability := np.zeros(4), again := np.zeros(4)))
print(*Compilations.found, (again == stability).all(), probability.sum())
"""


def test_a_cached_kernel_loads_without_the_compiler_and_can_be_called_by_a_new_one(
    tmp_path: Path,
) -> None:
    script = tmp_path / "caller.py"
    script.write_text(CALLER)
    environment = os.environ | {"WEALD_KERNEL_CACHE": str(tmp_path / "kernels")}

    def lines() -> list[str]:
        command: list[str | Path] = [sys.executable, script]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    first = lines()
    assert first[0] == "True _membership"
    # The caller alone is forgotten.
    for kept in (tmp_path / "kernels").rglob("*caller.caller*"):
        kept.unlink()
    again = lines()
    assert again[0] == "False"
    assert again[1] == first[1]
    assert again[2] == f"caller True {first[1]}"
    # What was kept is used, and not found anew.
    (stamps,) = (tmp_path / "kernels").glob("stamps-*.json")
    stamps.write_text(stamps.read_text().replace(':"', ':"0').replace(': "', ': "0'))
    assert lines()[0] == "True _membership"


# Compiles something, and then needs a kernel of a module that nobody knew of; tells whether the
# cache had that one.
AFTERWARDS = (
    USE
    + """
from tests.treecore.entries import sorted_ids
sorted_ids(np.arange(3), np.arange(3.0))
print(len(sorted_ids.stats.cache_hits))
"""
)


def test_whoever_imports_numba_first_keeps_kernels_where_others_look(tmp_path: Path) -> None:
    """Numba reads its settings anew in a process whose environment was changed meanwhile."""
    environment = os.environ | {"WEALD_KERNEL_CACHE": str(tmp_path / "kernels")}
    for before, hits in (("import numba", "0"), ("", "1")):
        done = subprocess.run(
            [sys.executable, "-c", before + AFTERWARDS],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        assert done.stdout.split() == [hits]


def bare(tree: ast.Module) -> str:
    """A module without its docstrings."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body[0] = ast.Expr(ast.Constant(0))
    return ast.dump(tree)


def test_stamps_see_everything_but_prose() -> None:
    """What is left of a source without its prose is the source, as a compiler sees it."""
    for room in ("treecore", "mcmc"):
        for path in (ROOT / room).rglob("*.py"):
            source = path.read_text()
            # A docstring may be all that a body has, so that something has to stand in its place.
            kept = source_stamps._DOCSTRING.sub(_in_its_place, source)
            kept = source_stamps._COMMENT.sub(r"\1", kept)
            assert bare(ast.parse(source)) == bare(ast.parse(kept)), path


def _in_its_place(docstring: re.Match[str]) -> str:
    return docstring[0][: docstring[0].index('"')] + "0"


def test_stamps_of_a_file_cover_what_it_may_call() -> None:
    reached = source_stamps._reached({"mcmc/split_merge/sams.py"})
    assert {"mcmc/split_merge/trial_split.py", "mcmc/state/atom_state.py"} <= reached
    assert "mcmc/offline/fit.py" not in reached | source_stamps._implementations()
    assert "treecore/family/gaussian/packed_cholesky.py" in source_stamps._implementations()
    assert "mcmc/contract.py" not in source_stamps._implementations()


def packaged(tmp_path: Path) -> tuple[dict[str, str], Path]:
    """An installation whose kernels came compiled, and where they lie."""
    place = copy_of_the_sources(tmp_path / "copy")
    package = ROOT / "docker" / "package_kernels.py"
    command: list[str | Path] = [sys.executable, package, sys.executable, "-c", USE]
    cache = {"WEALD_KERNEL_CACHE": str(tmp_path / "made" / "kernels")}
    subprocess.run(command, env=choosing_by_itself() | place | cache, check=True)
    kernels = tmp_path / "copy" / "weald" / "treecore" / "compiled" / "kernels"
    return place | {"WEALD_KERNEL_CACHE": str(tmp_path / "empty")}, kernels


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the levels are those of x86-64")
def test_kernels_that_came_with_the_package_are_not_compiled(tmp_path: Path) -> None:
    environment, kernels = packaged(tmp_path)
    for level in LEVELS:
        as_if = {} if level == LEVELS[0] else settings_of(level)
        assert run_script(environment | as_if) == (0, "")
    assert not list((tmp_path / "empty").rglob("*.nb?"))
    assert not (tmp_path / "empty" / "lock").exists()
    assert not list(kernels.rglob("lock"))
    # Machine code alone, and none of what it was made from.
    assert {has_bitcode(each) for each in (tmp_path / "made").rglob("*.nbc")} == {True}
    assert {has_bitcode(each) for each in kernels.rglob("*.nbc")} == {False}


def has_bitcode(path: Path) -> bool:
    return b"BC\xc0\xde" in path.read_bytes()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the levels are those of x86-64")
def test_who_compiles_beside_a_package_compiles_what_is_called_too(tmp_path: Path) -> None:
    environment, _ = packaged(tmp_path)
    (tmp_path / "caller.py").write_text(OTHER_CALLER)
    own = choosing_by_itself() | environment

    def ended(order: str, **more: str) -> subprocess.CompletedProcess[str]:
        command: list[str | Path] = [sys.executable, "-P", tmp_path / "caller.py", order]
        return subprocess.run(
            command, env=own | more, capture_output=True, text=True, check=False, cwd=tmp_path
        )

    refused = ended("loaded first")
    assert refused.returncode == 1
    assert "set NUMBA_CPU_NAME=generic" in refused.stderr
    assert ended("").returncode == 0
    assert ended("loaded first", NUMBA_CPU_NAME="generic").returncode == 0


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the level is one of x86-64")
def test_packaged_kernels_of_another_compiler_are_left_alone(tmp_path: Path) -> None:
    environment, kernels = packaged(tmp_path)
    for level in LEVELS:
        (kernels / level / MANIFEST).write_text(json.dumps(made_by() | {"numba": "0.1"}))
    compiled, said = run_script(environment)
    assert compiled == 1
    assert said.count("\n") == 1
    assert "made with numba 0.1" in said
    assert list((tmp_path / "empty").rglob("*.nbi"))


@pytest.mark.parametrize(
    ("lacks", "chosen"), [([], LEVELS[0]), (LEVELS[:1], LEVELS[1]), (LEVELS, None)]
)
def test_the_best_level_that_runs_here_is_chosen(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    lacks: Sequence[str],
    chosen: str | None,
) -> None:
    for level in LEVELS:
        (tmp_path / level).mkdir()
        (tmp_path / level / MANIFEST).write_text(json.dumps(made_by()))
    for setting in SETTINGS:
        monkeypatch.delenv(setting, raising=False)
    monkeypatch.setattr(packages, "FOLDER", tmp_path)
    monkeypatch.setattr(packages, "lacking", lambda level: ["fma"] if level in lacks else [])
    assert packages.packaged_level.__wrapped__() == chosen
    assert ("this processor lacks fma" in caplog.text) == (chosen is None)
