"""Posteriors over the partitions of small networks, and the kernels that are run on them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from weald.mcmc.assignment.scratch import Notes, make_notes
from weald.mcmc.gibbs import gibbs
from weald.mcmc.reconfiguration import accord, arm, bsm, sarm, srm
from weald.mcmc.reconfiguration.reference_partitions import Guides, make_guides
from weald.mcmc.relational.vertices import make_vertex_state
from weald.mcmc.split_merge import dm, rgsm, rm, rsm, sams, sdds, ss
from weald.mcmc.split_merge.selection import paper_selection
from weald.mcmc.state.atom_state import make_tally
from weald.mcmc.state.vertex_state import VertexState
from weald.treecore.compiled.draw import below
from weald.treecore.partition.partition import Model
from weald.treecore.prior import build_prior
from weald.treecore.prior.base import log_size
from weald.treecore.relational.edges import beta_edges, gamma_edges
from weald.treecore.relational.network import Links, Network, make_network

from .enumeration import IdOrder, Paths, Shape, partitions, transition_matrix

DATA = Path(__file__).parent / "data"
ORACLE = json.loads((DATA / "irm4.json").read_text())
SMALL = np.array(ORACLE["edges"]) - 1
# The five-vertex graph of the specification, and one more vertex.
LARGER = np.array([[0, 1], [0, 2], [1, 2], [3, 4], [2, 3], [3, 5]])

Ends = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """Edges (m, 2) with weights, which pairs are hidden, and which likelihood applies."""

    edges: NDArray[np.int64]
    weight: tuple[float, ...] | None = None
    hidden: tuple[tuple[int, int], ...] = ()
    directed: bool = False
    family: Any = None
    prior: str = "dp"


CASES = {
    "binary": Case(SMALL, family=beta_edges()),
    "skewed": Case(SMALL, family=beta_edges(0.4, 2.5), prior="mfm"),
    "hidden": Case(SMALL, hidden=((1, 2), (0, 3)), family=beta_edges(0.7, 1.3)),
    "directed": Case(SMALL[:, ::-1], directed=True, family=beta_edges(0.7, 1.3)),
    "counts": Case(SMALL, (3, 1, 2, 7), family=gamma_edges(0.8, 0.6)),
    "directed-counts": Case(
        np.array([[0, 1], [1, 0], [2, 1], [3, 0], [2, 3]]),
        (2, 1, 4, 1, 3),
        ((1, 3), (0, 2)),
        directed=True,
        family=gamma_edges(0.8, 0.6),
        prior="pitman-yor",
    ),
}


@dataclass(frozen=True)
class NetworkProblem:
    """A posterior over the partitions of a few vertices."""

    model: Model
    network: Network
    states: list[Shape]
    target: NDArray[np.float64]
    notes: Notes

    def prepare(self, state: Shape) -> VertexState:
        return make_vertex_state(self.model, self.network, np.array(state), room=len(state) + 1)

    def after(self, step: "Step", rng: Any, state: Shape) -> Shape:
        """The partition that one step leads to."""
        work = self.prepare(state)
        step(rng, self, work)
        return shape_of(work)

    def matrix(self, step: "Step", source: type[Paths] = IdOrder) -> NDArray[np.float64]:
        """Transition matrix of one step."""
        return transition_matrix(self.states, partial(self.after, step), source)


Step = Callable[[Any, NetworkProblem, VertexState], None]


def shape_of(state: VertexState) -> Shape:
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(k, len(seen)) for k in state.partition.label.tolist())


def dense(case: Case, n: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Edge weights (n, n) and which ordered pairs are observed."""
    weights = np.zeros((n, n))
    seen = ~np.eye(n, dtype=bool)
    for (a, b), weight in zip(case.edges, case.weight or [1.0] * len(case.edges), strict=True):
        weights[a, b] += weight
    for a, b in case.hidden:
        seen[a, b] = False
    if not case.directed:
        weights += weights.T
        seen &= seen.T
    return weights * seen, seen


def log_likelihood(case: Case, shape: Shape) -> float:
    """From the definition: every pair of blocks, each block with itself included."""
    labels = np.array(shape)
    weights, seen = dense(case, len(shape))
    value = 0.0
    for k in range(max(shape) + 1):
        for other in range(0 if case.directed else k, max(shape) + 1):
            cell = np.ix_(labels == k, labels == other)
            halves = 2.0 if k == other and not case.directed else 1.0
            total, n_pairs = weights[cell].sum() / halves, seen[cell].sum() / halves
            if hasattr(case.family, "a"):
                a, b = case.family.a, case.family.b
                value += betaln(total + a, n_pairs - total + b) - betaln(a, b)
            else:
                shape_, rate = case.family.shape, case.family.rate
                value += gammaln(total + shape_) - gammaln(shape_) + shape_ * np.log(rate)
                value -= (total + shape_) * np.log(rate + n_pairs)
    if not hasattr(case.family, "a"):
        value -= gammaln(weights + 1.0).sum() / (1.0 if case.directed else 2.0)
    return float(value)


