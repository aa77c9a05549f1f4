"""Between publications an arrival joins the cluster of its most probable block."""

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
    drawn = np.array([9, 5, 0, 3, 3, 1, 3])
    placed, born = Arrivals(slots, clusters, 20).place(drawn, drawn)
    assert placed.tolist() == [2, 3, 4, 20, 20, 21, 20]
    assert born == [3, 5]


def test_nothing_was_there_before() -> None:
    nothing = np.empty(0, dtype=np.int64)
    drawn = np.array([6, 6, 2])
    placed, born = Arrivals(nothing, nothing, 1).place(drawn, drawn)
    assert (placed.tolist(), born) == ([1, 1, 2], [0, 2])


def test_what_is_most_probable_is_shown_and_what_opens_a_block_is_new() -> None:
    arrivals = Arrivals(np.array([0, 0, 5]), np.array([4, 4, 8]), 20)
    # Drawn into one block and likelier in another; into one though a new one was likelier; the
    # first of a new block, and the next that was drawn there; the one that it is likeliest for.
    placed, born = arrivals.place(np.array([0, 5, 3, 3, 0]), np.array([5, -1, 0, 0, 3]))
    assert placed.tolist() == [8, 8, 20, 4, 4]
    assert born == [2]
    # Of slot 3 both clusters have one member: the older one is shown.
    assert arrivals.homes == {0: 4, 5: 8, 3: 4}


def test_it_does_not_matter_where_the_interval_is_cut(rng: np.random.Generator) -> None:
    slots, likeliest = rng.integers(0, 6, size=90), rng.integers(-1, 6, size=90)
    clusters = rng.integers(1, 5, size=30)
    slots[:30] %= 4  # later ones open blocks
    # Likeliest are blocks that are open by then.
    late = np.array([not set(likeliest[[i]]) <= {-1, *slots[:i]} for i in range(90)])
    likeliest[late] = -1
    whole, _ = Arrivals(slots[:30], clusters, 9).place(slots[30:], likeliest[30:])
    for cut in (31, 41, 60, 89):
        arrivals = Arrivals(slots[:30], clusters, 9)
        first, born = arrivals.place(slots[30:cut], likeliest[30:cut])
        known = np.concatenate([clusters, first])
        again = Arrivals(slots[:cut], known, 9 + len(born))
        assert again.homes == arrivals.homes
        second, _ = again.place(slots[cut:], likeliest[cut:])
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


def test_atoms_that_leave_take_their_votes_with_them(rng: np.random.Generator) -> None:
    slots, clusters = rng.integers(0, 6, size=60), rng.integers(1, 5, size=60)
    sizes = rng.integers(1, 4, size=60)
    arrivals = Arrivals(slots, clusters, 9, sizes)
    for gone in np.split(rng.permutation(60), 12):
        arrivals.left(slots[gone], clusters[gone], sizes[gone])
        sizes[gone] = 0
        stay = sizes > 0
        assert arrivals.homes == Arrivals(slots[stay], clusters[stay], 9, sizes[stay]).homes
    assert arrivals.homes == {}


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
