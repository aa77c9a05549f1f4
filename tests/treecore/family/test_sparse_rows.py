"""Sparse rows against dense ones: the same operations, the same numbers, within a bounded pool."""

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from tests.treecore.family.examples import Array
from weald.treecore.compiled.compile import compiled
from weald.treecore.errors import ObservationError
from weald.treecore.family import FAMILIES
from weald.treecore.family.discrete.sparse_multinomial import sparse_values
from weald.treecore.family.interface.base import (
    fill_predictive,
    log_marginal,
    log_marginal_sum,
    log_predictive,
    make_predictive,
    make_rows,
    observe,
    workspace,
)
from weald.treecore.statistics.rows import (
    add_row,
    clear_row,
    copy_row,
    is_single,
    rows_like,
    subtract_row,
    sum_rows,
)
from weald.treecore.statistics.sparse_rows import SparseRows, dense_row, find_word

N_WORDS, N_ATOMS, N_BLOCKS = 40, 10, 4
MULTINOMIAL = FAMILIES["multinomial"]
FAMILY = MULTINOMIAL.build({"beta": 0.3}, np.zeros((1, N_WORDS)))
Steps = NDArray[np.int64]


@compiled
def run(
    family: Any, values: Any, atoms: Any, blocks: Any, table: Any, steps: Steps, out: Array
) -> None:
    """Move atoms between blocks (atom, block, then what to do with a spare row) and measure."""
    work = np.zeros((1, 3 + family.vocabulary))
    for i in range(N_ATOMS):
        observe(family, values, i, atoms, i)
    home = np.full(N_ATOMS, -1)
    for s in range(steps.shape[0]):
        i, k, spare = steps[s, 0], steps[s, 1], steps[s, 2]
        if home[i] >= 0:
            subtract_row(blocks, home[i], atoms, i)
        home[i] = k
        out[s, 0] = log_marginal_sum(family, blocks, k, atoms, i, work)
        fill_predictive(family, blocks, k, table, k, work)
        out[s, 1] = log_predictive(family, table, k, atoms, i)
        out[s, 2] = log_marginal(family, blocks, k, work)
        add_row(blocks, k, atoms, i)
        out[s, 3] = log_marginal(family, blocks, k, work)
        if spare == 1:
            copy_row(blocks, N_BLOCKS, blocks, k)
        elif spare == 2:
            sum_rows(blocks, N_BLOCKS, k, (k + 1) % N_BLOCKS)
        elif spare == 3:
            clear_row(blocks, N_BLOCKS)
        out[s, 4] = log_marginal(family, blocks, N_BLOCKS, work)


def bags(seed: int) -> Array:
    rng = np.random.default_rng(seed)
    lengths = rng.choice([0, 3, 12, 40], size=N_ATOMS)
    shares = rng.dirichlet(np.full(N_WORDS, 0.2))
    return rng.multinomial(lengths, shares, size=N_ATOMS).astype(np.float64)


def steps_of(seed: int, *, spare: bool) -> Steps:
    rng = np.random.default_rng(seed)
    limits = [N_ATOMS, N_BLOCKS, 4 if spare else 1]
    return rng.integers(0, limits, size=(150, 3))


def check(rows: SparseRows) -> None:
    """Every segment inside the pool, in list order, with every word found where it is."""
    linked, i, top = [], int(rows.state[2]), 0
    while i >= 0:
        assert rows.start[i] >= top
        top = int(rows.start[i] + rows.room[i])
        linked.append(i)
        i = int(rows.after[i])
    assert top <= rows.state[0] <= rows.word.shape[0]
    assert rows.state[1] == rows.used.sum()
    for i in range(rows.head.shape[0]):
        assert 0 <= rows.used[i] <= rows.room[i]
        assert (i in linked) == (rows.room[i] > 0)
        slots = range(int(rows.start[i]), int(rows.start[i] + rows.used[i]))
        for slot in slots:
            assert find_word(rows, i, int(rows.word[slot])) == slot
        lookup = rows.lookup[2 * rows.start[i] : 2 * (rows.start[i] + rows.room[i])]
        assert np.count_nonzero(lookup) == rows.used[i]


def measured(values: Any, room_for: Any, steps: Steps) -> tuple[Array, Any]:
    atoms = make_rows(FAMILY, N_ATOMS, values)
    blocks = make_rows(FAMILY, N_BLOCKS + 1, room_for)
    table = make_predictive(FAMILY, N_BLOCKS + 1, blocks)
    out = np.zeros((steps.shape[0], 5))
    run(FAMILY, values, atoms, blocks, table, steps, out)
    return out, blocks


@pytest.mark.parametrize("spare", [False, True])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_sparse_and_dense_rows_agree(seed: int, spare: bool) -> None:
    values, steps = bags(seed), steps_of(seed, spare=spare)
    entries = sparse_values(sparse.csr_array(values))
    # The spare row may hold every entry a second time.
    room_for = sparse_values(sparse.csr_array(np.tile(values, (2, 1)))) if spare else entries
    expected, dense = measured(values, values, steps)
    found, blocks = measured(entries, room_for, steps)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    check(blocks)
    for i in range(N_BLOCKS + 1):
        np.testing.assert_array_equal(dense_row(blocks, i, N_WORDS), dense[i])
        assert is_single(blocks, i) == is_single(dense, i)


def test_more_than_the_rows_were_made_for_is_an_error_not_a_crash() -> None:
    values = np.ones((N_ATOMS, N_WORDS))
    entries, few = (sparse_values(sparse.csr_array(part)) for part in (values, values[:1, :1]))
    steps = np.array([[i, i % N_BLOCKS, 0] for i in range(N_ATOMS)])
    with pytest.raises(MemoryError, match="than they were made for"):
        measured(entries, few, steps)


def test_memory_follows_the_entries_and_not_the_vocabulary() -> None:
    rng = np.random.default_rng(5)
    words = rng.integers(0, 100_000, size=20_000)
    counts = np.ones(words.size)
    matrix: Any = sparse.csr_array((counts, words, np.arange(0, 20_001, 50)), shape=(400, 100_000))
    family = MULTINOMIAL.build({}, cast("Array", matrix))
    assert family.beta == pytest.approx(50.0 / 100_000, rel=0.01)
    values = sparse_values(matrix)
    rows: Any = make_rows(family, 404, values)
    pool = rows.word.nbytes + rows.seen.nbytes + rows.weight.nbytes + rows.lookup.nbytes
    assert pool <= 80 * counts.size
    # Trees, guides and pieces are made one like the other.
    alike: Any = rows_like(rows, 404, 1)
    assert alike.word.shape == rows.word.shape
    assert workspace(family).nbytes <= 8 * 100_003


def test_counts_that_are_none_are_named() -> None:
    matrix = sparse.csr_array(np.array([[0.0, 2.0], [1.0, -3.0]]))
    with pytest.raises(ObservationError, match="row 1, feature 1 is -3"):
        sparse_values(matrix)
