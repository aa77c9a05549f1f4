"""Draws with every atom in the cluster that is most probable for it.

Given the partition, an atom goes where prior and predictive density of the other atoms put the
most weight, all by the partition as it was drawn (and the prior's auxiliary variables, where it has
them). What is left between such draws is how many clusters there are and where they lie; which of
two overlapping clusters an atom was drawn into by chance is gone. That chance differs in each draw,
so over draws as they are the variation of information is least when overlapping clusters are
joined; over relabelled draws they stay apart.
"""

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.estimate.consensus import Draws
from weald.mcmc.gibbs.gibbs import log_alone, seating_weights, weights_by_words
from weald.mcmc.state.atom_state import State, make_state
from weald.treecore.compiled.compile import compiled, generic, implements, inner
from weald.treecore.compiled.reference import by_reference
from weald.treecore.family.discrete.word_index import enter_row, make_index, withdraw_row
from weald.treecore.partition.partition import Atoms, Model, lift, open_block, place
from weald.treecore.prior.sequential import canonical_labels
from weald.treecore.statistics.rows import Rows
from weald.treecore.statistics.sparse_rows import SparseRows

__all__ = ["disputed", "relabelled", "relabelled_draws"]

Labels = NDArray[np.int64]


@inner
def _settle(
    state: State, name: Labels, i: int, left: int, was_alone: bool, k: int, found: Labels
) -> int:
    """Note where lifted atom i is most probable, by ``state.log_weights``, and put it back."""
    partition, own = state.partition, name[left]
    best = k if was_alone else 0
    for at in range(k):
        if state.log_weights[at] > state.log_weights[best]:
            best = at
    found[i] = own if best == k else name[partition.slots[best]]
    # A block that is closed and opened again may change its slot; its name stays.
    slot = open_block(partition) if was_alone else left
    name[slot] = own
    place(state.atoms, partition, i, slot)
    return slot


@generic
def _visit(rows: Rows, state: State, model: Model, asked: Labels, found: Labels) -> None:
    """Find the most probable block of each atom of ``asked``; ``rows`` are the atoms' own."""
    raise NotImplementedError


@implements(_visit, np.ndarray)
def _visit_dense(_rows: Rows, state: State, model: Model, asked: Labels, found: Labels) -> None:
    partition = state.partition
    name = np.arange(partition.slots.shape[0])
    for i in asked:
        left = lift(state.atoms, partition, i)
        was_alone = partition.n_members[left] == 0
        k = seating_weights(state, model, i, log_alone(state, model, i))
        _settle(state, name, i, left, was_alone, k, found)


@implements(_visit, SparseRows)
def _visit_sparse(
    rows: SparseRows, state: State, model: Model, asked: Labels, found: Labels
) -> None:
    partition = state.partition
    name = np.arange(partition.slots.shape[0])
    index = make_index(rows, partition.label, partition.slots.shape[0], model.family.vocabulary)
    for i in asked:
        left = lift(state.atoms, partition, i)
        was_alone = partition.n_members[left] == 0
        withdraw_row(index, left, rows, i)
        k = weights_by_words(index, state, model, i)
        enter_row(index, _settle(state, name, i, left, was_alone, k, found), rows, i)


@compiled
def _most_probable(state: State, model: Model, asked: Labels, found: Labels) -> None:
    state, model = by_reference(state), by_reference(model)
    _visit(state.atoms.rows, state, model, asked, found)


def relabelled(
    state: State, model: Model, asked: Labels | None = None, places: Labels | None = None
) -> Labels:
    """Canonical labels (n) with each atom in the open block, or alone, that is most probable.

    Only the atoms ``asked`` about may move, where they are given; the labels are of all atoms, or
    of those in these ``places`` (n). The state ends with the blocks that it had.
    """
    n = state.atoms.size.shape[0]
    found = state.partition.label[:n].copy()
    _most_probable(state, model, np.arange(n) if asked is None else asked, found)
    return canonical_labels(found if places is None else found[places])


def disputed(draws: Draws) -> Labels:
    """Rising places of the atoms on which draws (t, n) of canonical labels do not agree.

    The draws agree on an atom that is in each of them with most of its block of the last one.
    """
    last, n = draws[-1], draws.shape[1]
    agreed = np.ones(n, dtype=np.bool_)
    for draw in draws[:-1]:
        width = int(draw.max(initial=0)) + 1
        pair = last * width + draw
        pairs, count = np.unique(pair, return_counts=True)
        by_count = pairs[np.argsort(count, kind="stable")]
        # The largest of a block's parts comes last, and is what stays.
        home = np.zeros(int(last.max(initial=0)) + 1, dtype=np.int64)
        home[by_count // width] = by_count
        agreed &= pair == home[last]
    return np.flatnonzero(~agreed)


def relabelled_draws(
    draws: Draws, atoms: Atoms, model: Model, places: Labels | None = None
) -> Draws:
    """Draws (t, n) in which each atom that they do not agree on is where it is most probable.

    An atom on which all draws agree is left: it costs nothing, and is surely where it belongs.
    ``draws`` are canonical labels of ``atoms``, or of those in these ``places`` (n, rising) where
    there are others; ``model`` is the present one also for draws that were made under other
    hyperparameters.
    """
    asked = disputed(draws)
    if len(asked) == 0:
        return draws
    found, state = np.empty_like(draws), None
    asked = asked if places is None else places[asked]
    for at, labels in enumerate(draws):
        state = make_state(model.family, atoms, labels, state, places)
        found[at] = relabelled(state, model, asked, places)
    return found
