"""The index of words against the rows themselves: densities under all blocks, and moves."""

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from scipy.sparse import csr_array

from weald.treecore.family import FAMILIES
from weald.treecore.family.discrete.sparse_multinomial import sparse_values
from weald.treecore.family.discrete.word_index import (
    WordIndex,
    enter_row,
    log_joins,
    make_index,
    withdraw_row,
)
from weald.treecore.family.interface.base import (
    log_marginal,
    log_marginal_sum,
    make_rows,
    observe,
    workspace,
)
from weald.treecore.statistics.rows import add_row, fade_row, rows_like

N_WORDS, N_ATOMS, N_BLOCKS = 30, 24, 6
FAMILY = FAMILIES["multinomial"].build({"beta": 0.3}, np.zeros((1, N_WORDS)))


def atom_rows(rng: Generator, factor: float) -> Any:
    """Atoms of one bag or two, some of them empty, whose weights have shrunk by the factor."""
    lengths = rng.choice([0, 3, 12, 40], size=2 * N_ATOMS)
    shares = rng.dirichlet(np.full(N_WORDS, 0.2), size=3)
    counts = np.stack([rng.multinomial(n, shares[at % 3]) for at, n in enumerate(lengths)])
    values: Any = sparse_values(csr_array(counts.astype(np.float64)))
    rows = make_rows(FAMILY, 2 * N_ATOMS, values)
    for i in range(2 * N_ATOMS):
        observe(FAMILY, values, i, rows, i)
    for i in range(0, N_ATOMS, 3):
        add_row(rows, i, rows, N_ATOMS + i)
    for i in range(2 * N_ATOMS if factor < 1.0 else 0):
        fade_row(rows, i, factor)
    return rows


def content(index: WordIndex) -> list[dict[int, tuple[int, float]]]:
    """Of each word, how many atoms and how much weight each block has."""
    found = []
    for word in range(N_WORDS):
        places = range(index.start[word], index.start[word] + index.used[word])
        found.append({index.block[at]: (index.n_atoms[at], index.weight[at]) for at in places})
    return found


@pytest.mark.parametrize("factor", [1.0, 0.37])
def test_densities_are_those_of_the_rows(factor: float) -> None:
    rng = np.random.default_rng(3)
    rows = atom_rows(rng, factor)
    label = rng.integers(-1, N_BLOCKS, size=N_ATOMS)
    blocks = rows_like(rows, N_BLOCKS, 2)
    for i, k in enumerate(label.tolist()):
        if k >= 0:
            add_row(blocks, k, rows, i)
    index = make_index(rows, label, N_BLOCKS, N_WORDS)
    slots = rng.permutation(N_BLOCKS)
    work, out = workspace(FAMILY), np.empty(N_BLOCKS)
    outside = [i for i, k in enumerate(label.tolist()) if k < 0]
    assert outside
    for i in outside:
        log_joins(index, FAMILY, blocks, slots, rows, i, out)
        for at, k in enumerate(slots.tolist()):
            union = log_marginal_sum(FAMILY, blocks, k, rows, i, work)
            assert out[at] == pytest.approx(union - log_marginal(FAMILY, blocks, k, work), abs=1e-9)


def test_moves_leave_what_would_be_made_anew() -> None:
    rng = np.random.default_rng(4)
    rows = atom_rows(rng, 1.0)
    label = np.full(N_ATOMS, -1)
    index = make_index(rows, label, N_BLOCKS, N_WORDS)
    for _ in range(300):
        i, k = int(rng.integers(N_ATOMS)), int(rng.integers(-1, N_BLOCKS))
        if label[i] >= 0:
            withdraw_row(index, int(label[i]), rows, i)
        label[i] = k
        if k >= 0:
            enter_row(index, k, rows, i)
        assert content(index) == content(make_index(rows, label, N_BLOCKS, N_WORDS))
