"""State for a stream: arrays with room to spare, enlarged between batches, saved as plain ones."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.state.atom_state import State
from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.reference import by_reference
from weald.treecore.family import spec_of
from weald.treecore.family.interface.base import Family, statistics_width
from weald.treecore.family.same_kind import n_features_of
from weald.treecore.forest.compaction import forest_order, recompute
from weald.treecore.forest.forest import Forest, empty_forest
from weald.treecore.partition.partition import (
    Atoms,
    Model,
    Partition,
    empty_partition,
    mark_changed,
)
from weald.treecore.statistics.room import longer

__all__ = [
    "empty_state",
    "enlarged_state",
    "forest_arrays",
    "mark_all",
    "restored_forest",
    "restored_state",
    "state_arrays",
    "taken_from",
    "under",
]

Arrays = dict[str, NDArray[Any]]
_INNER = -1
_NONE = -1
_FOREST_NODES = ("parent", "left", "right", "atom")
# What nodes have that lag behind their leaves (``treecore/forest/deferral.py``), and no others.
_FOREST_STALE = ("log_potential", "log_dissimilarity", "stale")
# Leaves whose rows are compared at once: these fit into the processor's cache.
_COMPARED = 1024
_PARTITION_ATOMS = ("label", "following", "preceding")
_BLOCKS = ("head", "n_members", "size", "rows")
_BY_BLOCK = (*_BLOCKS, "log_marginal", "predictive", "stale")


def empty_state(family: Family, capacity: int) -> State:
    """State with room for ``capacity`` atoms, none of which is there yet."""
    atoms = Atoms(
        size=np.zeros(capacity, dtype=np.int64),
        rows=np.zeros((capacity, statistics_width(family))),
        log_marginal=np.zeros(capacity),
        single=np.ones(capacity, dtype=np.uint8),
    )
    return State(
        atoms,
        empty_partition(family, capacity),
        np.zeros(capacity + 4),
        np.zeros(capacity, dtype=np.int64),
        np.zeros(capacity, dtype=np.int64),
        np.zeros(capacity, dtype=np.int8),
    )


def enlarged_state(state: State, capacity: int) -> State:
    """The same state with more room; the given one must not be used any more."""
    atoms, partition = state.atoms, state.partition
    held = atoms.size.shape[0]
    slots = partition.slots.shape[0]
    by_slot = capacity + slots - held
    # There is room for a block an atom, and pages of those that never were cost no memory.
    open_slots = partition.slots[: int(partition.n_blocks[0])]
    larger = State(
        Atoms(
            longer(atoms.size, capacity),
            longer(atoms.rows, capacity),
            longer(atoms.log_marginal, capacity),
            longer(atoms.single, capacity),
        ),
        partition._replace(
            **{name: longer(getattr(partition, name), capacity) for name in _PARTITION_ATOMS},
            **{name: longer(getattr(partition, name), by_slot, open_slots) for name in _BY_BLOCK},
            slots=longer(partition.slots, by_slot),
            position=longer(partition.position, by_slot),
        ),
        longer(state.log_weights, capacity + 4),
        longer(state.members, capacity),
        longer(state.order, capacity),
        longer(state.side, capacity),
    )
    larger.atoms.single[held:] = 1
    for name in _PARTITION_ATOMS:
        getattr(larger.partition, name)[held:] = _NONE
    for places in (larger.partition.slots, larger.partition.position):
        places[slots:] = np.arange(slots, by_slot)
    return larger


def state_arrays(state: State, n: int) -> Arrays:
    """What :func:`restored_state` needs to go on bit for bit, for atoms 0 to n - 1."""
    partition = state.partition
    n_blocks = int(partition.n_blocks[0])
    open_slots = partition.slots[:n_blocks]
    saved: Arrays = {name: getattr(partition, name)[:n].copy() for name in _PARTITION_ATOMS}
    saved["capacity"] = np.array([state.atoms.size.shape[0]])
    saved["slots"] = partition.slots.copy()
    saved["n_blocks"] = partition.n_blocks.copy()
    for name in _BLOCKS:
        saved[f"block_{name}"] = getattr(partition, name)[open_slots].copy()
    saved["atom_size"] = state.atoms.size[:n].copy()
    saved["atom_single"] = state.atoms.single[:n].copy()
    return saved


def restored_state(family: Family, forest: Forest, saved: Arrays) -> State:
    """State from :func:`state_arrays`; the atoms' statistics are their leaves'."""
    n = saved["label"].shape[0]
    state = empty_state(family, int(saved["capacity"][0]))
    atoms, partition = state.atoms, state.partition
    atoms.size[:n] = saved["atom_size"]
    atoms.single[:n] = saved["atom_single"]
    present = np.flatnonzero(forest.leaf[:n] >= 0)
    atoms.rows[present] = forest.rows[forest.leaf[present]]
    atoms.log_marginal[present] = forest.log_marginal[forest.leaf[present]]
    for name in _PARTITION_ATOMS:
        getattr(partition, name)[:n] = saved[name]
    partition.slots[:] = saved["slots"]
    partition.position[partition.slots] = np.arange(partition.slots.shape[0], dtype=np.int64)
    partition.n_blocks[:] = saved["n_blocks"]
    open_slots = partition.slots[: int(partition.n_blocks[0])]
    for name in _BLOCKS:
        getattr(partition, name)[open_slots] = saved[f"block_{name}"]
    mark_all(partition)
    return state


@compiled
def mark_all(partition: Partition) -> None:
    """Have everything that follows from the blocks' rows recomputed when it is asked for."""
    partition = by_reference(partition)
    for at in range(partition.n_blocks[0]):
        mark_changed(partition, partition.slots[at])


