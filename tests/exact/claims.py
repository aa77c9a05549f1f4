"""The claims of the registry, held against enumerated posteriors.

A kernel comes under these tests by its line in the registry alone. What is followed path by path is
its ``least``, one proposal.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.exact import mentions
from tests.exact.cases import PRIOR_CASES, problem
from tests.exact.enumeration import IdOrder, Shape, is_irreducible, transition_matrix
from tests.exact.networks import CASES, network_of
from tests.exact.networks import problem as network_problem
from weald.mcmc.chain.position import Position
from weald.mcmc.contract import Entry, Kernel
from weald.mcmc.relational.position import VertexPosition
from weald.mcmc.schedule.kernels import KERNELS, NETWORK_KERNELS
from weald.treecore.guide.guide import guide_of_atoms
from weald.treecore.prior import build_prior

__all__ = ["kernel_of", "posed_to", "require_claim"]

TOLERANCE = 1e-12
# Two partitions of four atoms that disagree on some pairs and have a piece in common.
GUIDES = (np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]))


Posed = tuple[list[Shape], NDArray[np.float64], Callable[[Shape], Any]]


class _Past:
    """A past that always shows the same two partitions."""

    def note(self, _chain: int, _labels: NDArray[np.int64]) -> None:
        raise AssertionError("nothing is noted while it is drawn from")

    def draw(self, _rng: object, _chain: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return GUIDES


@cache
def _mixture(family: str, prior: str) -> Posed:
    small = problem(family, prior, 4)
    name, parameters = PRIOR_CASES[prior]

    def at(shape: Shape) -> Position:
        position = Position(
            small.family,
            small.atoms,
            np.array(shape),
            build_prior(name, parameters),
            lambda model: guide_of_atoms(small.family, model, small.atoms),
        )
        position.guides, position.history = GUIDES, (_Past(), 0)
        return position

    return small.states, small.target, at


@cache
def _mentions() -> Posed:
    """The oracle's posterior over (K, partition), with K summed out."""
    target: dict[Shape, float] = {}
    for (_, shape), probability in zip(mentions.POINTS, mentions.TARGET, strict=True):
        target[shape] = target.get(shape, 0.0) + float(probability)
    family, atoms = mentions.FAMILY, mentions.ATOMS

    def at(shape: Shape) -> Position:
        return Position(
            family,
            atoms,
            np.array(shape),
            mentions.PRIOR,
            lambda model: guide_of_atoms(family, model, atoms),
        )

    return list(target), np.array(list(target.values())), at


@cache
def _network(name: str) -> Posed:
    small, case = network_problem(name), CASES[name]
    parameters = {"alpha": 1.0} if case.prior == "dp" else {}

    def at(shape: Shape) -> VertexPosition:
        prior = build_prior(case.prior, parameters)
        position = VertexPosition(case.family, network_of(case, 4), np.array(shape), prior)
        position.guides, position.history = GUIDES, (_Past(), 0)
        return position

    return small.states, small.target, at


_POSED: dict[str, list[Callable[[], Posed]]] = {
    "mixture": [lambda: _mixture("gaussian", "dp"), lambda: _mixture("bernoulli", "pitman-yor")],
    "network": [lambda: _network("binary"), lambda: _network("directed-counts")],
    "entities": [_mentions, lambda: _mixture("poisson", "emm-at-most-3")],
}


def posed_to(entry: Entry, at: int) -> Posed:
    """The first (0) or second (1) posterior of four atoms for a line of the registry."""
    return _POSED["entities" if "entities" in entry.needs else entry.data][at]()


def kernel_of(entry: Entry) -> Kernel[Any]:
    """The kernel of a line of the registry."""
    return (KERNELS if entry.data == "mixture" else NETWORK_KERNELS)[entry.name]


def matrix_of(kernel: Kernel[Any], posed: Posed) -> NDArray[np.float64]:
    """Transition matrix of the kernel's least part."""
    states, _, at = posed
    assert kernel.least is not None
    least = kernel.least

    def after(rng: Any, state: Shape) -> Shape:
        position = at(state)
        tally = least(rng, position)
        assert tally.shape == (len(kernel.parts), 3)
        return tuple(position.labels().tolist())

    return transition_matrix(states, after, IdOrder)


def require_claim(kernel: Kernel[Any], posed: Posed) -> None:
    """Fail unless the kernel does what it claims on a posterior of four atoms.

    Guided kernels are given guides that stand still, for which those out of the past are exact.
    """
    matrix, target = matrix_of(kernel, posed), posed[1]
    assert np.abs(matrix.sum(axis=1) - 1.0).max() < TOLERANCE
    off = float(np.abs(target @ matrix - target).max())
    if kernel.claim == "approximate":
        assert off > 1e-3
        return
    assert off < TOLERANCE
    assert kernel.guided or is_irreducible(matrix)
