"""Leases given out by a chain, arrivals and removals meanwhile, and the round taken back."""

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.leases.lease_work import Returned, work
from weald.mcmc.leases.leases import Budget, Lease
from weald.mcmc.leases.outstanding import OutstandingLeases, merged_labels
from weald.treecore.family import FAMILIES
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels

BUDGET = Budget("tgmcmc,gibbs", 1, 0)


def same_partition(labels: NDArray[np.int64], others: NDArray[np.int64]) -> bool:
    return bool((canonical_labels(labels) == canonical_labels(others)).all())


def grown(rng: Generator, n: int, prior: str = "dp") -> MixtureChain:
    values = rng.normal(size=(n, 2)) + 6.0 * rng.integers(0, 3, size=(n, 1))
    chain = MixtureChain.start(
        FAMILIES["gaussian"].build({}, values), build_prior(prior, {"learn": False}), seed=3
    )
    chain.insert(values)
    return chain


def test_leases_cover_every_atom_once(rng: Generator) -> None:
    chain = grown(rng, 80)
    chain.remove(np.array([3, 7]))
    lent = chain.lend(rng, [BUDGET] * 3)
    atoms = np.concatenate([each.atoms for each in lent])
    assert sorted(atoms.tolist()) == sorted(set(range(80)) - {3, 7})
    for each in lent:
        assert same_partition(each.lease.labels, chain.labels[each.atoms])


def test_a_round_with_arrivals_and_removals(rng: Generator) -> None:
    chain = grown(rng, 80)
    lent = chain.lend(rng, [BUDGET] * 2)
    chain.remove(np.array([5, 6]))
    ids = chain.insert(rng.normal(size=(4, 2)))
    assert {5, 6} <= set(ids.tolist())
    returns = [work(Lease.from_arrays(each.lease.arrays())) for each in lent]
    again = Returned.from_arrays(returns[0].arrays())
    np.testing.assert_array_equal(again.labels, returns[0].labels)
    assert again.kernels == returns[0].kernels
    after = MixtureChain.restore(chain.state())
    done = chain.adopt([(x.atoms, y.labels) for x, y in zip(lent, returns, strict=True)])
    assert chain.n_atoms == 82
    assert not chain.lent
    assert (chain.labels >= 0).all()
    for each, returned in zip(lent, returns, strict=True):
        old = ~np.isin(each.atoms, [5, 6])
        assert same_partition(chain.labels[each.atoms[old]], returned.labels[old])
    assert done.log_joint_after == pytest.approx(chain.log_joint())
    # A chain that was saved while the leases were out takes them back in the same way.
    after.adopt([(x.atoms, y.labels) for x, y in zip(lent, returns, strict=True)])
    np.testing.assert_array_equal(after.labels, chain.labels)


def test_arrivals_and_what_has_gone_keep_no_returned_label() -> None:
    lending = OutstandingLeases()
    lending.insert(np.array([5, 6]))
    # One arrival goes again, and so do two atoms that are out; the place of one is taken anew.
    lending.remove(np.array([5, 2, 3]))
    lending.insert(np.array([2]))
    assert (list(lending.arrived), lending.gone) == ([6, 2], {2, 3})
    labels = np.array([0, 0, 2, -1, 1, -1, 2])
    returns = [(np.array([0, 1, 2, 3]), np.array([0, 1, 1, 2]))]
    # The fourth was in no lease that came back; arrivals are drawn anew once all are in place.
    assert merged_labels(lending, labels, returns).tolist() == [0, 1, -1, -1, 2, -1, -1]


def test_the_same_lease_gives_the_same_answer(rng: Generator) -> None:
    (lent, *_) = grown(rng, 60).lend(rng, [BUDGET] * 1)
    first, second = work(lent.lease), work(Lease.from_arrays(lent.lease.arrays()))
    np.testing.assert_array_equal(first.labels, second.labels)


def test_what_does_not_come_back_stays(rng: Generator) -> None:
    chain = grown(rng, 60)
    before = chain.labels
    chain.lend(rng, [BUDGET] * 2)
    chain.adopt([])
    assert same_partition(before, chain.labels)


def test_a_prior_that_is_no_product_is_lent_whole(rng: Generator) -> None:
    chain = grown(rng, 40, "mfm")
    lent = chain.lend(rng, [BUDGET] * 4)
    assert len(lent) == 1
    chain.insert(rng.normal(size=(3, 2)))
    chain.adopt([(lent[0].atoms, work(lent[0].lease).labels)])
    assert chain.n_atoms == 43


def test_nothing_to_take_back(rng: Generator) -> None:
    with pytest.raises(ValueError, match="nothing is lent"):
        grown(rng, 5).adopt([])
