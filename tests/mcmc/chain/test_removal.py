"""Taking observations out of a chain: what is left is what it would be without them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mcmc.chains import PRIORS, Values, chain_faults, clumps, same, started
from tests.mcmc.small_chains import posterior, small_chain, total_variation
from tests.treecore.invariants import describe
from weald.mcmc.chain.chain import MixtureChain
from weald.treecore.errors import ObservationError

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
    restored.chain = MixtureChain.restore(whole.chain.state())
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
    assert chain.labels[[3, 7, 21]].tolist() == [-1, -1, -1]
    # Given back last, used first.
    assert chain.insert(values[:4]).tolist() == [21, 3, 7, 40]
    assert (chain.labels >= 0).all()


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
    chain = small_chain(values)
    chain.insert(values[:6])
    chain.refine()
    chain.remove(np.array([1, 4]))
    # Atoms 0, 2, 3, 5 stay; the new ones take the places of 4 and 1.
    chain.insert(values[6:])
    chain.remove(np.array([1]))
    order, kept = [0, 2, 3, 4, 5], values[[0, 2, 3, 6, 5]]
    found, noise = total_variation(chain, order, posterior(chain, kept), 2000)
    assert found < 1.5 * noise
