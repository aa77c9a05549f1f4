"""A stream and a fit of families without a conjugate prior, with the commands that people type."""

import json
from pathlib import Path

import numpy as np
import pytest

from .conftest import Command

N = 200
# Mean and shape of the durations, mean and dispersion of the counts, of two kinds.
KINDS = [(0.5, 8.0, 3.0, 2.0), (30.0, 1.5, 60.0, 20.0)]
MODEL = """[model]
family = "mixed"
params = { parts = [
    { family = "gamma", columns = [0] }, { family = "negative-binomial", columns = [1] }
] }
"""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with jobs of two kinds by turns, one without a duration, and its settings."""
    rng = np.random.default_rng(5)
    home = tmp_path_factory.mktemp("jobs")
    lines = ["id,seconds,files"]
    for i in range(N):
        mean, shape, files, spread = KINDS[i % 2]
        found = rng.poisson(files * rng.gamma(spread) / spread)
        lines.append(f"j{i},{rng.gamma(shape) * mean / shape},{found}")
    (home / "whole.csv").write_text("\n".join(lines) + "\n")
    (home / "jobs.csv").write_text("\n".join([*lines, "none,0,1"]) + "\n")
    fields = '[{ name = "seconds" }, { name = "files", kind = "count" }]'
    source = '[stream]\nsource = "file"\npath = "jobs.csv"\nformat = "csv"\n'
    schema = f'[schema]\nfields = {fields}\nkey = "id"\n'
    (home / "weald.toml").write_text(source + schema + MODEL)
    return home


@pytest.mark.slow
def test_amounts_and_spread_counts(
    jobs: Path, clean: Path, weald: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEALD_CONFIG", str(jobs))
    monkeypatch.setenv("WEALD__MONITORING__PORT", "0")
    assert weald("run").code == 0
    dead = json.loads(weald("dlq", "list", "--output", "json").out)
    assert [row["detail"] for row in dead] == [
        "feature 0 is 0: needs numbers above 0, from 1e-100 to 1e+100"
    ]

    rows = json.loads(weald("clusters", "--output", "json").out)
    assert [row["size"] for row in rows] == pytest.approx([N / 2, N / 2], abs=5)
    told = sorted((row["features"] for row in rows), key=lambda each: each["files"]["centre"])
    for (mean, shape, files, spread), each in zip(KINDS, told, strict=True):
        assert each["seconds"]["centre"] == pytest.approx(mean, rel=0.2)
        assert each["seconds"]["spread"] == pytest.approx(mean / np.sqrt(shape), rel=0.3)
        assert each["files"]["centre"] == pytest.approx(files, rel=0.2)
        deviation = np.sqrt(files + files**2 / spread)
        assert each["files"]["spread"] == pytest.approx(deviation, rel=0.3)
    assert weald("report", "--out", str(clean / "r.html")).code == 0
    assert weald("snapshot", "verify").code == 0

    fitted = weald("fit", str(jobs / "whole.csv"), "--config", str(jobs), "--output", "json")
    assert fitted.code == 0
    assert json.loads(fitted.out)["n_clusters"] == 2
