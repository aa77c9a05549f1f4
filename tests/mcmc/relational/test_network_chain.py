"""A chain over a network that comes edge by edge: cuts, restoring, forgetting."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from weald.mcmc.relational.chain import NetworkChain
from weald.mcmc.relational.vertices import log_joint
from weald.treecore.partition.partition import Model
from weald.treecore.prior import build_prior
from weald.treecore.relational.family import IRM

KINDS: dict[str, dict[str, Any]] = {
    "binary": {},
    "directed-counts": {"directed": True, "counts": True},
}
N = 12


def rows_of(kind: str, seed: int = 1) -> NDArray[np.float64]:
    """Rows of a network of three communities; counts come twice."""
    directed, rng = "directed" in kind, np.random.default_rng(seed)
    pairs = [(i, j) for i in range(N) for j in range(N) if i < j or (directed and i != j)]
    rng.shuffle(pairs)
    kept = [(i, j) for i, j in pairs if rng.random() < (0.8 if i % 3 == j % 3 else 0.1)]
    rows: list[tuple[float, float, float]] = []
    seen: dict[int, int] = {}
    for i, j in kept * (2 if "counts" in kind else 1):
        edge = len(rows)
        rows.append((0.0, 0.0, 0.0))
        for end in (i, j):
            if end not in seen:
                rows.append((0.0, 0.0, 0.0))
                seen[end] = len(rows)
        rows[edge] = (seen[i], seen[j], 1.0)
    return np.array(rows)


def insert(chain: NetworkChain, rows: NDArray[np.float64], start: int, stop: int) -> None:
    seqs = np.arange(start + 1, stop + 1)
    chain.insert(rows[start:stop], seqs, seqs.astype(np.float64))


def new_chain(kind: str, prior: str = "dp") -> NetworkChain:
    return NetworkChain.start(
        IRM.build(KINDS[kind], np.empty((0, 3))), build_prior(prior, {}), seed=3
    )


def run(
    kind: str, prior: str, cut_at: Iterable[int], *, restored: bool = False
) -> tuple[list[int], float, dict[str, bytes]]:
    """Insert in pieces, refining after 15 rows and at the end."""
    rows, chain = rows_of(kind), new_chain(kind, prior)
    stops = sorted({15, len(rows), *(cut for cut in cut_at if cut < len(rows))})
    for start, stop in zip([0, *stops[:-1]], stops, strict=True):
        insert(chain, rows, start, stop)
        if restored and not chain._waiting:
            chain = NetworkChain.restore({k: v.copy() for k, v in chain.state().items()})
        if stop in (15, len(rows)):
            chain.refine(1)
    state = {name: array.tobytes() for name, array in chain.state().items()}
    return chain.labels.tolist(), chain.log_joint(), state


@pytest.mark.parametrize("prior", ["dp", "mfm"])
@pytest.mark.parametrize("kind", KINDS)
def test_batches_cut_otherwise_and_restored_anywhere(kind: str, prior: str) -> None:
    whole = run(kind, prior, ())
    assert run(kind, prior, range(1, 200, 3)) == whole
    assert run(kind, prior, range(1, 200, 2), restored=True) == whole


@pytest.mark.parametrize("kind", KINDS)
def test_sums_that_grew_are_those_of_the_whole(kind: str) -> None:
    rows, chain = rows_of(kind), new_chain(kind)
    insert(chain, rows, 0, len(rows))
    grown = chain._state
    model = Model(chain.family.edges, chain.prior.seating(N, N), np.zeros((1, 1)))
    # The same network, counted at once; factorials of counts do not depend on the blocks.
    constant = chain._network(chain._present()).log_constant[0]
    assert log_joint(model, grown) + constant == pytest.approx(
        log_joint(model, chain._position(chain._present())._state), abs=1e-9
    )
    degrees = np.zeros(N)
    links = chain.edges()
    np.add.at(degrees, links.source, links.weight)
    np.add.at(degrees, links.target, links.weight)
    assert chain.degrees.tolist() == degrees.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_edges_that_leave(kind: str) -> None:
    rows, chain = rows_of(kind), new_chain(kind)
    insert(chain, rows, 0, len(rows))
    seqs, _ = chain.edge_moments()
    gone = seqs % 5 > 0
    stay = {int(end) for end in rows[seqs[~gone] - 1, :2].ravel()}
    left_seqs, left = chain.remove_edges(gone)
    assert left_seqs.tolist() == seqs[gone].tolist()
    assert chain.n_atoms == len(stay) == N - len(left)
    assert chain.n_edges == int((~gone).sum())
    # What is left is what a chain that never saw the others would count.
    other = NetworkChain.restore(chain.state())
    assert other.log_joint() == chain.log_joint()
    links = chain.edges()
    assert links.weight.sum() == len({tuple(row[:2]) for row in rows[seqs[~gone] - 1]}) or (
        "counts" in kind and links.weight.sum() == (~gone).sum()
    )
    chain.refine(1)
    with pytest.raises(KeyError, match="not there"):
        chain.insert(np.array([[9_999.0, 1.0, 1.0]]), np.array([10_000]), np.zeros(1))


def test_rows_of_one_pair_become_one() -> None:
    rows, chain = rows_of("directed-counts"), new_chain("directed-counts")
    insert(chain, rows, 0, len(rows))
    before, n = chain.log_joint(), chain.n_edges
    chain.merge_edges()
    assert chain.n_edges == n // 2
    assert chain.log_joint() == before


def test_an_empty_chain() -> None:
    chain = NetworkChain.restore(new_chain("binary").state())
    assert chain.n_atoms == chain.n_blocks == 0
    assert chain.refine(2).n_blocks == 0
    assert chain.log_joint() == 0.0
