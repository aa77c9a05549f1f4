"""Reconfiguration moves and informed split-merge leave the posteriors of mixtures invariant."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.exact.cases import Kernel, Problem, problem
from tests.exact.enumeration import IdOrder, Paths, is_irreducible
from tests.exact.interpreted.test_oracles import published
from weald.mcmc.assignment.scratch import make_notes
from weald.mcmc.reconfiguration import accord, arm, bsm, sarm, srm
from weald.mcmc.reconfiguration.reference_partitions import Guides, draw_disagreement, make_guides
from weald.mcmc.state.atom_state import State
from weald.treecore.partition.partition import Model

TOLERANCE = 1e-12

GUIDED: dict[str, tuple[Any, Any]] = {
    "accord": (accord.sweep, accord.PLAN),
    "arm": (arm.sweep, arm.PLAN),
    "sarm": (sarm.sweep, sarm.PLAN),
    "bsm": (bsm.sweep, bsm.BsmPlan(0)),
}


def check(small: Problem, matrix: NDArray[np.float64]) -> None:
    assert np.abs(matrix.sum(axis=1) - 1.0).max() < TOLERANCE
    assert np.abs(small.target @ matrix - small.target).max() < TOLERANCE


def simplified(n: int) -> Kernel:
    notes = make_notes(n, n + 4)

    def sweep(rng: Any, state: State, model: Model, plan: Any, *rest: Any) -> None:
        srm.sweep(rng, state, model, plan, notes, *rest)

    return Kernel(sweep, srm.PLAN)


def guided(name: str, code: str) -> Kernel:
    first, second = (np.array([int(c) for c in part]) for part in code.split("/"))
    guides, notes = make_guides(first, second), make_notes(len(first), len(first) + 4)
    run, plan = GUIDED[name]

    def sweep(rng: Any, state: State, model: Model, _: Any, *rest: Any) -> None:
        run(rng, state, model, plan, guides, notes, *rest)

    return Kernel(sweep, plan)


@pytest.mark.parametrize("start", [0, 10])
def test_simplified_moves_of_an_independent_program(start: int) -> None:
    small, kernel = problem("bernoulli", "dp", 5), simplified(5)
    found = dict.fromkeys(small.states, 0.0)
    after = partial(small.after, kernel, state=small.states[start])
    for outcome, probability in IdOrder().every_outcome(after):
        found[outcome] += probability
    assert list(found.values()) == pytest.approx(published("srm")[start], abs=1e-10)


@pytest.mark.parametrize(("family", "prior"), [("gaussian", "dp"), ("mixed", "emm-at-most-3")])
def test_simplified_moves(family: str, prior: str) -> None:
    small = problem(family, prior, 4)
    matrix = small.matrix(simplified(4), IdOrder)
    check(small, matrix)
    assert is_irreducible(matrix)


@pytest.mark.parametrize("kernel", GUIDED)
@pytest.mark.parametrize("guides", ["0011/0110", "0000/0122", "0012/0011"])
def test_guided(kernel: str, guides: str) -> None:
    small = problem("bernoulli", "dp", 4)
    check(small, small.matrix(guided(kernel, guides), IdOrder))


@pytest.mark.parametrize("kernel", GUIDED)
@pytest.mark.parametrize(("family", "prior"), [("gaussian", "mfm"), ("poisson", "nggp")])
def test_guided_on_other_models(kernel: str, family: str, prior: str) -> None:
    small = problem(family, prior, 4)
    check(small, small.matrix(guided(kernel, "0011/0110"), IdOrder))


@pytest.mark.parametrize("kernel", GUIDED)
def test_compacted_atoms(kernel: str) -> None:
    small = problem("gaussian", "dp", 4, compacted=True)
    check(small, small.matrix(guided(kernel, "0011/0110"), IdOrder))


def test_equal_guides_move_nothing() -> None:
    small = problem("bernoulli", "dp", 4)
    matrix = small.matrix(guided("arm", "0011/0011"), IdOrder)
    np.testing.assert_array_equal(matrix, np.eye(len(small.states)))


def test_pairs_are_uniform_among_those_that_guides_disagree_on() -> None:
    guides: Guides = make_guides(np.array([0, 0, 1, 1, 2]), np.array([3, 3, 3, 0, 0]))
    found: dict[frozenset[int], float] = {}
    for pair, probability in Paths().every_outcome(lambda rng: draw_disagreement(rng, guides)):
        found[frozenset(pair)] = found.get(frozenset(pair), 0.0) + probability
    assert set(found) == {frozenset(p) for p in [(0, 2), (1, 2), (2, 3), (3, 4)]}
    assert list(found.values()) == pytest.approx([0.25] * 4)
