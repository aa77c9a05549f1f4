"""A stream of a file is as `weald init` says that it will be."""

import json
from pathlib import Path

import numpy as np
import pytest

from .conftest import Command

N = 200


def test_numbers_as_other_programs_write_them_and_gaps(
    clean: Path, weald: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    share = rng.normal(0.3, 0.1, N).round(3) + (np.arange(N) % 2)
    # R and SAS leave out the zero before the point.
    cells = [f"{each:.3f}".replace("0.", ".", 1) for each in share]
    dose = [f"{5 + i % 2 * 9}." for i in range(N)]
    change = [f"{each:+.0f}" for each in rng.normal(0.0, 20.0, N)]
    rows = [list(row) for row in zip(cells, dose, change, strict=True)]
    assert any(row[0].startswith(".") for row in rows)
    for at, gap in [(7, "?"), (30, ""), (31, "NA")]:
        rows[at][at % 3] = gap
    (clean / "t.csv").write_text("\n".join(["share,dose,change", *map(",".join, rows)]) + "\n")
    began = weald("init", "--from-sample", "t.csv")
    assert began.code == 0, began.err
    assert f"3 of {N} rows have a gap or cannot be read: a stream sets such records" in began.err
    monkeypatch.setenv("WEALD__MONITORING__PORT", "0")
    done = weald("run")
    assert done.code == 0, done.err
    status = json.loads(weald("status", "--output", "json").out)
    assert status["n_observations"] == N - 3
    assert sum(status["dead_letter_reasons"].values()) == 3
