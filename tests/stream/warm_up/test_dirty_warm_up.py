"""What a first sample has of columns that say nothing, and of absurd records, spoils no stream."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.stream.scenario import NAME, new_store, outcome, plan_for, run, write_lines
from weald.answers.stored_stream import StoredStream
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.storage.writing.store import SqlStore
from weald.stream.model.mixture_shard import MixtureShard
from weald.stream.model.model import new_shard
from weald.stream.settings import FieldSettings, SchemaSettings

Values = NDArray[np.float64]

N, ABSURD = 400, 5
CADENCE = RefinementSettings(quiet_seconds=0.0, publish_every_seconds=0.0)


@cache
def clean() -> tuple[Values, NDArray[np.int64]]:
    """Three kinds of four numbers that go together, two of which touch."""
    draw = np.random.default_rng(0)
    kind = draw.integers(3, size=N)
    gap = 3.5
    centres = np.array([[0.0, 0.0, 0.0, 0.0], [gap, gap / 3.0, -gap / 3.0, 0.0], [12, -6, 9, 6]])
    shape = np.eye(4) + 0.5 * draw.normal(size=(4, 4))
    return (centres[kind] + draw.normal(size=(N, 4))) @ shape, kind


def streamed(folder: Path, values: Values, family: str = "auto") -> SqlStore:
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"id": f"{i}", "x": row}) for i, row in enumerate(values.tolist())]
    schema = SchemaSettings(fields=(FieldSettings("x", size=values.shape[1]),), key="id")
    plan = plan_for(write_lines(folder / "records.jsonl", lines))
    store = new_store(folder)
    run(
        replace(plan, schema=schema, model=ModelSettings(family=family), refinement=CADENCE),
        store,
    )
    return store


def index_of(store: SqlStore) -> float:
    """Index of the clusters, without the record that is made absurd."""
    found = outcome(store)
    rows = np.array([int(key or "") for key in found.keys])
    kept = rows != ABSURD
    return adjusted_rand_index(np.array(found.clusters)[kept], clean()[1][rows[kept]])


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], tuple[float, list[int]]]:
    """What a family makes of the clean records."""

    @cache
    def made(family: str) -> tuple[float, list[int]]:
        store = streamed(tmp_path_factory.mktemp(family), clean()[0], family)
        assert store.status(NAME).seen_as is None
        return index_of(store), outcome(store).clusters

    return made


def constant(values: Values) -> Values:
    return np.full(len(values), 7.0)


def repeated(values: Values) -> Values:
    return 3.0 - 1000.0 * values[:, 1]


def combined(values: Values) -> Values:
    return values @ [1.0, 0.5, -2.0, 0.0]


@pytest.mark.parametrize("family", ["gaussian", "diagonal"])
@pytest.mark.parametrize(
    ("column", "words"),
    [
        (constant, "4 of 5 columns; without columns of one value: x.4"),
        (repeated, "4 of 5 columns; without columns that repeat others: x.4 (as x.1)"),
        (combined, "4 of 5 columns; without columns that are sums of others: x.4"),
    ],
)
def test_columns_that_say_nothing_have_no_influence(
    tmp_path: Path,
    undisturbed: Callable[[str], tuple[float, list[int]]],
    family: str,
    column: Callable[[Values], Values],
    words: str,
) -> None:
    index, clusters = undisturbed(family)
    values = np.column_stack([clean()[0], column(clean()[0])])
    store = streamed(tmp_path, values, family)
    assert store.status(NAME).seen_as == words
    assert outcome(store).clusters == clusters
    assert index_of(store) == index
    # They are described all the same.
    (largest,) = store.clusters(NAME, limit=1)
    inside = values[np.array(clusters) == largest.cluster]
    told = StoredStream(store, NAME).describe(largest)
    centres = [float(each.centre) for each in told]
    # What the family sees is moved within a thousandth of a column's spread, uniformly: that of
    # the means of n values is off by that over the root of 12 n, by four times that at most here.
    off = 4e-3 * values.std(axis=0) / np.sqrt(12 * len(inside))
    assert (np.abs(centres - inside.mean(axis=0)) < off + 1e-6).all()
    if family == "gaussian":
        spreads = [each.spread or 0.0 for each in told]
        np.testing.assert_allclose(spreads, inside.std(axis=0), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("others", [False, True], ids=["as they are", "without a constant"])
def test_rounded_numbers_are_told_with_the_spread_that_they_have(
    tmp_path: Path, others: bool
) -> None:
    """The family sees them moved by about half of what they are rounded to."""
    values, _ = clean()
    values = np.column_stack([np.rint(values[:, :2] / 4.0), values[:, 2:]])
    if others:
        values = np.column_stack([values, constant(values)])
    store = streamed(tmp_path, values, "gaussian")
    assert (store.spec(NAME).resolution or [])[:2] == [1.0, 1.0]
    clusters = np.array(outcome(store).clusters)
    stored, told, true = StoredStream(store, NAME), np.zeros(2), np.zeros(2)
    for each in store.clusters(NAME):
        share = each.n_observations / len(values)
        spreads = [column.spread or 0.0 for column in stored.describe(each)]
        told += share * np.array(spreads[:2]) ** 2
        true += share * values[clusters == each.cluster, :2].var(axis=0)
    # Squares of moves have the variance 1/8, twice what is moved times its move true.
    off = 4.0 * np.sqrt((1 / 8 + true) / len(values))
    assert (np.abs(told - true) < off).all()
    assert (off < 1 / 4).all()


@pytest.mark.parametrize("others", [False, True], ids=["as they are", "without a constant"])
def test_a_small_cluster_is_told_by_the_values_that_came_in(tmp_path: Path, others: bool) -> None:
    """Moves of few do not cancel: the mean of ten whole numbers was off by a sixth."""
    values, _ = clean()
    values = np.rint(values / 4.0)
    few = np.arange(len(values) - 30, len(values), 3)
    values[few] = 40.0
    values[few[:3], 0] = 41.0
    if others:
        values = np.column_stack([values, constant(values)])
    store = streamed(tmp_path, values, "gaussian")
    clusters = np.array(outcome(store).clusters)
    stored, d = StoredStream(store, NAME), 4
    there = store.clusters(NAME)
    small = [each for each in there if each.n_observations <= 20]
    assert small
    for told_of in [*([each] for each in small), small]:
        inside = values[np.isin(clusters, [each.cluster for each in told_of]), :d]
        told = stored.describe(*told_of)[:d]
        centres = [float(each.centre) for each in told]
        np.testing.assert_allclose(centres, inside.mean(axis=0), atol=1e-9)
        spreads = [each.spread or 0.0 for each in told]
        np.testing.assert_allclose(spreads, inside.std(axis=0), atol=1e-6)


@pytest.mark.parametrize("absurd", [[1e4], [1e9], [1e6] * 4], ids=str)
def test_an_absurd_record_of_the_first_ones_spoils_no_base_measure(
    tmp_path: Path, undisturbed: Callable[[str], tuple[float, list[int]]], absurd: list[float]
) -> None:
    """With it in the sample, two of three gaussian kinds were one: the index was .62."""
    index, _ = undisturbed("gaussian")
    values = clean()[0].copy()
    values[ABSURD, : len(absurd)] = absurd
    store = streamed(tmp_path, values, "gaussian")
    assert index > 0.95
    assert abs(index_of(store) - index) <= 0.02


@pytest.mark.parametrize("law", ["normal", "even"])
def test_a_stream_goes_on_by_the_law_of_moves_that_it_began_with(tmp_path: Path, law: str) -> None:
    """One that an earlier Weald began is moved evenly, whatever has been learned since."""
    values = np.column_stack([np.rint(clean()[0]), np.arange(N) % 2])
    store = streamed(tmp_path, values[:200])
    spec = store.spec(NAME)
    assert spec.moves == "normal"
    stored = replace(spec, moves=law)
    shard = new_shard(stored, CADENCE)
    assert isinstance(shard, MixtureShard)
    shard.apply(values, 0.0)
    assert shard.moves is not None
    assert shard.moves.law == law
    ids = np.arange(1, N + 1)
    off = (shard._seen(values, ids) - values)[:, 4]
    assert (np.abs(off).max() <= 0.5) == (law == "even")


def test_zeros_and_flags_of_a_stream_are_no_kinds(tmp_path: Path) -> None:
    """Calls that one kind never makes, and a flag that says nothing: the index was .1 to .2."""
    draw = np.random.default_rng(0)
    kind = (draw.random(2000) < 0.2).astype(np.int64)
    calls = np.where(kind == 1, draw.normal(50.0, 10.0, 2000), 0.0)
    flag = (draw.random(2000) < 0.1).astype(np.float64)
    values = np.column_stack([draw.normal(size=2000) + 4.0 * kind, calls, flag])
    shown = np.array(outcome(streamed(tmp_path, values, "gaussian")).clusters)
    assert adjusted_rand_index(shown, kind) > 0.9
