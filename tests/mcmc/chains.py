"""Chains to test with."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.treecore.invariants import Broken, forest_faults, partition_faults
from weald.mcmc.chain.chain import MixtureChain
from weald.treecore.family import FAMILIES
from weald.treecore.prior import build_prior

Values = NDArray[np.float64]

# Priors of product form and others; the last one allows fewer blocks than there are clumps.
PRIORS: dict[str, tuple[str, dict[str, Any]]] = {
    "dp": ("dp", {"learn": True}),
    "nggp": ("nggp", {"learn": True, "learn_sigma": True}),
    "pitman-yor": ("pitman-yor", {"learn": True}),
    "mfm": ("mfm", {"learn": True}),
    "emm": ("emm", {"kmax": 3}),
}


def clumps(seed: int, n: int, k: int = 5) -> Values:
    """Observations (n, 2) in k clumps, some of which overlap."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=4.0, size=(k, 2))
    return centres[rng.integers(k, size=n)] + rng.normal(size=(n, 2))


def started(prior: str, values: Values, seed: int = 1) -> MixtureChain:
    """An empty chain whose family is made for these observations."""
    family = FAMILIES["gaussian"].build({}, values)
    return MixtureChain.start(family, build_prior(*PRIORS[prior]), seed=seed)


def chain_faults(chain: MixtureChain) -> Broken:
    """What is broken in the forest and the partition of a chain."""
    forest_model = chain._first_model(0)
    model = chain._model(0)
    state = chain._state
    broken = forest_faults(forest_model, chain._forest)
    return broken | partition_faults(model, state.atoms, state.partition)


def same(one: MixtureChain, other: MixtureChain) -> bool:
    """Whether two chains stand at the same point, bit for bit."""
    a, b = one.state(), other.state()
    # Arrays have room to spare, more or less of it.
    room = {"state_capacity", "state_slots", "forest_n_atoms"}
    return a.keys() == b.keys() and all(
        np.array_equal(a[key], b[key]) for key in a if key not in room
    )
