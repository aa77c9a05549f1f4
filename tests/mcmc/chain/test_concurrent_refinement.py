"""Refinement of all atoms beside arrivals: it leaves no trace until it is taken over, nor tilts."""

from collections import Counter

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.stats import chi2

from tests.exact.enumeration import partitions
from weald.mcmc.chain.chain import MixtureChain
from weald.treecore.family import FAMILIES
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels

Values = NDArray[np.float64]


def grown(values: Values, prior: str = "dp", seed: int = 3) -> MixtureChain:
    family = FAMILIES["gaussian"].build({}, values)
    chain = MixtureChain.start(family, build_prior(prior, {"learn": False}), seed=seed)
    chain.insert(values)
    return chain


def drawn(rng: Generator, n: int) -> Values:
    return rng.normal(size=(n, 2)) + 6.0 * rng.integers(0, 3, size=(n, 1))


def same(one: MixtureChain, other: MixtureChain) -> bool:
    there, here = one.state(), other.state()
    return there.keys() == here.keys() and all(
        np.array_equal(there[name], here[name]) for name in there
    )


def test_one_that_is_dropped_has_never_been(rng: Generator) -> None:
    values, later = drawn(rng, 120), drawn(rng, 30)
    chain, other = grown(values), grown(values)
    # Where trees lag behind the arrivals, too.
    chain.refine(1)
    other.refine(1)
    for each in (chain, other):
        each.insert(later[:10])
    refinement = chain.begin_concurrent(1, 2, 1)
    for each in (chain, other):
        each.insert(later[10:20], by_trees=True)
    refinement.run()
    chain.drop_concurrent()
    for each in (chain, other):
        each.insert(later[20:], by_trees=True)
        each.refine(2)
    assert same(chain, other)


@pytest.mark.parametrize("prior", ["dp", "mfm"])
def test_what_came_and_went_meanwhile(rng: Generator, prior: str) -> None:
    chain = grown(drawn(rng, 80), prior)
    refinement = chain.begin_concurrent(1, 4, 2)
    chain.remove(np.array([5, 6, 7]))
    ids = chain.insert(drawn(rng, 2))
    assert set(ids.tolist()) < {5, 6, 7}
    refinement.run()
    done, draws = chain.adopt_concurrent(refinement)
    assert len(draws) == 2
    old = np.setdiff1d(np.arange(80), [5, 6, 7])
    for draw in draws:
        assert draw[[5, 6, 7]].tolist() == [-1, -1, -1]
        assert (draw[old] >= 0).all()
    # The last draw is where it ended, and those that stayed are there now.
    assert np.array_equal(canonical_labels(chain.labels_of(old)), canonical_labels(draws[-1][old]))
    assert (chain.labels_of(ids) >= 0).all()
    assert chain.n_atoms == 79
    assert done.log_joint_after == pytest.approx(chain.log_joint())
    assert done.n_blocks == chain.n_blocks
    assert {each.name for each in done.kernels} >= {"gibbs", "sams"}
    with pytest.raises(ValueError, match="no refinement goes on"):
        chain.adopt_concurrent(refinement)


def test_the_same_number_makes_the_same_refinement_and_another_one_another(rng: Generator) -> None:
    values = rng.normal(size=(60, 2)) * 2.0
    found = []
    for number in (1, 1, 2):
        chain = grown(values)
        refinement = chain.begin_concurrent(number, 3, 1)
        refinement.run()
        chain.adopt_concurrent(refinement)
        found.append(chain)
    assert same(found[0], found[1])
    assert not np.array_equal(found[0].labels, found[2].labels)


def test_nothing_comes_of_one_that_was_stopped(rng: Generator) -> None:
    refinement = grown(drawn(rng, 40)).begin_concurrent(1, 1000, 1)
    refinement.stop()
    refinement.run()
    with pytest.raises(RuntimeError, match="not come to its end"):
        _ = refinement.refinement


def test_arrivals_meanwhile_do_not_tilt_the_law() -> None:
    """From the posterior of four, with a fifth that comes meanwhile: posterior times one draw."""
    values = np.array([[0.0, 0.0], [1.1, 0.2], [2.0, -0.3], [3.2, 0.1], [1.6, 0.0]])
    family = FAMILIES["gaussian"].build({}, values)
    prior = build_prior("dp", {"learn": False})

    def chain_at(labels: NDArray[np.int64], seed: int) -> MixtureChain:
        chain = MixtureChain.start(family, prior, seed=seed)
        chain.insert(values[:4])
        chain._settle(labels)
        return chain

    shapes = [np.array(shape) for shape in partitions(4)]
    log_joints = np.array([chain_at(shape, 0).log_joint() for shape in shapes])
    posterior = np.exp(log_joints - log_joints.max())
    posterior /= posterior.sum()
    law: dict[tuple[int, ...], float] = {}
    for shape, probability in zip(shapes, posterior, strict=True):
        chain = chain_at(shape, 0)
        slots, weights = chain.log_weights(values[4:])
        shares = np.exp(weights[0] - weights[0].max())
        for slot, share in zip([*slots.tolist(), -1], shares / shares.sum(), strict=True):
            block = np.append(chain.labels, slot if slot >= 0 else chain.labels.max() + 1)
            key = tuple(canonical_labels(block).tolist())
            law[key] = law.get(key, 0.0) + probability * share
    draw, n, found = np.random.default_rng(11), 6000, Counter[tuple[int, ...]]()
    for seed, at in enumerate(draw.choice(len(shapes), size=n, p=posterior)):
        chain = chain_at(shapes[at], seed)
        refinement = chain.begin_concurrent(1, 1, 1)
        chain.insert(values[4:])
        refinement.run()
        chain.adopt_concurrent(refinement)
        found[tuple(canonical_labels(chain.labels).tolist())] += 1
    # Pearson's statistic, with states of few expected counts as one.
    expected = {key: n * share for key, share in law.items()}
    frequent = [key for key, count in expected.items() if count >= 5]
    rest = n - sum(expected[key] for key in frequent)
    counts = np.array([found[key] for key in frequent])
    terms = (counts - [expected[key] for key in frequent]) ** 2 / [expected[k] for k in frequent]
    statistic = terms.sum() + (n - counts.sum() - rest) ** 2 / max(rest, 5.0)
    assert statistic < chi2.ppf(0.999, len(frequent))
    assert len(frequent) > 15
