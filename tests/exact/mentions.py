"""The entity/mention posterior that can be enumerated: four mentions of three kinds, K up to seven.

``emm4.json`` is the posterior over (K, partition) from an independent program.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.entities.entities import entity_seating, make_entity_state
from weald.mcmc.gibbs import gibbs
from weald.mcmc.state.atom_state import make_state, make_tally
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import observe, statistics_width, workspace
from weald.treecore.partition.partition import Model, make_atoms
from weald.treecore.prior import build_prior

from .enumeration import IdOrder, Paths, Shape, transition_matrix

ORACLE = json.loads((Path(__file__).parent / "data" / "emm4.json").read_text())
# K and the partition.
Point = tuple[int, Shape]


def read_point(code: str) -> Point:
    k, digits = code.split(":")
    return int(k), tuple(int(digit) - 1 for digit in digits)


POINTS = [read_point(code) for code in ORACLE["post"]]
TARGET = np.array(list(ORACLE["post"].values()))

TOKENS = np.array(ORACLE["tokens"], dtype=np.float64)[:, None]
FAMILY: Any = FAMILIES["categorical"].build({"beta": ORACLE["alpha"], "levels": 3}, TOKENS)
PRIOR: Any = build_prior("emm", {"mu": ORACLE["mu"], "sigma": 1.0, "kmax": ORACLE["Kmax"]})
N = len(TOKENS)


def _rows() -> NDArray[np.float64]:
    rows = np.zeros((N, statistics_width(FAMILY)))
    for i in range(N):
        observe(FAMILY, TOKENS, i, rows, i)
    return rows


MODEL = Model(FAMILY, entity_seating(N), workspace(FAMILY))
ATOMS = make_atoms(FAMILY, _rows(), np.ones(N, dtype=np.int64), MODEL.work)


def after(sweep: Callable[..., None], rng: Any, state: Point) -> Point:
    """Where ``sweep(rng, state)`` leads from a point."""
    partition = make_state(FAMILY, ATOMS, np.array(state[1], dtype=np.int64))
    work = make_entity_state(partition, state[0], PRIOR.log_entities())
    sweep(rng, work)
    seen: dict[int, int] = {}
    shape = tuple(seen.setdefault(k, len(seen)) for k in work.partition.label.tolist())
    return int(work.entities.number[0]), shape


def matrix_of(sweep: Callable[..., None], source: type[Paths] = IdOrder) -> NDArray[np.float64]:
    return transition_matrix(POINTS, lambda rng, state: after(sweep, rng, state), source)


def steps(kernel: Any, plan: Any) -> Callable[..., None]:
    """One step of the kernel with that plan."""
    live = np.arange(N, dtype=np.int64)
    return lambda rng, state: kernel.sweep(rng, state, MODEL, plan, live, make_tally())


def gibbs_scan() -> NDArray[np.float64]:
    """A scan's matrix as the product of its steps'."""

    def step_at(i: int) -> Callable[..., None]:
        return lambda rng, state: gibbs.sweep(rng, state, MODEL, np.array([i], dtype=np.int64))

    product: NDArray[np.float64] = np.linalg.multi_dot([matrix_of(step_at(i)) for i in range(N)])
    return product
