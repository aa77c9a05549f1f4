"""Fits in shards: processes that read a part each, die, and come to the same bits."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.stream.shards.small_fit import SETTINGS, N, running, told
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.stream.errors import SourceError
from weald.stream.shards.engine import ShardEngine, ShardFaultError, ShardLostError
from weald.stream.shards.fit_snapshots import FitSnapshots
from weald.stream.shards.local import LocalShard
from weald.stream.shards.ray_actors import RayShard, connect_to_ray, leave_ray
from weald.stream.shards.row_files import row_files, rows_of
from weald.stream.shards.sharded_fit import fit_in_shards
from weald.stream.shards.wire import decoded, encoded

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def truth() -> NDArray[np.int64]:
    return np.random.default_rng(1).integers(0, 3, N)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, truth: NDArray[np.int64]) -> Path:
    """Two Parquet files with row groups that end where no shard does, and a column of text."""
    rng = np.random.default_rng(2)
    values = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.5]])[truth] + rng.normal(size=(N, 2))
    made = tmp_path_factory.mktemp("rows")
    for name, part in (("a", slice(0, 1_300)), ("b", slice(1_300, N))):
        columns: dict[str, Any] = {"id": [f"r{at}" for at in range(N)[part]]}
        columns |= {f"x{j}": values[part, j] for j in range(2)}
        parquet.write_table(pyarrow.table(columns), made / f"{name}.parquet", row_group_size=700)
    np.save(made / "values.npy", values)
    return made


def process_ids(shards: ShardEngine) -> list[int]:
    return [link.process_id for link in shards.links if isinstance(link, LocalShard)]


@pytest.fixture(scope="module")
def alone(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, truth: NDArray[np.int64]
) -> dict[str, Any]:
    """What one shard comes to: the three clusters."""
    with running(folder, tmp_path_factory.mktemp("one"), 1) as shards:
        found = fit_in_shards(shards, N, SETTINGS)
        result = told(shards, found)
    clusters = np.frombuffer(result["clusters"], dtype=np.int64)
    assert adjusted_rand_index(clusters, truth) > 0.85
    assert found.sums[:, 0].sum() == N
    # Rows between clusters change them from draw to draw, so that there is something to compare.
    assert found.shown.probability.min() < 1.0
    return result


class MortalShard(LocalShard):
    """One that is killed with a message in its hands, where its time has come."""

    # Messages to all of them so far, and those after which the one that had them is killed.
    n_sent = 0
    deadly: frozenset[int] = frozenset()

    def send(self, message: bytes) -> bool:
        sent = super().send(message)
        MortalShard.n_sent += 1
        if MortalShard.n_sent in self.deadly:
            os.kill(self.process_id, signal.SIGKILL)
        return sent


def test_three_shards_come_to_the_same_bits_though_some_die(
    folder: Path, alone: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a sweep, while they are started again, and after the sweeps."""
    monkeypatch.setattr(MortalShard, "n_sent", 0)
    monkeypatch.setattr(MortalShard, "deadly", frozenset({50, 52, 194, 330}))
    with running(folder, tmp_path, 3, MortalShard) as shards:
        before = process_ids(shards)
        found = fit_in_shards(shards, N, SETTINGS)
        assert told(shards, found) == alone
        assert MortalShard.n_sent > 330
        replaced = set(before) - set(process_ids(shards))
    # One may be killed when it has answered, and be missed only when it is asked again.
    assert found.trace.n_remade >= 2
    assert replaced


