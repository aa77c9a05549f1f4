"""The invariants of a partition, checked from outside against its labels alone."""

import numpy as np

from weald.mcmc.state.atom_state import State
from weald.treecore.family.interface.base import log_marginal
from weald.treecore.partition.partition import Model, block_log_marginal


def members(state: State, k: int) -> list[int]:
    """Atoms of block k in the order of its list, whose backward links are checked on the way."""
    partition = state.partition
    found: list[int] = []
    i, before = int(partition.head[k]), -1
    while i >= 0:
        assert partition.preceding[i] == before
        found.append(i)
        i, before = int(partition.following[i]), i
    return found


def check_partition(state: State, model: Model) -> None:
    """Lists, sizes, statistics and slots say the same as the labels."""
    atoms, partition = state.atoms, state.partition
    n_blocks = int(partition.n_blocks[0])
    open_slots = partition.slots[:n_blocks].tolist()
    assert sorted(partition.slots.tolist()) == list(range(partition.slots.shape[0]))
    assert (partition.position[partition.slots] == np.arange(partition.slots.shape[0])).all()
    assert set(open_slots) == set(partition.label.tolist()) - {-1}
    for k in open_slots:
        mine = np.flatnonzero(partition.label == k)
        assert sorted(members(state, k)) == mine.tolist()
        assert partition.n_members[k] == mine.shape[0]
        assert partition.size[k] == atoms.size[mine].sum()
        row = atoms.rows[mine].sum(axis=0, keepdims=True)
        np.testing.assert_allclose(partition.rows[k], row[0], rtol=1e-9, atol=1e-9)
        expected = log_marginal(model.family, row, 0, model.work)
        np.testing.assert_allclose(block_log_marginal(model, partition, k), expected, rtol=1e-9)
    assert not partition.rows[partition.slots[n_blocks:]].any(), "a closed slot's row is not zero"
