"""`weald dlq` over a stream that a real engine has filled."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import N_BAD, N_GOOD, Command
from weald.cli.errors import ExitCode

pytestmark = pytest.mark.usefixtures("clean")


@pytest.fixture
def home(filled: Path, clean: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the filled stream, to write to."""
    shutil.copytree(filled, clean / "copy")
    monkeypatch.setenv("WEALD_CONFIG", str(clean / "copy"))
    return clean / "copy"


def letters(weald: Command, *arguments: str) -> list[dict[str, object]]:
    result = weald("dlq", "list", "--output", "json", *arguments)
    assert result.code == 0, result.err
    found: list[dict[str, object]] = json.loads(result.out)
    return found


@pytest.mark.usefixtures("home")
def test_list_and_show(weald: Command) -> None:
    found = letters(weald)
    assert [each["offset"] for each in found] == [153, 152, 151, 150]
    assert {each["reason"] for each in letters(weald, "--reason", "bad_time")} == {"bad_time"}
    assert "the newest 2" in weald("dlq", "list", "--limit", "2").err
    shown = json.loads(weald("dlq", "show", str(found[0]["number"]), "--output", "json").out)
    assert json.loads(shown["value"])["id"] == "b3"
    assert shown["detail"].startswith("'whenever'")
    assert "b3" in weald("dlq", "show", str(found[0]["number"])).out
    assert weald("dlq", "show", "99").code == ExitCode.NOT_FOUND
    wrong = weald("dlq", "list", "--reason", "mood")
    assert (wrong.code, "wrong_type" in wrong.err) == (ExitCode.USAGE, True)


@pytest.mark.usefixtures("home")
def test_purge_asks_first_and_keeps_the_account(weald: Command) -> None:
    for arguments in (["--all"], [], ["--all", "--reason", "unfit", "--yes"]):
        assert weald("dlq", "purge", *arguments).code == ExitCode.USAGE
    assert "1 dead letters are gone" in weald("dlq", "purge", "--reason", "bad_time", "--yes").err
    assert weald("dlq", "purge", "--reason", "bad_time", "--yes").code == ExitCode.NOT_FOUND
    assert weald("dlq", "purge", "--all", "--older-than", "1", "--yes").code == ExitCode.USAGE
    assert weald("dlq", "purge", "--older-than", "1", "--yes").code == ExitCode.NOT_FOUND
    assert len(letters(weald)) == N_BAD - 1
    status = json.loads(weald("status", "--output", "json").out)
    assert status["n_dead"] == N_BAD


@pytest.mark.usefixtures("home")
def test_replay_is_taken_up_by_the_next_run(weald: Command) -> None:
    number = str(letters(weald, "--reason", "bad_time")[0]["number"])
    assert "1 will be decided anew" in weald("dlq", "replay", number).err
    assert weald("dlq", "purge", number, "--yes").code == ExitCode.NOT_FOUND
    assert letters(weald)[0]["replay_at"] is not None
    assert weald("dlq", "replay", "99").code == ExitCode.NOT_FOUND
    assert weald("dlq", "replay").code == ExitCode.USAGE
    assert weald("run").code == 0
    status = json.loads(weald("status", "--output", "json").out)
    assert (status["n_inserted"], status["n_dead"]) == (N_GOOD, N_BAD)
    assert all(each["replay_at"] is None for each in letters(weald))


def test_a_table_gives_the_terminal_no_orders(weald: Command, clean: Path) -> None:
    (clean / "evil.jsonl").write_text(
        "".join(json.dumps({"x": i, "id": f"a\x1b]0;owned\x07{i}"}) + "\n" for i in range(30))
    )
    (clean / "weald.toml").write_text(
        "[stream]\nsource = 'file'\npath = 'evil.jsonl'\n[schema]\nfields = [{name = 'x'}]\n"
        "key = 'id'\n[model]\nwarmup_records = 10\n[redis]\nenabled = false\n"
        "[monitoring]\nport = 0\n"
    )
    assert weald("run").code == 0
    shown = weald("assign", "a\x1b]0;owned\x073").out
    assert "owned" in shown
    assert "\x1b" not in shown
