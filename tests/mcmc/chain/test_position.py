"""One partition in two forms: what kernels of either kind leave, the other kind finds."""

from typing import Any

import numpy as np
import pytest

from tests.mcmc.chains import clumps
from tests.mcmc.piece_invariants import piece_faults
from tests.treecore.invariants import describe, guide_faults, partition_faults
from weald.mcmc.chain.position import Position
from weald.mcmc.offline.start import atoms_of, grow_forest
from weald.mcmc.schedule.kernels import KERNELS
from weald.treecore.errors import ParameterError
from weald.treecore.family import FAMILIES
from weald.treecore.guide.guide import freeze
from weald.treecore.partition.partition import lower_slots, rebuild_rows
from weald.treecore.prior import PartitionPrior, build_prior
from weald.treecore.prior.sequential import canonical_labels

N = 80


def position(prior: PartitionPrior, labels: Any) -> Position:
    values = clumps(4, N)
    family = FAMILIES["gaussian"].build({}, values)
    atoms = atoms_of(family, values)
    forest = grow_forest(family, prior, atoms)
    return Position(family, atoms, labels, prior, lambda model: freeze(model, forest))


def check(at: Position) -> None:
    """Both forms agree with the labels."""
    labels = at.labels()
    flat = at.flat()
    assert describe(partition_faults(at.model, flat.atoms, flat.partition)) == []
    assert (at.labels() == labels).all()
    tree = at.tree()
    assert describe(guide_faults(at.model, tree.guide)) == []
    assert describe(piece_faults(at.model, tree.guide, tree.pieces)) == []
    assert (at.labels() == labels).all()
    assert sorted(at.sizes()) == sorted(np.bincount(labels))


@pytest.mark.parametrize("name", ["dp", "nggp", "pitman-yor", "mfm"])
def test_kernels_of_both_kinds_in_turn(name: str, rng: np.random.Generator) -> None:
    at = position(build_prior(name, {"learn": True}), np.arange(N) % 7)
    for kernel in ("gibbs", "tgmcmc", "tgmcmc", "sams", "gibbs", "gibbs", "tgmcmc"):
        at.use_prior(at.prior.resample(rng, at.sizes()))
        KERNELS[kernel].sweep(rng, at)
        check(at)


def test_any_integers_are_labels() -> None:
    labels = np.random.default_rng(0).choice([-7, 3, 10**6], size=N)
    assert (position(build_prior("dp", {}), labels).labels() == canonical_labels(labels)).all()


def test_another_partition() -> None:
    at = position(build_prior("dp", {}), np.zeros(N))
    one = at.log_joint()
    for form in (at.flat, at.tree):
        form()
        at.set_labels(np.arange(N))
        assert at.sizes().tolist() == [1] * N
        assert at.log_joint() != one
        at.set_labels(np.zeros(N))
        assert at.log_joint() == pytest.approx(one)
    check(at)


def test_log_joint_is_prior_times_likelihood(rng: np.random.Generator) -> None:
    prior = build_prior("nggp", {"sigma": 0.3})
    at = position(prior, rng.integers(0, 5, size=N))
    expected = at.log_likelihood() + prior.log_probability(at.sizes())
    assert at.log_joint() == pytest.approx(expected)
    other = build_prior("dp", {"alpha": 3.0})
    difference = other.log_probability(at.sizes()) - prior.log_probability(at.sizes())
    assert at.log_joint(other) - at.log_joint() == pytest.approx(difference)
    at.tree()
    assert at.log_joint() == pytest.approx(expected)


def test_potentials_follow_the_prior(rng: np.random.Generator) -> None:
    """Also where it changes while the partition is held atom by atom."""
    at = position(build_prior("nggp", {"learn": True}), np.zeros(N))
    at.tree()
    for _ in range(3):
        at.flat()
        at.use_prior(at.prior.resample(rng, at.sizes()))
        tree = at.tree()
        assert describe(guide_faults(at.model, tree.guide)) == []
        at.use_prior(at.prior.resample(rng, at.sizes()))
        assert describe(guide_faults(at.model, at.tree().guide)) == []


def test_the_same_prior_is_not_tabulated_again() -> None:
    at = position(build_prior("mfm", {}), np.zeros(N))
    model = at.model
    at.use_prior(build_prior("mfm", {}))
    assert at.model is model
    at.use_prior(build_prior("mfm", {"mean": 2.0}))
    assert at.model is not model


