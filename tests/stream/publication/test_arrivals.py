"""Between publications an arrival joins the cluster of its block."""

import numpy as np
import pytest

from weald.stream.dead_letters.dead_letter import DeadLetterLimit
from weald.stream.errors import TooManyDeadLetters
from weald.stream.publication.arrival_router import Arrivals
from weald.stream.record.record import DeadLetter
from weald.stream.tables.columns import GrowingArray

LETTER = DeadLetter("events", 0, 1, None, b"", "empty", "the record is empty", 0.0)


def test_the_majority_of_a_block_decides_and_ties_go_to_the_older_cluster() -> None:
    slots = np.array([0, 0, 0, 5, 5, 9, 9])
    clusters = np.array([4, 4, 7, 8, 3, 2, 2])
    placed, born = Arrivals(slots, clusters, 20).place(np.array([9, 5, 0, 3, 3, 1, 3]))
    assert placed.tolist() == [2, 3, 4, 20, 20, 21, 20]
    assert born == [3, 5]


def test_nothing_was_there_before() -> None:
    nothing = np.empty(0, dtype=np.int64)
    placed, born = Arrivals(nothing, nothing, 1).place(np.array([6, 6, 2]))
    assert (placed.tolist(), born) == ([1, 1, 2], [0, 2])


def test_it_does_not_matter_where_the_interval_is_cut(rng: np.random.Generator) -> None:
    slots = rng.integers(0, 6, size=60)
    clusters = rng.integers(1, 5, size=30)
    whole, _ = Arrivals(slots[:30], clusters, 9).place(slots[30:])
    first, born = Arrivals(slots[:30], clusters, 9).place(slots[30:41])
    known = np.concatenate([clusters, first])
    second, _ = Arrivals(slots[:41], known, 9 + len(born)).place(slots[41:])
    np.testing.assert_array_equal(np.concatenate([first, second]), whole)


def test_atoms_that_move_take_their_votes_with_them(rng: np.random.Generator) -> None:
    slots, clusters = rng.integers(0, 6, size=60), rng.integers(1, 5, size=60)
    sizes = rng.integers(1, 4, size=60)
    arrivals = Arrivals(slots, clusters, 9, sizes)
    for _ in range(30):
        atoms = rng.choice(60, size=8, replace=False)
        # Slots that no block had, and that no block has any more, are among them.
        after = rng.integers(0, 9, size=8)
        arrivals.moved((slots[atoms], after), clusters[atoms], sizes[atoms])
        slots[atoms] = after
        fresh = Arrivals(slots, clusters, 9, sizes)
        assert arrivals.homes == fresh.homes


def test_a_column_keeps_its_type_and_grows() -> None:
    column = GrowingArray(np.array([1, 2], dtype=np.int64))
    for i in range(200):
        column.extend(np.array([i]))
    assert len(column) == 202
    assert column.rows.dtype == np.int64
    assert column.rows[-1] == 199


def stop_after(limit: DeadLetterLimit, n_polls: int, n_records: int) -> None:
    for _ in range(n_polls):
        limit.observe(n_records, [LETTER] * n_records)


def test_a_few_bad_records_pass_and_most_bad_records_stop() -> None:
    limit = DeadLetterLimit(share=0.5, window=200)
    limit.observe(20, [LETTER] * 20)
    limit.observe(60, [])
    for _ in range(20):
        limit.observe(40, [LETTER] * 20)
    with pytest.raises(TooManyDeadLetters, match=r"of the last 2\d\d records .* \(empty\)"):
        stop_after(limit, 5, 40)


def test_the_distant_past_does_not_excuse() -> None:
    limit = DeadLetterLimit(share=0.9, window=100)
    limit.observe(1_000_000, [])
    with pytest.raises(TooManyDeadLetters):
        stop_after(limit, 11, 10)
