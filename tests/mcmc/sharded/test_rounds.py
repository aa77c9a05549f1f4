"""Rounds of shards: the posterior over all their atoms, one name a block, and shards that die."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from tests.exact.enumeration import Shape
from tests.exact.posed import DATA, log_posterior, pose
from tests.mcmc.sharded.in_rounds import BUDGET, InRounds
from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.leases.leases import Budget
from weald.mcmc.sharded.global_round import GlobalRound
from weald.mcmc.sharded.launches import LaunchedMove
from weald.mcmc.sharded.round_messages import Redrawn, ShardTurn, added
from weald.mcmc.sharded.shard_chain import ShardChain
from weald.treecore.family import FAMILIES
from weald.treecore.family.totals import totals_of_groups
from weald.treecore.partition.partition import Model
from weald.treecore.prior import PartitionPrior, build_prior
from weald.treecore.prior.base import Seating
from weald.treecore.prior.sequential import canonical_labels

N_BATCHES = 16
OWNER = np.array([0, 1, 1, 0, 1])
CENTRES = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])


def apart(rng: Generator, n: int, n_shards: int) -> tuple[InRounds, NDArray[np.int64]]:
    """Shards of some rows of three clusters that lie far apart, and the cluster of each row."""
    truth = rng.integers(0, 3, n)
    rows = CENTRES[truth] + rng.normal(size=(n, 2))
    model = FAMILIES["gaussian"].build({}, rows), build_prior("dp", {})
    return InRounds(model, rows, rng.integers(0, n_shards, n)), truth


def same_partition(labels: NDArray[np.int64], others: NDArray[np.int64]) -> bool:
    return bool((canonical_labels(labels) == canonical_labels(others)).all())


def posterior(
    data: str, prior: str
) -> tuple[Any, PartitionPrior, NDArray[np.float64], dict[Shape, float]]:
    """Family and prior, rows, and how probable each of their partitions is."""
    n = OWNER.shape[0]
    family, atoms = pose(data, np.arange(n))
    parameters = {"alpha": 1.0} if prior == "dp" else {}
    built = build_prior(prior, {**parameters, "learn": False})
    log_target = log_posterior(family, atoms, built)
    target = np.exp(np.array(list(log_target.values())) - max(log_target.values()))
    shares = (target / target.sum()).tolist()
    return family, built, DATA[data][2][:n], dict(zip(log_target, shares, strict=True))


def visits(
    rounds: InRounds, target: dict[Shape, float], n_rounds: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How many blocks, how large the largest is, and who is with whom: shares by batch of rounds.

    Beside them what is so.
    """
    shapes = np.array(list(target))
    index, n = {shape: at for at, shape in enumerate(target)}, shapes.shape[1]
    found = np.zeros((N_BATCHES, len(shapes)))
    for step in range(n_rounds):
        # Now and then one dies somewhere in a round.
        rounds.dies_at = 1 + step % 8 if step % 97 == 13 else None
        rounds.go(BUDGET)
        labels = tuple(canonical_labels(rounds.names()).tolist())
        found[step * N_BATCHES // n_rounds, index[labels]] += N_BATCHES / n_rounds
    statistics = [shapes.max(axis=1) == k for k in range(n)]
    largest = np.array([np.bincount(shape).max() for shape in shapes])
    statistics += [largest == size for size in range(1, n + 1)]
    statistics += [shapes[:, i] == shapes[:, j] for i in range(n) for j in range(i)]
    table = np.array(statistics, dtype=np.float64).T
    return found @ table, np.array(list(target.values())) @ table


def agree(batches: NDArray[np.float64], exact: NDArray[np.float64], n_rounds: int) -> bool:
    """Within 4.5 standard errors of 20 statistics: false alarms 1 in 5,000."""
    independent = np.sqrt(exact * (1.0 - exact) / n_rounds)
    error = np.maximum(batches.std(axis=0, ddof=1) / np.sqrt(N_BATCHES), independent)
    assert error.max() < 0.04
    # What is certain has no standard error, but its shares are sums that are rounded.
    return bool((np.abs(batches.mean(axis=0) - exact) <= 4.5 * error + 1e-9).all())


@pytest.mark.slow
@pytest.mark.parametrize(("data", "prior"), [("bern", "dp"), ("gauss1", "mfm")])
def test_rounds_visit_the_posterior(data: str, prior: str) -> None:
    n_rounds = 3_000
    family, built, rows, target = posterior(data, prior)
    rounds = InRounds((family, built), rows, OWNER, pairs=2)
    assert agree(*visits(rounds, target, n_rounds), n_rounds)


@pytest.mark.slow
def test_splits_judged_without_the_probability_of_their_sides_miss_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = LaunchedMove.log_ratio

    def wrong(move: LaunchedMove, model: Model, seating: Seating, k: int) -> float:
        return right(move._replace(log_q=0.0), model, seating, k)

    monkeypatch.setattr(LaunchedMove, "log_ratio", wrong)
    family, prior, rows, target = posterior("bern", "dp")
    rounds = InRounds((family, prior), rows, OWNER, pairs=2)
    # What is noticed in fewer rounds than the right form is followed for would be in as many.
    assert not agree(*visits(rounds, target, 1_000), 1_000)


class Redrawing(InRounds):
    """Nothing but blocks that are drawn anew: there stay as many as there were."""

    def _turn(self, model: Any, turn: ShardTurn, budget: Budget, shard: ShardChain) -> Any:
        return super()._turn(model, turn._replace(mine=turn.mine[:0]), budget, shard)


@pytest.mark.slow
@pytest.mark.parametrize("forgets_the_sizes", [False, True])
def test_blocks_drawn_anew_visit_what_two_blocks_can_be(
    monkeypatch: pytest.MonkeyPatch, *, forgets_the_sizes: bool
) -> None:
    """The form without a look at how many there are to hold one of is wrong, and noticed."""
    right = GlobalRound.hear_redrawn

    def wrong(at: GlobalRound, answers: Sequence[Redrawn]) -> None:
        asked = at.redraw_of(0)
        if asked is not None:
            # As if there were as many as before.
            before = at.whole().size[np.isin(at.whole().names, asked.names)]
            answers = [each._replace(atoms=np.zeros_like(before)) for each in answers]
            answers[0] = answers[0]._replace(atoms=before)
        right(at, answers)

    if forgets_the_sizes:
        monkeypatch.setattr(GlobalRound, "hear_redrawn", wrong)
    # What is noticed in fewer rounds would be in as many.
    n_rounds = 5_000 if forgets_the_sizes else 8_000
    family, prior, rows, target = posterior("bern", "dp")
    left = {shape: p for shape, p in target.items() if max(shape) == 1}
    left = {shape: p / sum(left.values()) for shape, p in left.items()}
    rounds = Redrawing((family, prior), rows, OWNER, pairs=0, together=True)
    assert agree(*visits(rounds, left, n_rounds), n_rounds) is not forgets_the_sizes


def test_a_cluster_that_lies_across_all_shards_has_one_name(rng: Generator) -> None:
    """Each shard began alone, so that nothing had a name in common."""
    rounds, truth = apart(rng, 300, 3)
    assert len(np.unique(rounds.names())) >= 9
    for _ in range(40):
        rounds.go()
    # What is shown is a draw, of which a few rows may lie elsewhere.
    assert adjusted_rand_index(rounds.names(), truth) > 0.95
    for cluster in range(3):
        most = {
            int(np.bincount(rounds.names()[(truth == cluster) & (rounds.owner == shard)]).argmax())
            for shard in range(3)
        }
        assert len(most) == 1


def test_reports_are_the_sums_of_what_has_a_name(rng: Generator) -> None:
    rounds, _ = apart(rng, 120, 3)
    for _ in range(5):
        rounds.go()
        whole = added([each.blocks for each in rounds.reports], 7)
        names, counts = np.unique(rounds.names(), return_counts=True)
        np.testing.assert_array_equal(whole.names, names)
        np.testing.assert_array_equal(whole.size, counts)
        labels = np.searchsorted(names, rounds.names())
        sums = totals_of_groups(rounds.model[0], rounds.rows, labels, len(names))
        np.testing.assert_allclose(whole.rows, sums, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dies_at", [1, 4, 7, 10, 13, 15])
def test_a_shard_that_dies_in_a_round_goes_on_with_the_same_bits(
    rng: Generator, dies_at: int
) -> None:
    state = rng.bit_generator.state
    whole, _ = apart(rng, 90, 3)
    rng.bit_generator.state = state
    broken, _ = apart(rng, 90, 3)
    broken.dies_at = dies_at
    for _ in range(6):
        tallies = whole.go().tally, broken.go().tally
        np.testing.assert_array_equal(*tallies)
        np.testing.assert_array_equal(whole.names(), broken.names())
        for one, other in zip(whole.reports, broken.reports, strict=True):
            np.testing.assert_array_equal(one.blocks.rows, other.blocks.rows)


def test_what_comes_and_goes_in_a_round_takes_no_part_in_it(rng: Generator) -> None:
    rounds, _ = apart(rng, 90, 2)
    rounds.go()
    shard = rounds.shards[0]
    n = shard.chain.n_atoms
    shard.remove(np.array([3, 5]))
    # One of them gets the id of an atom that has left.
    ids = shard.chain.insert(CENTRES[[0, 1, 2]] + 0.1)
    assert {3, 5} <= set(ids.tolist())
    rounds.go()
    assert shard.chain.n_atoms == n + 1
    assert rounds.reports[0].n_atoms == n + 1
    assert int(rounds.reports[0].blocks.size.sum()) == n + 1
    labels = shard.chain.labels
    assert same_partition(shard.named[labels >= 0], labels[labels >= 0])
    for _ in range(40):
        rounds.go()
    # Each arrival is where its neighbours are, in both shards.
    assert len(np.unique(shard.named[ids])) == 3
    assert set(shard.named[ids]) <= set(rounds.reports[1].blocks.names)


def rounds_of_strangers(rng: Generator, prior: str) -> InRounds:
    """Two shards after some rounds, of which the second has nothing of the third cluster."""
    truth, owner = rng.integers(0, 3, 90), rng.integers(0, 2, 90)
    owner[truth == 2] = 0
    rows = CENTRES[truth] + rng.normal(size=(90, 2))
    rounds = InRounds((FAMILIES["gaussian"].build({}, rows), build_prior(prior, {})), rows, owner)
    for _ in range(20):
        rounds.go()
    return rounds


def gather(chain: MixtureChain, *blocks: NDArray[np.int64]) -> None:
    """Put the atoms of each of these into a block of their own."""
    atoms = np.arange(chain.n_atoms)
    labels = chain.labels_of(atoms)
    for block in blocks:
        labels[block] = labels.max() + 1
    chain.hold()
    chain.adopt([(atoms, canonical_labels(labels))], learns=False)


@pytest.mark.parametrize("prior", ["dp", "mfm"])
def test_what_a_block_gains_elsewhere_is_the_change_of_the_log_joint(
    rng: Generator, prior: str
) -> None:
    rounds = rounds_of_strangers(rng, prior)
    one, shard = rounds.shards
    # As the first shard's blocks are after its turn: what is told with a turn is from before it.
    blocks = rounds.reports[0].blocks
    shard.elsewhere = blocks.of(np.setdiff1d(blocks.names, rounds.reports[1].blocks.names))
    new = CENTRES[[2, 2, 2]] + rng.normal(size=(3, 2))
    ids = shard.chain.insert(new)
    gather(shard.chain, ids)
    (slot,) = set(shard.chain.labels_of(ids).tolist())
    names, gains = shard.joins(shard.chain.atom_rows(ids).sum(axis=0, keepdims=True))
    # The same clusters in one chain: those elsewhere, and all own ones.
    theirs = np.flatnonzero(np.isin(one.named, shard.elsewhere.names))
    labels = np.concatenate([shard.chain.labels, one.named[theirs] + 1000])
    assert names[0] in one.named[theirs]
    rows, owner = rounds.rows, rounds.owner
    values = np.concatenate([rows[owner == 1], new, rows[owner == 0][theirs]])

    def log_joint(labels: NDArray[np.int64]) -> float:
        chain = MixtureChain.start(shard.chain.family, shard.chain.prior, seed=0)
        ids = chain.insert(values)
        chain.hold()
        chain.adopt([(ids, canonical_labels(labels))], learns=False)
        return chain.log_joint()

    together = np.where(labels == names[0] + 1000, slot, labels)
    assert gains[0] == pytest.approx(log_joint(together) - log_joint(labels), abs=1e-6)
    assert gains[0] > 3.0


def test_what_arrives_in_a_block_of_others_is_reported_as_theirs(rng: Generator) -> None:
    rounds = rounds_of_strangers(rng, "dp")
    one, shard = rounds.shards
    theirs, counts = np.unique(one.named[one.named != -1], return_counts=True)
    counts[~np.isin(theirs, shard.elsewhere.names)] = 0
    largest = theirs[counts.argmax()]
    near, beside = (shard.chain.insert(CENTRES[[2] * n] + 0.1) for n in (4, 2))
    far = shard.chain.insert(np.array([[60.0, 60.0]]))
    # Of two blocks that would join one, the second is left to the rounds.
    gather(shard.chain, near, beside, far)
    report = shard.report()
    (first,), (second,), (third,) = (set(shard.named[each]) for each in (near, beside, far))
    assert first == largest
    assert not {second, third} & {*theirs.tolist()}
    assert len(np.unique(report.blocks.names)) == len(report.blocks.names)
    assert largest not in shard.elsewhere.names
    # And comes again to the bit, as whoever is put in its place would tell it.
    restored = ShardChain.restore(shard.state())
    np.testing.assert_array_equal(restored.elsewhere.rows, shard.elsewhere.rows)


def test_whatever_comes_and_goes_accounts_add_up(rng: Generator) -> None:
    """Arrivals and removals in any shard, before any answer and before the reports."""
    rounds, _ = apart(rng, 60, 3)
    given = set(rounds.names().tolist())
    there = [set(shard.chain.held.tolist()) for shard in rounds.shards]

    def meanwhile() -> None:
        at = int(rng.integers(3))
        shard, ids = rounds.shards[at], there[at]
        if rng.random() < 0.5 and len(ids) > 5:
            gone = int(rng.choice(sorted(ids)))
            shard.remove(np.array([gone]))
            ids.remove(gone)
        else:
            rows = CENTRES[rng.integers(0, 3, 2)] + rng.normal(size=(2, 2))
            ids.update(shard.chain.insert(rows).tolist())

    rounds.meanwhile = meanwhile
    for _ in range(30):
        rounds.go()
        names: set[int] = set()
        for shard, report, ids in zip(rounds.shards, rounds.reports, there, strict=True):
            assert set(shard.chain.held.tolist()) == ids
            assert report.n_atoms == report.blocks.size.sum() == len(ids)
            own = shard.named[sorted(ids)]
            assert same_partition(own, shard.chain.labels[sorted(ids)])
            found, counts = np.unique(own, return_counts=True)
            np.testing.assert_array_equal(found, report.blocks.names)
            np.testing.assert_array_equal(counts, report.blocks.size)
            rows = shard.chain.atom_rows(np.array(sorted(ids)))
            sums = np.zeros_like(report.blocks.rows)
            np.add.at(sums, np.searchsorted(found, own), rows)
            np.testing.assert_allclose(report.blocks.rows, sums, rtol=1e-9, atol=1e-7)
            # New names are the shard's own, or the round's.
            names |= set(found.tolist())
            assert {name % 4 for name in found.tolist() if name not in given} <= {shard.shard, 3}
        given |= names
