"""The crash harness in its short form: every kind of source and database that starts quickly."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.usefixtures("postgresql_session")
def test_a_few_dozen_kills_lose_and_double_nothing() -> None:
    command = [sys.executable, "-m", "tests.crash.harness", "--output", "json", "--kills", "45"]
    done = subprocess.run(
        [*command, "--scenes", "file/sqlite", "file/postgresql"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["faults"] == []
    assert answer["kills"] >= 45
    assert len(answer["by_label"]) > 20
    assert set(answer["by_scene"]) == {"file/sqlite", "file/postgresql"}
