"""Taking observations out of a chain: what is left is what it would be without them."""

from math import pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weald.mcmc.chain import Chain
from weald.treecore.errors import ObservationError
from weald.treecore.family import FAMILIES
from weald.treecore.family.base import log_marginal, observe, statistics_width
from weald.treecore.invariants import describe
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels

from tests.exact.enumeration import partitions
from tests.mcmc.chains import PRIORS, Values, chain_faults, clumps, same, started

N = 90


class Played:
    """A chain under a script of steps; the observation of each atom is kept beside it."""

    def __init__(self, prior: str, values: Values) -> None:
        self.chain = started(prior, values)
        self.values = values
        self.held: dict[int, int] = {}
        self._next = 0

    def play(self, steps: list[int]) -> None:
        """Insert for a positive step, take out every so manyth for a negative one, refine for 0."""
        for step in steps:
            if step > 0:
                end = min(self._next + step, N)
                ids = self.chain.insert(self.values[self._next : end]).tolist()
                assert not self.held.keys() & set(ids)
                self.held |= dict(zip(ids, range(self._next, end), strict=True))
                self._next = end
            elif step < 0:
                leaving = list(self.held)[::-step]
                self.remove(leaving)
            else:
                self.chain.refine()

    def remove(self, leaving: list[int]) -> None:
        before = self.chain.labels
        self.chain.remove(np.array(leaving, dtype=np.int64))
        for atom in leaving:
            del self.held[atom]
        after = self.chain.labels
        assert (after[leaving] == -1).all()
        stay = list(self.held)
        assert (after[stay] == before[stay]).all()


scripts = st.lists(st.one_of(st.integers(-6, -1), st.just(0), st.integers(1, 25)), max_size=14)


@settings(max_examples=20)
@given(script=scripts, seed=st.integers(0, 2**32 - 1), prior=st.sampled_from(list(PRIORS)))
def test_any_sequence(script: list[int], seed: int, prior: str) -> None:
    played = Played(prior, clumps(seed, N))
    chain = played.chain
    for step in script:
        played.play([step])
        assert describe(chain_faults(chain)) == []
        present = sorted(played.held)
        assert np.flatnonzero(chain.labels >= 0).tolist() == present
        assert chain.n_atoms == chain.n_observations == len(present)
        if step == 0:
            assert np.flatnonzero(chain.best_labels >= 0).tolist() == present
    for slot, row in zip(*chain.block_statistics(), strict=True):
        members = [played.held[i] for i in np.flatnonzero(chain.labels == slot).tolist()]
        sums = (played.values[members] - chain.family.mean).sum(axis=0)
        assert row[0] == len(members)
        np.testing.assert_allclose(row[2:4], sums, atol=1e-8)


@settings(max_examples=10)
@given(before=scripts, after=scripts, seed=st.integers(0, 2**32 - 1))
def test_restored_between_removals(before: list[int], after: list[int], seed: int) -> None:
    whole = Played("dp", clumps(seed, N))
    whole.play(before)
    restored = Played("dp", whole.values)
    restored.chain = Chain.restore(whole.chain.state())
    restored.held, restored._next = dict(whole.held), whole._next
    assert same(whole.chain, restored.chain)
    whole.play(after)
    restored.play(after)
    assert same(whole.chain, restored.chain)


def test_ids_are_given_again() -> None:
    values = clumps(3, 40)
    chain = started("dp", values)
    chain.insert(values)
    chain.refine()
    chain.remove(np.array([7, 3, 21]))
    assert chain.best_labels[[3, 7, 21]].tolist() == [-1, -1, -1]
    # Given back last, used first; what came after the refinement has no label of it.
    assert chain.insert(values[:4]).tolist() == [21, 3, 7, 40]
    assert chain.best_labels[[3, 7, 21, 40]].tolist() == [-1] * 4
    assert (chain.best_labels[[0, 1, 2, 39]] >= 0).all()


def test_everything_leaves() -> None:
    values = clumps(4, 30)
    chain = started("nggp", values)
    chain.remove(chain.insert(values))
    assert (chain.n_atoms, chain.n_blocks, chain.log_joint()) == (0, 0, 0.0)
    assert chain.refine().kernels == ()
    assert describe(chain_faults(chain)) == []
    chain.insert(values)
    assert chain.n_atoms == 30


def test_what_is_not_there() -> None:
    values = clumps(4, 30)
    chain = started("dp", values)
    chain.insert(values)
    chain.remove(np.array([4]))
    before = chain.state()
    for wrong, reason in (([4], "id 4"), ([30], "id 30"), ([2, -1], "id -1"), ([5, 5], "once")):
        with pytest.raises(ObservationError, match=reason):
            chain.remove(np.array(wrong))
    chain.remove(np.empty(0, dtype=np.int64))
    assert all(np.array_equal(before[key], value) for key, value in chain.state().items())


def test_posterior_of_those_that_stay() -> None:
    """After arrivals and departures, refinement visits partitions as often as enumeration says."""
    values = np.array([[-1.3], [4.0], [-1.0], [0.2], [-5.0], [0.9], [1.6], [0.1]])
    parameters = {"mean": [0.0], "kappa": 0.5, "nu": 3.0, "psi": [[1.0]]}
    family = FAMILIES["gaussian"].build(parameters, values)
    prior = build_prior("dp", {"alpha": 1.0, "learn": False})
    chain = Chain.start(family, prior, seed=5)
    chain.insert(values[:6])
    chain.refine()
    chain.remove(np.array([1, 4]))
    # Atoms 0, 2, 3, 5 stay; the new ones take the places of 4 and 1.
    chain.insert(values[6:])
    chain.remove(np.array([1]))
    order, kept = [0, 2, 3, 4, 5], values[[0, 2, 3, 6, 5]]
    shapes = partitions(5)
    log_p = np.array([_log_joint(chain, kept, np.array(shape)) for shape in shapes])
    p = np.exp(log_p - np.logaddexp.reduce(log_p))
    n = 2000
    counts = np.zeros(len(shapes))
    index = {shape: at for at, shape in enumerate(shapes)}
    for _ in range(n):
        chain.refine()
        counts[index[tuple(canonical_labels(chain.labels[order]).tolist())]] += 1
    # 300 moves of five observations between two records leave next to no correlation.
    noise = 0.5 * sqrt(2.0 / pi) * np.sqrt(p * (1.0 - p) / n).sum()
    assert 0.5 * np.abs(counts / n - p).sum() < 1.5 * noise


def _log_joint(chain: Chain, values: Values, shape: np.ndarray) -> float:
    total = chain.prior.log_probability(np.bincount(shape))
    rows = np.zeros((2, statistics_width(chain.family)))
    for block in range(shape.max() + 1):
        rows[1] = 0.0
        for r in np.flatnonzero(shape == block):
            observe(chain.family, values, int(r), rows, 0)
            rows[1] += rows[0]
        total += log_marginal(chain.family, rows, 1, chain._work)
    return total