def forest_arrays(family: Family, forest: Forest) -> Arrays:
    """What :func:`restored_forest` needs.

    Rows of inner nodes are sums of their children's. What else these have follows from the rows,
    except for what was brought up to date by one observation at a time, which has a rounding of its
    own, and for what lags behind. Leaves of single observations may follow from their sums.
    """
    used = int(forest.n_used[0])
    saved: Arrays = {name: getattr(forest, name)[:used].copy() for name in _FOREST_NODES}
    saved["node_size"] = forest.size[:used].copy()
    leaves = np.flatnonzero(saved["atom"] >= 0)
    saved |= _leaf_arrays(family, forest.rows, leaves)
    saved["log_marginal"] = forest.log_marginal[:used].copy()
    aged = np.flatnonzero((saved["atom"] == _INNER) & (forest.table_age[:used] > 1))
    saved["aged"], saved["age"] = aged, forest.table_age[aged]
    saved["aged_tables"] = forest.predictive[aged]
    saved["weighed"] = forest.weighed[:used].copy()
    saved["stale"] = np.flatnonzero((saved["atom"] == _INNER) & (forest.stale[:used] > 0))
    for name in _FOREST_STALE:
        saved[f"stale_{name}"] = getattr(forest, name)[saved["stale"]]
    saved["roots"] = forest.roots[: int(forest.n_roots[0])].copy()
    saved["free"] = forest.free[: int(forest.n_free[0])].copy()
    saved["n_atoms"] = np.array([forest.leaf.shape[0]])
    return saved


def _leaf_arrays(family: Family, rows: NDArray[np.float64], leaves: NDArray[np.int64]) -> Arrays:
    """Rows of the leaves (n): the sums of those that follow from them, the others whole."""
    rows_of_sums = spec_of(family).rows_of_sums
    if rows_of_sums is None:
        return {"leaf_rows": rows[leaves]}
    sums = rows[leaves, 2 : 2 + n_features_of(family)]
    whole = np.zeros(len(leaves), dtype=np.bool_)
    for part in _parts(len(leaves)):
        made = rows_of_sums(sums[part])
        _compare(made.view(np.int64), rows.view(np.int64), leaves[part], whole[part])
    at = np.flatnonzero(whole)
    return {"leaf_sums": sums, "whole_leaf": at, "leaf_rows": rows[leaves[at]]}


@compiled
def _compare(
    made: NDArray[np.int64],
    bits: NDArray[np.int64],
    leaves: NDArray[np.int64],
    whole: NDArray[np.bool_],
) -> None:
    """Tell which leaves (k) have other rows than were made (k, m), to the sign of a zero."""
    for at in range(leaves.shape[0]):
        for c in range(made.shape[1]):
            if made[at, c] != bits[leaves[at], c]:
                whole[at] = True
                break


def _restore_leaf_rows(
    family: Family, rows: NDArray[np.float64], leaves: NDArray[np.int64], saved: Arrays
) -> None:
    """Undo :func:`_leaf_arrays`; an earlier Weald kept all rows whole."""
    rows_of_sums = spec_of(family).rows_of_sums
    if rows_of_sums is None or "leaf_sums" not in saved:
        rows[leaves] = saved["leaf_rows"]
        return
    for part in _parts(len(leaves)):
        rows[leaves[part]] = rows_of_sums(saved["leaf_sums"][part])
    rows[leaves[saved["whole_leaf"]]] = saved["leaf_rows"]


def _parts(n: int) -> Iterator[slice]:
    """The first n in parts."""
    return (slice(start, min(start + _COMPARED, n)) for start in range(0, n, _COMPARED))


def restored_forest(family: Family, model: Model, saved: Arrays) -> Forest:
    """Forest from :func:`forest_arrays` under the model that its potentials are computed for."""
    forest = empty_forest(family, int(saved["n_atoms"][0]))
    used = saved["atom"].shape[0]
    for name in _FOREST_NODES:
        getattr(forest, name)[:used] = saved[name]
    forest.size[:used] = saved["node_size"]
    leaves = np.flatnonzero(saved["atom"] >= 0)
    _restore_leaf_rows(family, forest.rows, leaves, saved)
    forest.leaf[saved["atom"][leaves]] = leaves
    forest.n_used[0] = used
    for name in ("roots", "free"):
        getattr(forest, name)[: saved[name].shape[0]] = saved[name]
        getattr(forest, f"n_{name}")[0] = saved[name].shape[0]
    forest.root_position[saved["roots"]] = np.arange(saved["roots"].shape[0], dtype=np.int64)
    if "aged" not in saved:
        # Written before tables were kept: the marginals are what they were, up to rounding.
        recompute(model, forest, forest_order(forest), marginals_known=False)
        return forest
    forest.log_marginal[:used] = saved["log_marginal"]
    recompute(model, forest, forest_order(forest), marginals_known=True)
    forest.table_age[saved["aged"]] = saved["age"]
    forest.predictive[saved["aged"]] = saved["aged_tables"]
    if "stale" in saved:  # else written before anything was deferred
        forest.weighed[:used] = saved["weighed"]
        for name in _FOREST_STALE:
            getattr(forest, name)[saved["stale"]] = saved[f"stale_{name}"]
    return forest


def under(prefix: str, arrays: Arrays) -> Arrays:
    """The same arrays, their names with a prefix."""
    return {prefix + name: array for name, array in arrays.items()}


def taken_from(saved: Arrays, prefix: str) -> Arrays:
    """Undo :func:`under`: the arrays that have the prefix."""
    return {
        name.removeprefix(prefix): array for name, array in saved.items() if name.startswith(prefix)
    }
