"""Forests after any sequence of operations, run compiled in one go."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.reference import by_reference
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import observe, statistics_width, workspace
from weald.treecore.forest.forest import Forest, add_leaf, empty_forest
from weald.treecore.forest.insertion import insert_tree, remove_atom
from weald.treecore.partition.partition import Atoms, Model, make_atoms
from weald.treecore.prior import build_prior

Values = NDArray[np.float64]


class Setting(NamedTuple):
    """A model, and atoms that a forest may hold."""

    family: Any
    model: Model
    atoms: Atoms


def setting(
    family: Any, values: Values, prior: tuple[str, dict[str, Any]] = ("dp", {}), weight: int = 1
) -> Setting:
    """An atom for every observation (n, d), each of which counts ``weight`` times."""
    n = values.shape[0]
    rows = np.zeros((n, statistics_width(family)))
    for r in range(n):
        observe(family, values, r, rows, r)
    rows *= weight
    work = workspace(family)
    atoms = make_atoms(family, rows, np.full(n, weight), work)
    return Setting(family, Model(family, build_prior(*prior).seating(n * weight, 2), work), atoms)


def gaussian(values: Values) -> Any:
    """A family for observations of order one."""
    d = values.shape[1]
    parameters = {"mean": [0.0] * d, "kappa": 0.1, "nu": d + 2.0, "psi": np.eye(d).tolist()}
    return FAMILIES["gaussian"].build(parameters, values)


def clumps(rng: np.random.Generator, n: int, d: int = 2, k: int = 4) -> Values:
    """Observations (n, d) in k clumps."""
    centres = rng.normal(scale=4.0, size=(k, d))
    return centres[rng.integers(k, size=n)] + rng.normal(size=(n, d))


@compiled
def _play(model: Model, forest: Forest, atoms: Atoms, script: NDArray[np.int64], rule: int) -> int:
    model, forest, atoms = by_reference(model), by_reference(forest), by_reference(atoms)
    n_cuts = 0
    for at in range(script.shape[0]):
        i = script[at]
        if i < 0:
            remove_atom(model, forest, -1 - i)
        else:
            leaf = add_leaf(model, forest, i, atoms.rows, i, atoms.size[i])
            n_cuts += insert_tree(model, forest, leaf, rule)
    return n_cuts


def play(posed: Setting, forest: Forest, script: list[int], rule: int) -> int:
    """Insert atom i for each i of the script, take it out for each -1 - i; returns the cuts."""
    return int(_play(posed.model, forest, posed.atoms, np.array(script, dtype=np.int64), rule))


def grown(posed: Setting, rule: int, order: list[int] | None = None) -> Forest:
    """All atoms inserted in order."""
    n = posed.atoms.size.shape[0]
    forest = empty_forest(posed.family, n)
    play(posed, forest, list(range(n)) if order is None else order, rule)
    return forest


def written(forest: Forest, v: int) -> str:
    """A tree in brackets."""
    if forest.left[v] < 0:
        return str(forest.atom[v])
    return f"({written(forest, forest.left[v])},{written(forest, forest.right[v])})"


def roots_of(forest: Forest) -> list[int]:
    """The roots."""
    return [int(v) for v in forest.roots[: int(forest.n_roots[0])]]
