"""Tree-guided moves, one index at a time, against numbers worked out by an independent program."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.exact.cases import Problem
from tests.exact.enumeration import IdOrder, Shape
from tests.exact.posed import log_posterior, pose, posed
from tests.exact.trees import Step, Tree, guide_of, leaves_of, node_of, tree_problem
from weald.mcmc.gibbs import gibbs
from weald.mcmc.state.pieces import Pieces
from weald.mcmc.tree_guided import subtree_gibbs, subtree_repartition, tree_split_merge
from weald.mcmc.tree_guided.tgmcmc import Picks
from weald.treecore.guide.guide import Guide
from weald.treecore.partition.partition import Model
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels

ORACLES = json.loads((Path(__file__).parent.parent / "data" / "tree_guided.json").read_text())
TOLERANCE = 1e-10
N = 6


def tree_of(text: str) -> Tree:
    return _as_tuples(json.loads(text.replace("(", "[").replace(")", "]")))


def _as_tuples(tree: Any) -> Tree:
    return tuple(map(_as_tuples, tree)) if isinstance(tree, list) else tree


def shape(blocks: list[list[int]]) -> Shape:
    label = {i: at for at, block in enumerate(sorted(blocks)) for i in block}
    return tuple(label[i] for i in range(len(label)))


def results(case: dict[str, Any]) -> dict[Shape, float]:
    return {shape(json.loads(key)): p for key, p in case["result"].items() if p > 0.0}


def guide_for(small: Problem, case: dict[str, Any]) -> Guide:
    return guide_of(small.model, small.atoms, tree_of(case["guide"]))


def outcomes(small: Problem, case: dict[str, Any], step: Step) -> dict[Shape, float]:
    """Probability of each partition after one step from the case's."""
    on_tree = tree_problem(small, guide_for(small, case))
    found: dict[Shape, float] = {}
    start = shape(case["state"])
    for after, p in IdOrder().every_outcome(lambda rng: on_tree.after(step, rng, start)):
        found[after] = found.get(after, 0.0) + p
    return {state: p for state, p in found.items() if p > 0.0}


def node_named(guide: Guide, name: str) -> int:
    return node_of(guide, leaves_of(tree_of(name)))


@pytest.fixture(scope="module")
def small() -> Problem:
    return posed("gauss1", "nggp", N)


@pytest.mark.parametrize("case", ORACLES["k1"], ids=lambda case: f"{case['v']}-{case['window']}")
def test_subtree_gibbs(case: dict[str, Any], small: Problem) -> None:
    def step(rng: Any, guide: Guide, pieces: Pieces, model: Model, _: Picks) -> None:
        v, w = node_named(guide, case["v"]), node_named(guide, case["window"])
        subtree_gibbs.step(rng, guide, pieces, model, v, w, int(guide.position[case["leaf"]]))

    assert outcomes(small, case, step) == pytest.approx(results(case), abs=TOLERANCE)


@pytest.mark.parametrize("case", ORACLES["k2"], ids=lambda case: f"{case['state']}-{case['xi']}")
def test_split_merge(case: dict[str, Any], small: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = case["xi"] == "all closed"
    monkeypatch.setattr(
        tree_split_merge, "_is_closed", lambda _, guide, v, __: closed or guide.n_leaves[v] == 1
    )
    # The oracle takes the parts from left to right, production the largest first.
    monkeypatch.setattr(tree_split_merge, "_sort_by_size", lambda *_: None)

    def step(rng: Any, guide: Guide, pieces: Pieces, model: Model, _: Picks) -> None:
        i, j = int(guide.position[case["i"]]), int(guide.position[case["j"]])
        tree_split_merge.step(rng, guide, pieces, model, i, j, N)

    assert outcomes(small, case, step) == pytest.approx(results(case), abs=TOLERANCE)


@pytest.mark.parametrize("case", ORACLES["k3"], ids=lambda case: f"{case['state']}-{case['v']}")
def test_repartition(case: dict[str, Any], small: Problem) -> None:
    def step(rng: Any, guide: Guide, pieces: Pieces, model: Model, _: Picks) -> None:
        subtree_repartition.step(rng, guide, pieces, model, node_named(guide, case["v"]))

    assert outcomes(small, case, step) == pytest.approx(results(case), abs=TOLERANCE)


PSEUDO_LEAVES = {
    "dp": ("dp", {"alpha": 1.0}),
    "nggp": ("nggp", {"alpha": 1.0, "sigma": 0.5}),
}


@pytest.mark.parametrize("name", PSEUDO_LEAVES)
def test_compacted_pair(name: str) -> None:
    """The atoms 0 and 1 as one: the posterior given that they are together."""
    prior = build_prior(*PSEUDO_LEAVES[name])
    whole = log_posterior(*pose("gauss1", np.arange(5)), prior)
    restricted = log_posterior(*pose("gauss1", np.array([0, 0, 1, 2, 3])), prior)
    evidence = np.logaddexp.reduce(list(restricted.values()))
    together = evidence - np.logaddexp.reduce(list(whole.values()))
    oracle = ORACLES["pseudo_leaf"][name]
    assert np.exp(together) == pytest.approx(oracle["prob_intact"], abs=TOLERANCE)
    expected = {shape(json.loads(key)): p for key, p in oracle["restricted"].items()}
    found = {(state[0], *state): np.exp(value - evidence) for state, value in restricted.items()}
    assert found == pytest.approx(expected, abs=TOLERANCE)


def test_compacted_pair_given_u() -> None:
    whole, restricted = posed("gauss1", "nggp", 5), posed("gauss1", "nggp", [0, 0, 1, 2, 3])
    intact = sum(
        p for state, p in zip(whole.states, whole.target, strict=True) if state[0] == state[1]
    )
    assert intact == pytest.approx(0.376213977508, abs=TOLERANCE)
    given = {
        state[1:]: p / intact
        for state, p in zip(whole.states, whole.target, strict=True)
        if state[0] == state[1]
    }
    assert dict(zip(restricted.states, restricted.target, strict=True)) == pytest.approx(
        given, abs=TOLERANCE
    )


def test_arrival() -> None:
    """How far the posterior of four with a drawn block for the fifth is from that of five."""
    four, five = posed("gauss1", "dp", 4), posed("gauss1", "dp", 5)
    reached = dict.fromkeys(five.states, 0.0)
    for start, p in zip(four.states, four.target, strict=True):

        def arrive(rng: Any, start: Shape = start) -> Shape:
            state = five.prepare((*start, max(start) + 1))
            gibbs.step(rng, state, five.model, 4)
            return tuple(canonical_labels(state.partition.label).tolist())

        for after, q in IdOrder().every_outcome(arrive):
            reached[after] += p * q
    distance = 0.5 * np.abs(np.array(list(reached.values())) - five.target).sum()
    expected = ORACLES["streaming"]["dp"]["tv_insert_by_predictive_draw"]
    assert distance == pytest.approx(expected, abs=TOLERANCE)


def test_evidence() -> None:
    for name in ("dp", "nggp"):
        label = "dp a=1" if name == "dp" else "nggp a=1 sigma=0.5"
        for data in ("gauss1", "gauss2", "bern"):
            found = log_posterior(*pose(data, np.arange(5)), build_prior(*PSEUDO_LEAVES[name]))
            expected = ORACLES["log_evidence"][f"{data} n=5 {label}"]
            assert np.logaddexp.reduce(list(found.values())) == pytest.approx(
                expected, abs=TOLERANCE
            )
