"""Small posteriors under any prior, and the data sets of the specification's oracles."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import log_marginal, observe, statistics_width, workspace
from weald.treecore.partition.partition import Atoms, Model, make_atoms
from weald.treecore.prior import PartitionPrior, build_prior

from .cases import Problem, _log_target
from .enumeration import Shape, partitions

GAUSS1 = np.array([[-1.3], [-1.0], [0.2], [0.9], [1.6], [-0.4]])
GAUSS2 = np.array([[-1.2, 0.4], [-0.9, 0.7], [0.8, -0.6], [1.1, -0.2], [0.1, 0.9], [-0.3, -0.5]])
BERN = np.array(
    [[1, 0, 1], [1, 1, 1], [0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=np.float64
)

# Family, its hyperparameters, observations.
DATA: dict[str, tuple[str, dict[str, Any], NDArray[np.float64]]] = {
    "gauss1": ("gaussian", {"mean": [0.0], "kappa": 0.5, "nu": 3.0, "psi": [[1.0]]}, GAUSS1),
    "gauss2": (
        "gaussian",
        {"mean": [0.0, 0.0], "kappa": 0.25, "nu": 4.0, "psi": [[1.0, 0.2], [0.2, 0.8]]},
        GAUSS2,
    ),
    "bern": ("bernoulli", {"a": 0.6, "b": 0.9}, BERN),
}

# Auxiliary variables stand still: u = 2 and g = 2.5.
PRIORS: dict[str, tuple[str, dict[str, Any]]] = {
    "dp": ("dp", {"alpha": 1.0}),
    "nggp": ("nggp", {"alpha": 1.0, "sigma": 0.5, "log_u": float(np.log(2.0))}),
    "pitman-yor": ("pitman-yor", {"alpha": 1.0, "discount": 0.5, "g": 2.5}),
    "mfm": ("mfm", {"gamma": 1.0, "mean": 1.5}),
    "emm": ("emm", {"kmax": 3}),
}


def pose(data: str, owner: NDArray[np.int64]) -> tuple[Any, Atoms]:
    """Family, and atoms of which atom ``owner[r]`` holds observation r."""
    name, parameters, values = DATA[data]
    family = FAMILIES[name].build(parameters, values)
    size = np.bincount(owner)
    rows = np.zeros((size.shape[0], statistics_width(family)))
    single = np.zeros((1, rows.shape[1]))
    for r, atom in enumerate(owner):
        observe(family, values, r, single, 0)
        rows[atom] += single[0]
    return family, make_atoms(family, rows, size, workspace(family))


def posed(data: str, prior: str, owner: int | list[int]) -> Problem:
    """Posterior of the first observations, given auxiliary variables; ``owner`` as in :func:`pose`.

    A number of observations stands for an atom each.
    """
    owners = np.arange(owner) if isinstance(owner, int) else np.array(owner)
    family, atoms = pose(data, owners)
    n = atoms.size.shape[0]
    seating = build_prior(*PRIORS[prior]).seating(owners.shape[0], n)
    model = Model(family, seating, workspace(family))
    weighed = [(state, _log_target(model, atoms, state)) for state in partitions(n)]
    states = [state for state, weight in weighed if weight > -np.inf]
    log_target = np.array([weight for _, weight in weighed if weight > -np.inf])
    target = np.exp(log_target - log_target.max())
    return Problem(family, atoms, model, states, target / target.sum())


def log_posterior(family: Any, atoms: Atoms, prior: PartitionPrior) -> dict[Shape, float]:
    """Log of prior times likelihood of every partition, auxiliary variables integrated out."""
    work = workspace(family)
    found = {}
    for state in partitions(atoms.size.shape[0]):
        labels = np.array(state)
        members = [labels == block for block in range(max(state) + 1)]
        value = prior.log_probability(np.array([atoms.size[each].sum() for each in members]))
        for each in members:
            row = atoms.rows[each].sum(axis=0, keepdims=True)
            value += log_marginal(family, row, 0, work)
        found[state] = float(value)
    return found
