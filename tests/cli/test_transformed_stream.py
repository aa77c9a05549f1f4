"""From a file of many numbers to clusters of it, with the commands that people type."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from weald.cli.errors import ExitCode

from .conftest import Command

N, WIDTH = 900, 30


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with measurements of three kinds, and the values of some kind at their place."""
    rng = np.random.default_rng(3)
    home = tmp_path_factory.mktemp("parts")
    names = [f"x{at}" for at in range(WIDTH)]
    rows = 40.0 + 6.0 * (np.arange(N) % 3)[:, None] + rng.normal(size=(N, WIDTH))
    lines = [f"k{i},{','.join(map(str, row))}" for i, row in enumerate(rows.tolist())]
    (home / "parts.csv").write_text("\n".join([f"id,{','.join(names)}", *lines]) + "\n")
    return home


def test_a_stream_of_many_numbers(
    parts: Path, clean: Path, weald: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = weald("init", str(parts), "--from-sample", str(parts / "parts.csv"))
    assert began.code == 0
    assert "family: gaussian or diagonal" in began.err
    assert f"{WIDTH} numbers are seen along principal components" in began.err
    monkeypatch.setenv("WEALD_CONFIG", str(parts))
    monkeypatch.setenv("WEALD__MONITORING__PORT", "0")
    done = weald("run")
    assert done.code == 0

    status = json.loads(weald("status", "--output", "json").out)
    assert status["seen_as"].startswith("8 components of 30 columns, 9")
    assert "seen as" in weald("status").out

    rows = json.loads(weald("clusters", "--output", "json").out)
    assert len(rows) == 3
    assert {len(row["features"]) for row in rows} == {WIDTH}
    for name in ("x0", "x29"):
        told = sorted(row["features"][name]["centre"] for row in rows)
        assert told == pytest.approx([40.0, 46.0, 52.0], abs=0.5)
        assert all(0.6 < row["features"][name]["spread"] < 1.5 for row in rows)

    exported = list(csv.DictReader(io.StringIO(weald("export", "assignments").out)))
    cluster = {row["key"]: int(row["cluster"]) for row in exported}
    predicted = weald("predict", str(parts / "parts.csv"), "--output", "json")
    found = [row["cluster"] == cluster[row["key"]] for row in json.loads(predicted.out)]
    assert len(found) == N
    assert np.mean(found) > 0.99

    one = json.loads(weald("cluster", str(rows[0]["cluster"]), "--output", "json").out)
    contrast = {row["feature"]: row["typical"] for row in one["contrast"]}
    assert contrast["x7"] == pytest.approx(rows[0]["features"]["x7"]["centre"], abs=0.2)
    assert weald("report", "--out", str(clean / "r.html")).code == 0
    assert weald("snapshot", "verify").code == 0

    other = weald("run", "--set", "features.components=4")
    assert other.code == ExitCode.CONFLICT
    assert "a stream keeps those it began with" in other.err


@pytest.mark.parametrize("text", ["none", "0", "-1"])
def test_a_number_of_components_is_a_number(parts: Path, weald: Command, text: str) -> None:
    refused = weald("run", "--config", str(parts), "--set", f"features.components={text}")
    assert refused.code == ExitCode.USAGE
    assert "features.components" in refused.err
