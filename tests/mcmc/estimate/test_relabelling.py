"""Each row in its most probable cluster, against log joints of whole partitions."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from tests.exact.posed import pose
from tests.treecore.invariants import describe, partition_faults
from weald.mcmc.chain.position import Position
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.estimate.consensus import consensus_partition
from weald.mcmc.estimate.relabelling import disputed, relabelled, relabelled_draws
from weald.mcmc.offline.start import atoms_of
from weald.treecore.family import FAMILIES
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels

N = 6

Labels = NDArray[np.int64]


def most_probable(labels: Labels, at: Callable[[Labels], Position]) -> Labels:
    """For each row the block that makes the partition most probable, the others staying."""
    found = labels.copy()
    for i in range(len(labels)):
        joints = []
        for c in range(labels.max() + 1):
            other = labels.copy()
            other[i] = c
            joints.append(at(canonical_labels(other)).log_joint())
        found[i] = int(np.argmax(joints))
    return found


def posed(prior_name: str) -> Callable[[Labels], Position]:
    """A partition of the rows, for its labels."""
    family, atoms = pose("gauss1", np.arange(N))
    prior = build_prior(prior_name, {})
    return lambda labels: Position(family, atoms, labels, prior, NotImplemented)


@pytest.mark.parametrize("prior_name", ["dp", "mfm"])
def test_against_every_move_of_one_row(prior_name: str, rng: Generator) -> None:
    at, moved = posed(prior_name), 0
    for _ in range(30):
        labels = canonical_labels(rng.integers(0, 4, size=N))
        expected = most_probable(labels, at)
        moved += (expected != labels).sum()
        position = at(labels)
        assert (relabelled(position.flat(), position.model) == canonical_labels(expected)).all()
        flat = position.flat()
        assert describe(partition_faults(position.model, flat.atoms, flat.partition)) == []
        assert (position.labels() == labels).all()
    assert moved > 0


def test_only_what_draws_dispute_is_relabelled(rng: Generator) -> None:
    at, moved = posed("dp"), 0
    for _ in range(20):
        draws = np.stack([canonical_labels(rng.integers(0, 2, size=N)) for _ in range(3)])
        first = at(draws[0])
        asked = disputed(draws)
        for draw, found in zip(
            draws, relabelled_draws(draws, first.atoms, first.model), strict=True
        ):
            expected = draw.copy()
            expected[asked] = most_probable(draw, at)[asked]
            assert (found == canonical_labels(expected)).all()
            moved += (expected != draw).sum()
    assert moved > 0


@pytest.mark.parametrize("prior_name", ["dp", "mfm"])
def test_atoms_that_are_in_no_draw_change_nothing(prior_name: str, rng: Generator) -> None:
    """As bits: a stream relabels its draws among atoms that have left and left gaps."""
    family, prior, moved = FAMILIES["gaussian"].build({}, rng.normal(size=(9, 2))), prior_name, 0
    for _ in range(20):
        values = rng.normal(size=(40, 2)) + 2.0 * rng.integers(0, 3, size=(40, 1))
        places = np.sort(rng.choice(40, size=25, replace=False))
        draws = np.stack([canonical_labels(rng.integers(0, 4, size=25)) for _ in range(3)])
        few, every = atoms_of(family, values[places]), atoms_of(family, values)
        model = Position(family, few, draws[0], build_prior(prior, {}), NotImplemented).model
        found = relabelled_draws(draws, every, model, places)
        assert (found == relabelled_draws(draws, few, model)).all()
        moved += (found != draws).sum()
    assert moved > 0


@pytest.mark.parametrize(
    ("draws", "expected"),
    [
        ([[0, 0, 1]], []),
        ([[0, 0, 0], [0, 1, 2]], []),
        ([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1]], [2]),
        ([[0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1]], [2]),
    ],
)
def test_draws_dispute_what_leaves_most_of_its_block(
    draws: list[list[int]], expected: list[int]
) -> None:
    """A draw that joins blocks of the last one disputes none of their members."""
    assert disputed(np.array(draws)).tolist() == expected


def test_clusters_that_overlap_stay_apart() -> None:
    """Ten pairs of clusters, two deviations apart, in draws that know where they lie.

    Chance puts a tenth of a pair's members across, others in each draw, so the least variation of
    information over the draws as they are joins pairs.
    """
    rng = Generator(PCG64(5))
    centres = np.stack([np.repeat(np.arange(10) * 40.0, 2), np.tile([0.0, 2.0], 10)], axis=1)
    truth = np.repeat(np.arange(20), 40)
    values = centres[truth] + rng.normal(size=(len(truth), 2))
    chances = np.exp(-0.5 * ((values[:, None, :] - centres) ** 2).sum(axis=2))
    chances /= chances.sum(axis=1, keepdims=True)
    drawn = [[rng.choice(20, p=each) for each in chances] for _ in range(16)]
    draws = np.stack([canonical_labels(np.array(each)) for each in drawn])
    family = FAMILIES["gaussian"].build({}, values)
    atoms = atoms_of(family, values)
    model = Position(family, atoms, draws[0], build_prior("dp", {}), NotImplemented).model

    as_drawn = consensus_partition(draws, "vi")
    shown = consensus_partition(relabelled_draws(draws, atoms, model), "vi")
    known = adjusted_rand_index(truth, np.argmax(chances, axis=1))
    assert (as_drawn.max() + 1, shown.max() + 1) == (10, 20)
    assert adjusted_rand_index(truth, shown) > known - 0.03
    assert adjusted_rand_index(truth, as_drawn) < known - 0.05