def network_of(case: Case, n: int) -> Network:
    weight = np.array(case.weight or [1.0] * len(case.edges))
    hidden = np.array(case.hidden, dtype=np.int64).reshape(-1, 2)
    return make_network(
        n,
        Links(case.edges[:, 0].copy(), case.edges[:, 1].copy(), weight),
        directed=case.directed,
        counts=not hasattr(case.family, "a"),
        hidden=(hidden[:, 0], hidden[:, 1]),
    )


def pose(case: Case, n: int) -> NetworkProblem:
    """The posterior of the case over partitions of n vertices."""
    parameters = {"alpha": 1.0} if case.prior == "dp" else {}
    seating = build_prior(case.prior, parameters).seating(n, n)
    states = partitions(n)
    log_target = np.array(
        [
            float(seating.log_blocks[max(state) + 1])
            + sum(log_size(seating, int(size)) for size in np.bincount(state))
            + log_likelihood(case, state)
            for state in states
        ]
    )
    target = np.exp(log_target - log_target.max())
    model = Model(case.family, seating, np.zeros((1, 1)))
    return NetworkProblem(
        model, network_of(case, n), states, target / target.sum(), make_notes(n, n + 4)
    )


@cache
def problem(case: str) -> NetworkProblem:
    """One of ``CASES``, on four vertices."""
    return pose(CASES[case], 4)


@cache
def larger(n: int) -> NetworkProblem:
    """Five or six vertices."""
    inside = (n > LARGER).all(axis=1)
    return pose(Case(LARGER[inside], family=beta_edges()), n)


def live(n: int) -> NDArray[np.int64]:
    return np.arange(n, dtype=np.int64)


def gibbs_at(i: int | None = None) -> Step:
    """One vertex, drawn if it is not given."""

    def step(rng: Any, small: NetworkProblem, state: VertexState) -> None:
        n = len(small.states[0])
        at = int(below(rng, n)) if i is None else i
        gibbs.sweep(rng, state, small.model, live(n)[at : at + 1])

    return step


def plain(sweep: Callable[..., None], plan: Any) -> Step:
    """A kernel without guides."""

    def step(rng: Any, small: NetworkProblem, state: VertexState) -> None:
        everyone = live(len(small.states[0]))
        sweep(rng, state, small.model, plan, everyone, make_tally())

    return step


def noting(sweep: Callable[..., None], plan: Any) -> Step:
    """A kernel without guides that notes down where everything was."""

    def step(rng: Any, small: NetworkProblem, state: VertexState) -> None:
        everyone = live(len(small.states[0]))
        sweep(rng, state, small.model, plan, small.notes, everyone, make_tally())

    return step


def guided(sweep: Callable[..., None], plan: Any, guides: Guides) -> Step:
    """A kernel with two guides that stand still."""

    def step(rng: Any, small: NetworkProblem, state: VertexState) -> None:
        everyone = live(len(small.states[0]))
        sweep(rng, state, small.model, plan, guides, small.notes, everyone, make_tally())

    return step


PLAIN: dict[str, Step] = {
    "gibbs": gibbs_at(),
    "rsm": plain(rsm.sweep, rsm.RsmPlan()),
    "rgsm": plain(rgsm.sweep, rgsm.RgsmPlan(0, 1, 0)),
    "rgsm-1": plain(rgsm.sweep, rgsm.RgsmPlan(1, 1, 0)),
    "rgsm-anchored": plain(rgsm.sweep, rgsm.RgsmPlan(0, 1, 0, rgsm.ANCHORED)),
    "sams": plain(sams.sweep, sams.SamsPlan()),
    "dm": plain(dm.sweep, dm.DmPlan()),
    "sdds-a": plain(sdds.sweep, sdds.SddsPlan(1, 1.0)),
    "sdds-b": plain(sdds.sweep, sdds.SddsPlan(1, 0.0)),
    "sdds-a-paper": plain(sdds.sweep, sdds.SddsPlan(1, 1.0, paper_selection())),
    "sdds-b-paper": plain(sdds.sweep, sdds.SddsPlan(1, 0.0, paper_selection())),
    "ss": plain(ss.sweep, ss.SsPlan()),
    "rm": plain(rm.sweep, rm.RmPlan()),
    "srm": noting(srm.sweep, srm.PLAN),
}
GUIDED: dict[str, tuple[Callable[..., None], Any]] = {
    "accord": (accord.sweep, accord.PLAN),
    "arm": (arm.sweep, arm.PLAN),
    "sarm": (sarm.sweep, sarm.PLAN),
    "bsm": (bsm.sweep, bsm.BsmPlan(0)),
    "bsm-1": (bsm.sweep, bsm.BsmPlan(1)),
}
# Pairs of guides: crossing, nested, nearly alike, alike on no pair.
GUIDES = {
    4: ["0011/0110", "0000/0122", "0012/0011", "0000/0123"],
    5: ["00112/01210", "00011/00122", "01111/01234"],
    6: ["001122/012210"],
}


def guides_of(code: str) -> Guides:
    first, second = (np.array([int(c) for c in part]) for part in code.split("/"))
    return make_guides(first, second)
