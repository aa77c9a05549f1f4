"""The service's log: for people, for programs, and never the same line ten times a second."""

import json
import logging
import subprocess
import sys
from pathlib import Path

from tests.stream.scenario import records_file
from weald.cli.service.logs import Less

SETTINGS = """\
[stream]
name = "logs"
source = "file"
path = "records.jsonl"
[schema]
fields = [{ name = "x" }, { name = "y" }]
key = "id"
[model]
warmup_records = 20
[redis]
enabled = false
[monitoring]
enabled = false
"""


def ran(folder: Path, *arguments: str) -> list[str]:
    (folder / "weald.toml").write_text(SETTINGS)
    records_file(folder, 120)
    argv = [sys.executable, "-m", "weald.cli.main", "run", *arguments]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True)
    return done.stderr.splitlines()


def test_every_line_is_json_where_that_is_asked_for(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in ran(tmp_path, "--log-format", "json")]
    assert all(line.keys() == {"time", "level", "logger", "message"} for line in lines)
    said = [line["message"] for line in lines]
    assert "stream  logs, reading records.jsonl" in said
    assert any(text.startswith("partitions assigned") for text in said)
    assert any(text.startswith("publication 1: ") for text in said)
    assert len([text for text in said if text.startswith("publication ")]) == 1
    assert lines[0]["time"].endswith("Z")


def test_people_are_told_the_same_unless_they_want_quiet(tmp_path: Path) -> None:
    said = "\n".join(ran(tmp_path))
    assert "INFO weald.stream.engine.ownership: partitions assigned" in said
    assert "Next: weald clusters" in said
    (tmp_path / "weald.db").unlink()
    assert " INFO " not in "\n".join(ran(tmp_path, "--quiet"))


def test_a_library_that_repeats_itself_is_heard_once_a_minute() -> None:
    less = Less("kafka")

    def passes(name: str, template: str, at: float, *args: object) -> str | None:
        record = logging.LogRecord(name, logging.ERROR, "", 0, template, args, None)
        record.created = at
        return record.getMessage() if less.filter(record) else None

    first = [passes("kafka.cluster", "Topic %s not found", i / 10, "t") for i in range(600)]
    assert first == ["Topic t not found"] + [None] * 599
    assert passes("kafka.cluster", "something else", 5.0) == "something else"
    assert passes("weald.stream", "Topic %s not found", 5.0, "t") == "Topic t not found"
    assert passes("kafka.cluster", "Topic %s not found", 60.5, "t") == (
        "Topic t not found (599 more like it were left out)"
    )
    assert passes("kafka.cluster", "Topic %s not found", 120.6, "t") == "Topic t not found"
