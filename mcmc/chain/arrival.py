"""Arrival and departure of observations, and questions about them, compiled."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.gibbs import gibbs
from weald.mcmc.state.atom_state import State
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.reference import by_reference
from weald.treecore.family.interface.base import log_marginal, observe
from weald.treecore.forest.forest import Forest, add_leaf
from weald.treecore.forest.insertion import PREDICTIVE, insert_tree, remove_atom
from weald.treecore.partition.partition import Model, lift, link, log_join, unlink
from weald.treecore.prior.base import log_growth, log_new_block, log_size
from weald.treecore.statistics.rows import clear_row

from .tree_placement import place_by_tree

__all__ = ["arrive", "depart", "joint_weights", "log_alone", "replace_block"]


@inner
def _likeliest(state: State, k: int) -> int:
    """Slot of the greatest of k weights of open blocks and one of a new block, -1 for the last."""
    best, slot = state.log_weights[k], -1
    for at in range(k):
        if state.log_weights[at] > best:
            best, slot = state.log_weights[at], state.partition.slots[at]
    return slot


@compiled
def arrive(
    rng: Generator,
    forest_model: Model,
    model: Model,
    forest: Forest,
    state: State,
    values: NDArray[np.float64],
    ids: NDArray[np.int64],
    likeliest: NDArray[np.int64],
    by_trees: bool,
) -> tuple[int, int, int, int]:
    """Insert observations (n, d) as the atoms ``ids`` (n) into forest and partition.

    ``likeliest`` (n) takes the slot of the block that was most probable for each when it came, -1
    for a new one. With ``by_trees`` it stops after the first of them that moved others by its place
    in the forest. Returns how many are in, and what :func:`place_by_tree` says of the last.
    """
    forest_model, model, forest, state = (
        by_reference(forest_model),
        by_reference(model),
        by_reference(forest),
        by_reference(state),
    )
    atoms = state.atoms
    for r in range(values.shape[0]):
        i = ids[r]
        observe(model.family, values, r, atoms.rows, i)
        atoms.size[i] = 1
        atoms.single[i] = 1
        leaf = add_leaf(forest_model, forest, i, atoms.rows, i, 1)
        # The forest's own is under the base measure of the beginning.
        atoms.log_marginal[i] = log_marginal(model.family, atoms.rows, i, model.work)
        insert_tree(forest_model, forest, leaf, PREDICTIVE)
        k = gibbs.seating_weights(state, model, i, gibbs.log_alone(state, model, i))
        likeliest[r] = _likeliest(state, k)
        gibbs.seat(rng, state, i, k)
        if by_trees:
            n_moved, before, after = place_by_tree(rng, state, model, forest, i)
            if n_moved > 0:
                return r + 1, n_moved, before, after
    return values.shape[0], 0, -1, -1


@compiled
def log_alone(model: Model, state: State, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log marginal likelihood of each of the observations (n, d) alone, none of which stays."""
    model, state = by_reference(model), by_reference(state)
    rows = state.atoms.rows
    found = np.empty(values.shape[0])
    for r in range(values.shape[0]):
        # The last atom row is kept free for questions.
        observe(model.family, values, r, rows, rows.shape[0] - 1)
        found[r] = log_marginal(model.family, rows, rows.shape[0] - 1, model.work)
    return found


@compiled
def depart(forest_model: Model, forest: Forest, state: State, ids: NDArray[np.int64]) -> None:
    """Take the atoms ``ids`` out of forest and partition, leaving their places as if never used."""
    forest_model, forest, state = (
        by_reference(forest_model),
        by_reference(forest),
        by_reference(state),
    )
    atoms, partition = state.atoms, state.partition
    for r in range(ids.shape[0]):
        i = ids[r]
        lift(atoms, partition, i)
        partition.following[i] = -1
        partition.preceding[i] = -1
        remove_atom(forest_model, forest, i)
        clear_row(atoms.rows, i)
        atoms.size[i] = 0
        atoms.single[i] = 1
        atoms.log_marginal[i] = 0.0


@compiled
def replace_block(
    forest_model: Model,
    model: Model,
    forest: Forest,
    state: State,
    atom: int,
    values: NDArray[np.float64],
    ids: NDArray[np.int64],
) -> None:
    """Put an atom's observations (n, d) in its place, as the atoms ``ids`` (n, which may name it).

    They are in the block where it was, whose statistics stay what they are.
    """
    forest_model, model, forest, state = (
        by_reference(forest_model),
        by_reference(model),
        by_reference(forest),
        by_reference(state),
    )
    atoms, partition = state.atoms, state.partition
    # Block k keeps its statistics throughout: what is taken out and put in adds up to the same.
    k = unlink(partition, atom)
    remove_atom(forest_model, forest, atom)
    # Its id may be one of those that come.
    atoms.size[atom] = 0
    for r in range(values.shape[0]):
        i = ids[r]
        observe(forest_model.family, values, r, atoms.rows, i)
        atoms.size[i] = 1
        atoms.single[i] = 1
        leaf = add_leaf(forest_model, forest, i, atoms.rows, i, 1)
        atoms.log_marginal[i] = log_marginal(model.family, atoms.rows, i, model.work)
        insert_tree(forest_model, forest, leaf, PREDICTIVE)
        link(partition, i, k)


@compiled
def joint_weights(
    model: Model, state: State, values: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Log weight of each observation joining each open block, then of a new block."""
    model, state = by_reference(model), by_reference(state)
    partition, atoms = state.partition, state.atoms
    k = partition.n_blocks[0]
    last = atoms.rows.shape[0] - 1
    for r in range(values.shape[0]):
        # The last atom row is kept free for questions.
        observe(model.family, values, r, atoms.rows, last)
        for at in range(k):
            slot = partition.slots[at]
            out[r, at] = log_growth(model.seating, partition.size[slot], 1)
            out[r, at] += log_join(model, atoms, partition, last, slot)
        alone = log_marginal(model.family, atoms.rows, last, model.work)
        out[r, k] = log_new_block(model.seating, k) + log_size(model.seating, 1) + alone
