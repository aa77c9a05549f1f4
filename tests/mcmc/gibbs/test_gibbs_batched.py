"""Gibbs sampling by tables side by side: the chain that asks one block after another."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from weald.mcmc.gibbs import gibbs
from weald.mcmc.state.atom_state import State, make_state
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import make_batched, make_rows, observe, workspace
from weald.treecore.family.interface.batched_predictive import BatchedPredictives
from weald.treecore.partition.partition import Model, make_atoms
from weald.treecore.prior import build_prior
from weald.treecore.statistics.rows import add_row

N, N_PAIRS, SWEEPS = 36, 4, 3


def atoms_with_pairs(family: Any, values: NDArray[np.float64]) -> Any:
    """An atom an observation, and the last few together in pairs."""
    n = values.shape[0]
    rows = make_rows(family, n, values)
    size = np.ones(n - N_PAIRS, dtype=np.int64)
    for i in range(n):
        observe(family, values, i, rows, i)
    for pair in range(N_PAIRS):
        add_row(rows, pair, rows, n - 1 - pair)
        size[pair] = 2
    return make_atoms(family, rows[: n - N_PAIRS].copy(), size, workspace(family))


def started(name: str) -> tuple[State, Model]:
    """Six groups, all in one block at first, so that blocks outgrow the first room."""
    rng = np.random.default_rng(2)
    centres = rng.normal(scale=8.0, size=(6, 3))
    values = centres[rng.integers(0, 6, N)] + rng.normal(size=(N, 3))
    if name == "bernoulli":
        values = (values > 0.0).astype(np.float64)
    family = FAMILIES[name].build({}, values)
    assert isinstance(make_batched(family, 1), BatchedPredictives)
    atoms = atoms_with_pairs(family, values)
    n = atoms.size.shape[0]
    seating = build_prior("dp", {"alpha": 30.0}).seating(N, n)
    return make_state(family, atoms, np.zeros(n)), Model(family, seating, workspace(family))


@pytest.mark.parametrize("name", ["gaussian", "bernoulli"])
def test_the_same_draws_as_one_block_after_another(name: str) -> None:
    (state, model), (other, alike) = started(name), started(name)
    rng, same = np.random.default_rng(5), np.random.default_rng(5)
    most = 0
    for _ in range(SWEEPS):
        visited = rng.permutation(state.atoms.size.shape[0])
        assert (same.permutation(visited.shape[0]) == visited).all()
        # Interpreted: the sources run as they are.
        gibbs.visit(rng, state, model, visited)
        for i in visited.tolist():
            gibbs.step(same, other, alike, i)
        assert state.partition.label.tolist() == other.partition.label.tolist()
        most = max(most, int(state.partition.n_blocks[0]))
    assert most > 4
    assert rng.random() == same.random()
