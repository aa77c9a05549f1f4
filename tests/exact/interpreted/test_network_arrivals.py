"""A network that comes edge by edge: a vertex's block is drawn from its conditional at that moment.

Every path of the production code is followed, on the edges of four vertices, and compared with what
the definition of the likelihood says of the edges known so far.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.exact.enumeration import Paths, Shape, partitions
from tests.exact.networks import CASES, Case, log_likelihood
from weald.mcmc.relational.chain import NetworkChain
from weald.treecore.prior import build_prior
from weald.treecore.prior.base import log_size
from weald.treecore.relational.family import Relational

TOLERANCE = 1e-12
CHOSEN = [name for name, case in CASES.items() if not case.hidden] + ["directed-counts"]


def rows_of(case: Case) -> tuple[list[tuple[float, float, float]], list[tuple[int, int]]]:
    """Rows of the case's edges, and for each vertex in order of arrival: itself, edges by then."""
    rows: list[tuple[float, float, float]] = []
    seen: dict[int, int] = {}
    arrivals = []
    weights = case.weight or [1] * len(case.edges)
    for at, ((source, target), weight) in enumerate(zip(case.edges.tolist(), weights, strict=True)):
        edge = len(rows)
        rows.append((0.0, 0.0, 0.0))
        for end in (source, target):
            if end not in seen:
                rows.append((0.0, 0.0, 0.0))
                seen[end] = len(rows)
                arrivals.append((end, at + 1))
        rows[edge] = (seen[source], seen[target], weight)
    return rows, arrivals


def log_prior(prior: Any, shape: Shape) -> float:
    """Of a partition, given the prior's auxiliary variable."""
    seating = prior.seating(len(shape), len(shape))
    sizes = np.bincount(shape).tolist()
    return float(seating.log_blocks[len(sizes)]) + sum(log_size(seating, n) for n in sizes)


def expected(case: Case, arrivals: list[tuple[int, int]], prior: Any) -> dict[Shape, float]:
    """Probability of each partition of the vertices, in order of arrival, one after another."""
    found: dict[Shape, float] = {(): 1.0}
    for n, (_, n_edges) in enumerate(arrivals, start=1):
        place = {vertex: at for at, (vertex, _) in enumerate(arrivals[:n])}
        known = [
            (at, place[source], place[target])
            for at, (source, target) in enumerate(case.edges[:n_edges].tolist())
            if source in place and target in place
        ]
        weights = case.weight or [1] * len(case.edges)
        so_far = replace(
            case,
            edges=np.array([(s, t) for _, s, t in known], dtype=np.int64).reshape(-1, 2),
            weight=tuple(weights[at] for at, *_ in known),
            hidden=(),
        )
        later: dict[Shape, float] = {}
        for shape, probability in found.items():
            nexts = [(*shape, k) for k in range(max(shape, default=-1) + 2)]
            log_weights = np.array(
                [log_prior(prior, each) + log_likelihood(so_far, each) for each in nexts]
            )
            shares = np.exp(log_weights - np.logaddexp.reduce(log_weights))
            for each, share in zip(nexts, shares.tolist(), strict=True):
                later[each] = probability * share
        found = later
    return found


@pytest.mark.parametrize("name", CHOSEN)
def test_arrivals(name: str) -> None:
    case = CASES[name]
    rows, arrivals = rows_of(case)
    prior = build_prior(case.prior, {"alpha": 1.0} if case.prior == "dp" else {})
    family = Relational(case.family, case.directed)
    seqs, times = np.arange(1, len(rows) + 1), np.zeros(len(rows))

    def once(paths: Paths) -> Shape:
        chain = NetworkChain(family, prior, paths)  # type: ignore[arg-type]
        chain.insert(np.array(rows), seqs, times)
        seen: dict[int, int] = {}
        return tuple(seen.setdefault(k, len(seen)) for k in chain.labels.tolist())

    found = dict.fromkeys(partitions(len(arrivals)), 0.0)
    for shape, probability in Paths().every_outcome(once):
        found[shape] += probability
    wanted = expected(case, arrivals, prior)
    assert set(found) == set(wanted)
    for shape, probability in wanted.items():
        assert found[shape] == pytest.approx(probability, abs=TOLERANCE)
