"""A stream that a real engine has filled from a file, and a way to type commands at it."""

import io
import json
import os
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from weald.cli.main import main

N_GOOD, N_BAD = 300, 4


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str


Command = Callable[..., Result]


def type_command(*arguments: str) -> Result:
    """Run the program in this process, as the console script would."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
    return Result(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def weald() -> Command:
    """Type a command."""
    return type_command


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty working folder and none of the machine's own variables."""
    for name in list(os.environ):
        if name.upper().startswith("WEALD_") and name != "WEALD_KERNEL_CACHE":
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def records() -> list[dict[str, object]]:
    """Two groups that nobody could confuse, and records that cannot become observations."""
    rng = np.random.default_rng(8)
    centres = np.array([[-10.0, 5.0], [10.0, -5.0]])
    good: list[dict[str, object]] = []
    for i in range(N_GOOD):
        x, y = centres[i % 2] + rng.normal(size=2)
        good.append({"id": f"k{i}", "time": 1_700_000_000 + i, "x": x, "y": y})
    bad: Sequence[dict[str, object]] = [
        {"id": "b0", "time": 1, "x": None, "y": 1.0},
        {"id": "b1", "time": 1, "x": 1.0},
        {"id": "b2", "time": 1, "x": "many", "y": 1.0},
        {"id": "b3", "time": "whenever", "x": 1.0, "y": 1.0},
    ]
    return [*good[:150], *bad, *good[150:]]


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a weald.toml and a database that `weald run` has filled."""
    home = tmp_path_factory.mktemp("filled")
    lines = (json.dumps(record) for record in records())
    (home / "records.jsonl").write_text("\n".join(lines) + "\n")
    (home / "weald.toml").write_text(
        "[stream]\nname = 'pairs'\nsource = 'file'\npath = 'records.jsonl'\nbatch_records = 64\n"
        "[schema]\nfields = [{name = 'x'}, {name = 'y'}]\nkey = 'id'\ntime = 'time'\n"
        "[refinement]\nevery_records = 100\npublish_every_records = 100\n"
        "[redis]\nenabled = false\n[monitoring]\nport = 0\n[storage]\nurl = 'sqlite:///weald.db'\n"
    )
    result = type_command("run", "--config", str(home))
    assert result.code == 0, result.err
    return home
