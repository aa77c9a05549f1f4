"""The wheel: built, installed into a clean environment, and used away from the source tree."""

import csv
import json
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import numpy as np
import pytest

from tests.servers.kernels import SETTINGS
from weald.treecore.compiled.packaged import LEVELS

ROOT = Path(__file__).parents[1]
ROOMS = tuple(sorted(path.name for path in (ROOT / "weald").iterdir() if path.is_symlink()))
CLUTTER = ("__pycache__", ".DS_Store")


def uv(*arguments: str | Path, cwd: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "uv", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the sources, so that no earlier build can leak into it."""
    sources = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    for room in ROOMS:
        shutil.copytree(ROOT / room, sources / room, ignore=shutil.ignore_patterns(*CLUTTER))
    ignored = shutil.ignore_patterns(*CLUTTER)
    shutil.copytree(ROOT / "weald", sources / "weald", symlinks=True, ignore=ignored)
    uv("build", "--quiet", "--wheel", "--out-dir", sources / "dist", cwd=sources)
    (built,) = (sources / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs of a clean environment that holds the wheel without any extra."""
    folder = tmp_path_factory.mktemp("installed")
    uv("venv", "--quiet", "--python", sys.executable, "environment", cwd=folder)
    uv(
        *("pip", "install", "--quiet", "--python", "environment/bin/python"),
        *("--constraint", ROOT / "constraints.txt", wheel),
        cwd=folder,
    )
    return folder / "environment" / "bin"


def run(program: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of the clean environment where nothing leads back to the sources."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**environment, "COLUMNS": "100", "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_wheel_carries_every_file_of_every_room(wheel: Path) -> None:
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {
        f"weald/{path.relative_to(ROOT).as_posix()}"
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and not set(path.parts) & set(CLUTTER)
    }
    door = {f"weald/{name}" for name in ("__init__.py", "py.typed")}
    assert packed == expected | door


def test_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        fields = Parser().parsestr(archive.read(metadata).decode())
    assert fields["Name"] == "weald"
    assert fields["Requires-Python"] == ">=3.11"
    assert fields["License-Expression"] == "MIT"
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    requirements = fields.get_all("Requires-Dist", [])
    assert any(item.startswith("kafka-python[crc32c]") for item in requirements)


def test_rooms_are_imported_from_the_installation(installed: Path, tmp_path: Path) -> None:
    code = "import weald.cli, weald.stream; print(weald.cli.__file__, weald.stream.__file__)"
    version = run(
        installed / "python", "-c", "import weald; print(weald.__version__)", cwd=tmp_path
    )
    assert version.stdout.split()
    said = run(installed / "python", "-c", code, cwd=tmp_path).stdout.split()
    assert all(Path(file).is_relative_to(installed.parent) for file in said)


def test_command_line_answers(installed: Path, tmp_path: Path) -> None:
    said = run(installed / "weald", "--help", cwd=tmp_path).stdout
    for command in ("demo", "run", "fit", "clusters", "assign"):
        assert command in said


def test_migrations_run_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    weald = installed / "weald"
    revisions = sorted(path.stem[:4] for path in (ROOT / "storage/migrations/versions").glob("0*"))
    assert "revision" in run(weald, "db", "upgrade", cwd=tmp_path).stderr
    # On the way to "base" is every step; to stop at each is tried in tests/storage/test_migrations.
    for revision in (revisions[len(revisions) // 2], "base"):
        run(weald, "db", "downgrade", revision, "--yes", cwd=tmp_path)
    run(weald, "db", "upgrade", cwd=tmp_path)
    run(weald, "db", "check", cwd=tmp_path)
    said = run(weald, "db", "current", "--output", "json", cwd=tmp_path).stdout
    assert json.loads(said)["revision"] == revisions[-1]
    assert "weald_reader" in run(weald, "db", "roles", cwd=tmp_path).stdout


def test_small_fit(installed: Path, tmp_path: Path, rng: np.random.Generator) -> None:
    centres = np.repeat([[-8.0, 0.0], [8.0, 0.0], [0.0, 12.0]], 40, axis=0)
    np.save(tmp_path / "points.npy", centres + rng.normal(size=centres.shape))
    said = run(
        installed / "weald",
        *("fit", "points.npy", "--iterations", "20", "--seed", "1"),
        *("--out", "rows.csv", "--output", "json"),
        cwd=tmp_path,
    ).stdout
    assert json.loads(said)
    with (tmp_path / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = [row["cluster"] for row in sorted(rows, key=lambda row: int(row["row"]))]
    by_centre = [set(found[start : start + 40]) for start in (0, 40, 80)]
    assert all(len(names) == 1 for names in by_centre)
    assert len(set.union(*by_centre)) == 3


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the level is one of x86-64")
def test_a_wheel_with_kernels_has_all_that_users_run(tmp_path: Path) -> None:
    """Its maker installs it, runs the demo, fits, streams and the rest, and sees compilations."""
    maker: list[str | Path] = [
        sys.executable,
        ROOT / "docker" / "build_wheel.py",
        *("--family", "gaussian", "--level", LEVELS[0]),
    ]
    # The other tests compile for this level; where it is installed, it has to be found.
    environment = {key: value for key, value in os.environ.items() if key not in SETTINGS}
    done = subprocess.run(
        [*maker, "--out", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    packed = zipfile.ZipFile(wheel).namelist()
    assert any(f"kernels/{LEVELS[0]}/mcmc/gibbs/gibbs/" in name for name in packed)
