"""A million updates of a block's statistics, with the scheduled recomputation from the atoms."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.treecore.forests import gaussian, setting
from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import (
    Atoms,
    Partition,
    empty_partition,
    lift,
    open_block,
    place,
    rebuild_rows,
)

N, UPDATES, SCHEDULE = 200, 1_000_000, 100_000
BLOCKS = 4
TOLERANCE = 1e-8


@compiled
def _shuffle(atoms: Atoms, partition: Partition, script: NDArray[np.int64]) -> None:
    """Take each atom of the script (atom, slot) out and put it into that block."""
    atoms, partition = by_reference(atoms), by_reference(partition)
    for at in range(script.shape[0]):
        lift(atoms, partition, script[at, 0])
        place(atoms, partition, script[at, 0], script[at, 1])


@compiled
def _begin(atoms: Atoms, partition: Partition, n_blocks: int) -> None:
    atoms, partition = by_reference(atoms), by_reference(partition)
    for _ in range(n_blocks):
        open_block(partition)
    for i in range(atoms.size.shape[0]):
        place(atoms, partition, i, i % n_blocks)


def worst_error(atoms: Atoms, partition: Partition) -> float:
    """The largest error of a block's row, relative to the sum of its terms' sizes."""
    worst = 0.0
    for k in range(BLOCKS):
        rows = atoms.rows[partition.label == k].astype(np.longdouble)
        error = np.abs(partition.rows[k] - rows.sum(axis=0))
        worst = max(worst, float((error / np.abs(rows).sum(axis=0)).max()))
    return worst


@pytest.mark.parametrize("offset", [0.0, 10.0, 1000.0])
def test_a_million_updates(offset: float, rng: np.random.Generator) -> None:
    """In standard deviations from the prior mean; each update is a removal or an addition."""
    posed = setting(gaussian(np.zeros((1, 3))), offset + rng.normal(size=(N, 3)))
    partition = empty_partition(posed.family, N)
    _begin(posed.atoms, partition, BLOCKS)
    # The first atoms stay: a block that empties is closed, and its row is exactly zero again.
    moved = rng.integers(BLOCKS, N, size=UPDATES // 2)
    script = np.column_stack([moved, rng.integers(0, BLOCKS, size=moved.size)])
    for part in np.array_split(script, UPDATES // SCHEDULE):
        _shuffle(posed.atoms, partition, part)
        assert worst_error(posed.atoms, partition) < TOLERANCE
        rebuild_rows(posed.atoms, partition)
        assert worst_error(posed.atoms, partition) < 1e-13
