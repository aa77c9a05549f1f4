"""`weald fit --engine`: Parquet in shards, from outside."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Command
from weald.cli.errors import ExitCode
from weald.mcmc.estimate.agreement import adjusted_rand_index

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.usefixtures("clean")

N = 9_000


@pytest.fixture
def days(clean: Path, rng: np.random.Generator) -> Path:
    """A folder of two files; rows of three clusters that nobody could confuse."""
    y = np.arange(N) % 3
    values = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 30.0]])[y] + rng.normal(size=(N, 2))
    (clean / "days").mkdir()
    for name, part in (("1", slice(0, 4_000)), ("2", slice(4_000, N))):
        table = pyarrow.table({"east": values[part, 0], "north": values[part, 1]})
        parquet.write_table(table, clean / "days" / f"{name}.parquet")
    return clean / "days"


def test_a_folder_is_fitted_in_shards(days: Path, weald: Command) -> None:
    flags = ("--engine", "local", "--shards", "2", "--iterations", "6", "--out", "out.csv")
    result = weald("fit", str(days), *flags, "--output", "json")
    assert result.code == ExitCode.OK, result.err
    answer = json.loads(result.out)
    assert (answer["n_observations"], answer["n_clusters"], answer["shards"]) == (N, 3, 2)
    assert sorted(row["size"] for row in answer["clusters"]) == [N // 3] * 3
    assert set(answer["clusters"][0]["features"]) == {"east", "north"}
    assert answer["iterations"] == [6]
    with Path("out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["row"]) for row in rows] == list(range(N))
    clusters = np.array([int(row["cluster"]) for row in rows])
    assert adjusted_rand_index(clusters, np.arange(N) % 3) == 1.0
    assert {row["probability"] for row in rows} == {"1.0"}


def test_a_fit_goes_on_in_its_folder(days: Path, weald: Command) -> None:
    """For more sweeps, and to what it would have come to in one go."""
    flags = ("fit", str(days), "--engine", "local", "--shards", "2", "--output", "json")
    begun = weald(*flags, "--work", "w", "--iterations", "3")
    assert begun.code == ExitCode.OK, begun.err
    more = ("--work", "w", "--iterations", "5", "--out", "on.csv")
    assert "--resume to go on there" in weald(*flags, *more).err
    gone_on = weald(*flags, *more, "--resume")
    at_once = weald(*flags, "--iterations", "5", "--out", "once.csv")
    assert gone_on.code == ExitCode.OK, gone_on.err
    assert Path("on.csv").read_bytes() == Path("once.csv").read_bytes()
    one, other = json.loads(gone_on.out), json.loads(at_once.out)
    for answer in (one, other):
        del answer["seconds"]
    assert one == other
    refused = weald(*flags, *more, "--resume", "--seed", "9")
    assert refused.code == ExitCode.USAGE
    assert "other seed: 0, not 9" in refused.err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--trace", "t.npz", "--kernel", "gibbs"), "--trace, --kernel: not with --engine"),
        (("--resume",), "--resume needs the --work of the fit"),
        (("--columns", "south"), "no column of numbers named south; there are east, north"),
    ],
)
def test_what_cannot_be_done_in_shards_is_refused(
    days: Path, weald: Command, flags: tuple[str, ...], message: str
) -> None:
    result = weald("fit", str(days), "--engine", "local", "--shards", "1", *flags)
    assert result.code == ExitCode.USAGE
    assert message in result.err


def test_a_row_with_a_gap_is_told(days: Path, weald: Command) -> None:
    table = pyarrow.table({"east": [1.0, None, 3.0], "north": [0.0, 1.0, 2.0]})
    parquet.write_table(table, days / "3.parquet")
    result = weald("fit", str(days), "--engine", "local", "--shards", "2")
    assert result.code == ExitCode.USAGE
    assert f"row {N + 1}: " in result.err


def test_other_files_are_refused(clean: Path, weald: Command) -> None:
    (clean / "x.csv").write_text("a\n1\n")
    result = weald("fit", "x.csv", "--engine", "local")
    assert result.code == ExitCode.USAGE
    assert ".parquet" in result.err
    assert weald("fit", "nowhere", "--engine", "local").code == ExitCode.NOT_FOUND