@pytest.mark.parametrize("form", ["flat", "tree"])
def test_statistics_are_summed_afresh_before_every_kernel(
    form: str, rng: np.random.Generator
) -> None:
    """A kernel's own drift does not add up when it is the only one."""
    at = position(build_prior("dp", {}), rng.integers(0, 5, size=N))
    expected = at.log_joint()
    partition = at.flat().partition if form == "flat" else at.tree().pieces.partition
    partition.rows[partition.slots[:5]] += 1e-3
    partition.stale[:] = 3
    assert at.log_joint() != pytest.approx(expected, abs=1e-6)
    getattr(at, form)()
    assert at.log_joint() == pytest.approx(expected)


def test_arrays_that_are_used_again_change_no_draw() -> None:
    """Bit for bit: what was in them before says nothing."""
    reusing, fresh = (position(build_prior("dp", {"learn": True}), np.arange(N)) for _ in range(2))
    generators = [np.random.default_rng(3) for _ in range(2)]
    for kernel in ("gibbs", "tgmcmc", "gibbs", "sams", "tgmcmc", "gibbs") * 3:
        for at, rng in zip((reusing, fresh), generators, strict=True):
            at.resample(rng)
            KERNELS[kernel].sweep(rng, at)
        fresh._spare_state = fresh._spare_pieces = None
        assert (reusing.labels() == fresh.labels()).all()
        assert reusing.log_joint() == fresh.log_joint()


class _Narrow:
    """A learner whose base measure lets each observation be alone, and no two of them together."""

    def step(self, _rng: Any, family: Any, _rows: Any) -> Any:
        least = np.full_like(family.rate, 1e-305)
        return family._replace(kappa=least, rate=least, log_rate=np.log(least))

    def middle(self, families: list[Any]) -> Any:
        return families[0]

    def shown(self, _family: Any) -> dict[str, float]:
        return {}


def test_no_base_measure_makes_a_node_of_the_guide_impossible(rng: np.random.Generator) -> None:
    prior = build_prior("dp", {})
    values = 1e5 * np.random.default_rng(0).normal(size=(12, 1))
    family: Any = FAMILIES["diagonal"].build({}, values)
    atoms = atoms_of(family, values)
    forest = grow_forest(family, prior, atoms)
    labels = np.arange(12)
    at = Position(
        family, atoms, labels, prior, lambda model: freeze(model, forest), learner=_Narrow()
    )
    before = at.guide().log_potential.copy()
    at.resample(rng)
    assert at.family is family
    assert (at.guide().log_potential == before).all()
    # Without a guide nothing tells, until there is one.
    other = Position(
        family, atoms, labels, prior, lambda model: freeze(model, forest), learner=_Narrow()
    )
    other.resample(rng)
    assert other.family is not family
    with pytest.raises(ParameterError, match="no probability as one cluster"):
        other.guide()


def blocks_in_order(at: Position) -> list[set[int]]:
    partition = at.flat().partition
    slots = partition.slots[: int(partition.n_blocks[0])]
    return [set(np.flatnonzero(partition.label == slot).tolist()) for slot in slots]


def highest_slot(at: Position) -> int:
    partition = at.flat().partition
    return int(partition.slots[: int(partition.n_blocks[0])].max())


def test_low_slots_change_no_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """From singletons, of which few blocks are left, whose slots are anywhere."""
    monkeypatch.setattr("weald.mcmc.chain.position.lower_slots", lambda _partition: None)
    lowered, left = (position(build_prior("dp", {}), np.arange(N)) for _ in range(2))
    draws = [np.random.default_rng(5) for _ in range(2)]
    for _ in range(6):
        for rng, at in zip(draws, (lowered, left), strict=True):
            KERNELS["gibbs"].sweep(rng, at)
            KERNELS["sams"].sweep(rng, at)
        flat = lowered.flat()
        lower_slots(flat.partition)
        rebuild_rows(flat.atoms, flat.partition)
        assert describe(partition_faults(lowered.model, flat.atoms, flat.partition)) == []
        assert blocks_in_order(lowered) == blocks_in_order(left)
    n_blocks = len(lowered.sizes())
    assert highest_slot(lowered) < 2 * n_blocks < highest_slot(left)
