"""The infinite relational model: its posterior, and every kernel on it leaves that invariant."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.exact.enumeration import Paths, Shape, is_irreducible
from tests.exact.networks import (
    CASES,
    DATA,
    GUIDED,
    GUIDES,
    ORACLE,
    PLAIN,
    NetworkProblem,
    gibbs_at,
    guided,
    guides_of,
    larger,
    live,
    problem,
    shape_of,
)
from weald.mcmc.assignment import scratch as walk_notes
from weald.mcmc.assignment.assignment import log_weights_everywhere, put_in, set_aside, take_out
from weald.mcmc.assignment.scratch import Labels, Notes
from weald.mcmc.gibbs import gibbs
from weald.mcmc.reconfiguration import accord, arm, reconfiguration
from weald.mcmc.reconfiguration.reconfiguration import _walk
from weald.mcmc.relational.vertices import log_joint
from weald.mcmc.split_merge import rgsm
from weald.mcmc.state.vertex_state import VertexState
from weald.treecore.relational import weighing

TOLERANCE = 1e-12


def check(small: NetworkProblem, matrix: NDArray[np.float64], *, alone: bool = True) -> None:
    assert np.abs(matrix.sum(axis=1) - 1.0).max() < TOLERANCE
    assert np.abs(small.target @ matrix - small.target).max() < TOLERANCE
    if alone:
        assert is_irreducible(matrix)


def code(shape: Shape) -> str:
    return "".join(str(label + 1) for label in shape)


def shape(code: str) -> Shape:
    return tuple(int(digit) - 1 for digit in code)


def test_posterior_of_an_independent_program() -> None:
    small = problem("binary")
    for at, state in enumerate(small.states):
        assert small.target[at] == pytest.approx(ORACLE["post"][code(state)], abs=1e-12)
        found = log_joint(small.model, small.prepare(state))
        # The file leaves out the process's constant: alpha is 1, and Gamma(1 + 4) = 24.
        assert found == pytest.approx(ORACLE["logq"][code(state)], abs=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_posterior_by_definition(case: str) -> None:
    small = problem(case)
    found = np.array([log_joint(small.model, small.prepare(state)) for state in small.states])
    assert np.exp(found - np.logaddexp.reduce(found)) == pytest.approx(small.target, abs=TOLERANCE)


@pytest.mark.parametrize("kernel", ["gibbs", "rsm", "rgsm", "sams", "sdds-a", "sdds-b", "ss", "rm"])
@pytest.mark.parametrize("case", CASES)
def test_every_likelihood(kernel: str, case: str) -> None:
    small = problem(case)
    check(small, small.matrix(PLAIN[kernel]))


@pytest.mark.parametrize(
    "kernel", ["rgsm-1", "rgsm-anchored", "sdds-a-paper", "sdds-b-paper", "srm"]
)
def test_longer_paths(kernel: str) -> None:
    small = problem("binary")
    check(small, small.matrix(PLAIN[kernel]))


@pytest.mark.parametrize("kernel", ["accord", "arm", "sarm", "bsm"])
@pytest.mark.parametrize("guides", GUIDES[4])
def test_every_guided_kernel(kernel: str, guides: str) -> None:
    small = problem("binary")
    matrix = small.matrix(guided(*GUIDED[kernel], guides_of(guides)))
    check(small, matrix, alone=False)


@pytest.mark.parametrize("kernel", ["accord", "arm", "bsm"])
@pytest.mark.parametrize("case", ["skewed", "hidden", "directed-counts"])
def test_guided_on_other_likelihoods(kernel: str, case: str) -> None:
    small = problem(case)
    matrix = small.matrix(guided(*GUIDED[kernel], guides_of(GUIDES[4][0])))
    check(small, matrix, alone=False)


@pytest.mark.parametrize("kernel", ["accord", "bsm"])
def test_random_order(kernel: str) -> None:
    small = problem("binary")
    matrix = small.matrix(guided(*GUIDED[kernel], guides_of(GUIDES[4][0])), Paths)
    check(small, matrix, alone=False)


@pytest.mark.parametrize("kernel", ["accord", "arm", "bsm"])
def test_guided_on_five_vertices(kernel: str) -> None:
    """One pair that the guides disagree on, and a piece of three: more pairs take a minute."""
    small = larger(5)
    matrix = small.matrix(guided(*GUIDED[kernel], guides_of("00111/01222")))
    check(small, matrix, alone=False)


def test_gibbs_on_more_vertices() -> None:
    for n in (5, 6):
        check(larger(n), larger(n).matrix(gibbs_at(n - 1)), alone=False)


@pytest.mark.parametrize("case", CASES)
def test_weights_on_the_way(case: str, rng: np.random.Generator) -> None:
    """Terms kept from one vertex to the next are those of a partition that has just been made."""
    small, n = problem(case), 4
    walked, kept = small.prepare((0, 0, 1, 1)), 0
    for i in np.tile(live(n), 10):
        gibbs.sweep(rng, walked, small.model, live(n))
        kept += int(np.isfinite(walked.ties.log_gain).sum())
        fresh = small.prepare(shape_of(walked))
        weights = [weights_of(state, small, i) for state in (walked, fresh)]
        assert weights[0] == pytest.approx(weights[1], abs=TOLERANCE)
        PLAIN["rgsm"](rng, small, walked)
    # There every two vertices have an edge, or their pair is hidden.
    assert kept > 0 or case == "directed-counts"


def weights_of(state: VertexState, small: NetworkProblem, i: int) -> dict[int, float]:
    """Log weights of a vertex that is taken out, by the first vertex of each block; n: its own."""
    take_out(state, small.model, i)
    state.members[0] = i
    set_aside(state, small.model, state.members, 1)
    k = log_weights_everywhere(state, small.model)
    slots = state.partition.slots[:k]
    firsts = [int(np.argmax(state.partition.label == slot)) for slot in slots]
    put_in(state, small.model, i, int(slots[0]))
    return dict(zip([*firsts, len(small.states[0])], state.log_weights[: k + 1], strict=True))


def forced(
    small: NetworkProblem, state: VertexState, common: Labels, pair: tuple[int, int], goal: Shape
) -> float:
    """Log probability of the walk to a partition."""
    walk: Any = _walk
    labels = np.array(goal)
    everyone = live(len(goal))
    log_t: float = walk(
        None, state, small.model, small.notes, arm.PLAN, common, pair, everyone, labels
    )
    return log_t


def test_walks_of_an_independent_program() -> None:
    small = problem("binary")
    log_target = np.log(small.target)
    for case in json.loads((DATA / "irm4_arm.json").read_text()):
        common = guides_of(f"{case['za']}/{case['zb']}").common
        pair = (case["i"] - 1, case["j"] - 1)
        start, end = shape(case["z"]), shape(case["zstar"])
        state = small.prepare(start)
        there = forced(small, state, common, pair, end)
        assert shape_of(state) == end
        back = forced(small, state, common, pair, start)
        assert shape_of(state) == start
        assert there == pytest.approx(case["logT"], abs=1e-10)
        assert back == pytest.approx(case["logT_rev"], abs=1e-10)
        ratio = log_target[small.states.index(end)] - log_target[small.states.index(start)]
        assert ratio + back - there == pytest.approx(case["logH"], abs=1e-10)


# Wrong forms, with the distance from the posterior that an independent program computed for them.


def distance(found: NDArray[np.float64], small: NetworkProblem) -> float:
    return float(np.abs(found - small.target).sum() / 2)


def test_likelihood_without_its_diagonal(monkeypatch: pytest.MonkeyPatch) -> None:
    """E7: the paper sums over different blocks only."""
    whole = weighing._log_tie
    monkeypatch.setattr(
        weighing,
        "_log_tie",
        lambda network, held, k, other: 0.0 if k == other else whole(network, held, k, other),
    )
    small = problem("binary")
    found = np.array([log_joint(small.model, small.prepare(state)) for state in small.states])
    strict = np.exp(found - np.logaddexp.reduce(found))
    assert strict[0] == pytest.approx(0.8186, abs=5e-5)
    assert distance(strict, small) == pytest.approx(0.633, abs=5e-4)


def test_launch_from_the_present_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """E9: the launch of a split must be that of its reverse."""
    launch = rgsm._launch

    def refined(
        rng: Any, state: VertexState, model: Any, n: int, kind: int, common: Labels, pair: Any
    ) -> None:
        _, pieces = np.unique(common * 10 + state.own, return_inverse=True)
        launch(rng, state, model, n, kind, pieces, pair)

    small = problem("binary")
    monkeypatch.setattr(rgsm, "_launch", refined)
    matrix = small.matrix(guided(*GUIDED["bsm"], guides_of("0000/0001")))
    assert np.abs(small.target @ matrix - small.target).max() > 1e-3


def test_pieces_that_join_their_like(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece that goes to another of its set is not found again."""
    small = problem("binary")
    monkeypatch.setattr(accord, "inf", 0.0)
    matrix = small.matrix(guided(accord.sweep, accord.AccordPlan(0), guides_of("0000/0122")))
    assert np.abs(small.target @ matrix - small.target).max() > 1e-3


def test_outsiders_that_may_all_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without equation 17 several ways lead to one state."""
    begin = walk_notes.begin

    def free(state: Any, notes: Notes, *rest: Any) -> None:
        begin(state, notes, *rest)
        notes.n_original[:] += 10

    monkeypatch.setattr(reconfiguration, "begin", free)
    small = problem("binary")
    matrix = small.matrix(PLAIN["srm"])
    assert np.abs(small.target @ matrix - small.target).max() > 1e-3