def test_actors_of_ray_come_to_the_same_bits_though_one_dies(
    folder: Path, alone: dict[str, Any], tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    connect_to_ray()
    try:
        with running(folder, tmp_path, 2, RayShard) as shards:

            def kill(done: int, _most: int | None, _k: int) -> None:
                if done == 3:
                    shards.links[1].close()

            found = fit_in_shards(shards, N, SETTINGS, kill)
            assert told(shards, found) == alone
        assert found.trace.n_remade == 1
    finally:
        leave_ray()


def test_a_fit_whose_coordinator_is_killed_goes_on_with_the_same_bits(
    folder: Path, alone: dict[str, Any], tmp_path: Path, rng: np.random.Generator
) -> None:
    """Again and again, with messages sent to some shards or to all, until one is done."""
    killed = 0
    program = (sys.executable, "-m", "tests.stream.shards.small_fit")
    while True:
        deadly = str(rng.integers(10, 130))
        ended = subprocess.run([*program, str(folder), str(tmp_path), deadly], check=False)
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL
        killed += 1
        assert killed < 20
    assert killed >= 2
    assert {name: (tmp_path / name).read_bytes() for name in alone} == alone


def test_one_process_at_a_time_has_the_folder_and_on_the_same_terms(tmp_path: Path) -> None:
    snapshots = FitSnapshots(tmp_path, {"seed": 1, "shards": 2})
    with pytest.raises(SourceError, match="another fit has this folder"):
        FitSnapshots(tmp_path, {"seed": 1, "shards": 2})
    snapshots.close()
    with pytest.raises(SourceError, match="other shards: 2, not 3"):
        FitSnapshots(tmp_path, {"seed": 1, "shards": 3})
    again = FitSnapshots(tmp_path, {"seed": 1, "shards": 2})
    assert again.load(2) is None
    (tmp_path / "fit.snapshot").write_bytes(b"WEALDSNP and no more")
    with pytest.raises(SourceError, match=r"fit\.snapshot"):
        again.load(2)
    again.close()


def test_one_that_dies_in_a_pass_leaves_the_others_waiting(folder: Path, tmp_path: Path) -> None:
    with running(folder, tmp_path, 2) as shards:
        os.kill(process_ids(shards)[1], signal.SIGSTOP)
        rows = np.array([5, N - 1])
        # It is asked while it stands still, and dies with the question unanswered.
        os.kill(process_ids(shards)[1], signal.SIGKILL)
        with pytest.raises(ShardLostError, match="shard 1"):
            shards.ask("sample", rows)
        with pytest.raises(ShardLostError, match="shard 1"):
            shards.ask("sample", rows)
        shards.restart()
        first, other = shards.ask("sample", rows)
        assert (first[0].tolist(), other[0].tolist()) == ([0], [1])


def test_a_shard_reads_its_rows_and_no_others(folder: Path, tmp_path: Path) -> None:
    values = np.load(folder / "values.npy")
    files = row_files(sorted(folder.glob("*.parquet")), None)
    assert (files.columns, files.left_out, files.n) == (["x0", "x1"], ["id"], N)
    for start, stop in ((0, 1), (650, 1_350), (2_900, N)):
        made = tmp_path / str(start)
        made.mkdir()
        assert np.array_equal(rows_of(files, start, stop, made), values[start:stop])
    array = row_files([folder / "values.npy"], ["x2"])
    assert np.array_equal(rows_of(array, 7, 90, tmp_path), values[7:90, 1:])


def test_files_that_do_not_go_together_are_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    parquet.write_table(pyarrow.table({"x0": [1.0]}), other)
    with pytest.raises(SourceError, match="no column x1"):
        row_files([folder / "a.parquet", other], None)
    with pytest.raises(SourceError, match="named y; there are x0, x1"):
        row_files([folder / "a.parquet"], ["y"])


def test_what_a_shard_refuses_is_told(folder: Path, tmp_path: Path) -> None:
    with (
        running(folder, tmp_path, 2) as shards,
        pytest.raises(ShardFaultError, match="shard 0: sums: not a command"),
    ):
        shards.ask("sums")


def test_arrays_travel_as_they_are() -> None:
    message = (
        "a",
        [np.arange(6.0).reshape(2, 3)[:, ::2], np.int64(3), (np.array([], "<i4"), None)],
    )
    name, (matrix, number, (empty, nothing)) = decoded(encoded(message))
    assert (name, number, nothing, empty.dtype.str, empty.shape) == ("a", 3, None, "<i4", (0,))
    assert matrix.tolist() == [[0.0, 2.0], [3.0, 5.0]]
    assert matrix.flags.writeable
    with pytest.raises(TypeError, match="does not travel"):
        encoded(np.array(["text"]))
    forged = encoded(np.zeros(1)).replace(b"<f8", b"|O8")
    with pytest.raises(ValueError, match="not expected"):
        decoded(forged)
