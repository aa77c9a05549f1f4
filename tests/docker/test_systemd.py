"""The systemd unit: options that exist, a command that exists, and little that it may do."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from tests.docker.test_compose import FOLDER
from weald.cli.errors import ExitCode
from weald.cli.main import app

UNIT = FOLDER / "systemd" / "weald@.service"
# Of 10: 2.0 and below is what systemd calls OK, a service without any option is at 9.6.
MOST_EXPOSED = 20


def options(name: str) -> list[str]:
    lines = UNIT.read_text().splitlines()
    return [line.partition("=")[2] for line in lines if line.startswith(f"{name}=")]


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("systemd-analyze is not installed")
    return subprocess.run([found, *arguments], capture_output=True, text=True, check=False)


def installed(folder: Path) -> Path:
    """The unit as an instance whose program exists."""
    unit = folder / "weald@quakes.service"
    unit.write_text(UNIT.read_text().replace("/opt/weald/bin/weald", "/bin/true"))
    return unit


def test_systemd_knows_every_option(tmp_path: Path) -> None:
    done = analyze("verify", str(installed(tmp_path)))
    assert (done.returncode, done.stderr) == (0, "")


def test_it_may_do_little(tmp_path: Path) -> None:
    threshold = f"--threshold={MOST_EXPOSED}"
    unit = str(installed(tmp_path))
    done = analyze("security", "--offline=true", "--no-pager", "--json=short", threshold, unit)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {row["json_field"]: row for row in json.loads(done.stdout)}
    assert rows["NoNewPrivileges"]["set"]


def test_its_command_and_its_exit_codes_exist() -> None:
    (command,) = options("ExecStart")
    program, name, *arguments = command.split()
    known = get_command(app).commands[name]  # type: ignore[attr-defined]  # a group's
    flags = {flag for each in known.params for flag in each.opts}
    assert program.endswith("/bin/weald")
    assert {each for each in arguments if each.startswith("-")} <= flags
    (final,) = options("RestartPreventExitStatus")
    assert final.split() == [str(int(code)) for code in (ExitCode.USAGE, ExitCode.CONFLICT)]
