"""Each row in its most probable cluster, against log joints of whole partitions."""

import numpy as np
import pytest
from numpy.random import Generator

from tests.exact.posed import pose
from tests.treecore.invariants import describe, partition_faults
from weald.mcmc.chain.position import Position
from weald.mcmc.estimate.relabelling import relabelled
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels

N = 6


@pytest.mark.parametrize("prior_name", ["dp", "mfm"])
def test_against_every_move_of_one_row(prior_name: str, rng: Generator) -> None:
    family, atoms = pose("gauss1", np.arange(N))
    prior = build_prior(prior_name, {})

    def log_joint(labels: np.ndarray) -> float:
        return Position(family, atoms, labels, prior, NotImplemented).log_joint()

    moved = 0
    for _ in range(30):
        labels = canonical_labels(rng.integers(0, 4, size=N))
        expected = labels.copy()
        for i in range(N):
            alone = (labels == labels[i]).sum() == 1
            places = np.arange(labels.max() + 1)
            joints = []
            for c in places:
                other = labels.copy()
                other[i] = c
                joints.append(log_joint(canonical_labels(other)))
            expected[i] = places[int(np.argmax(joints))]
            moved += expected[i] != labels[i] and not alone
        position = Position(family, atoms, labels, prior, NotImplemented)
        assert (relabelled(position.flat(), position.model) == canonical_labels(expected)).all()
        flat = position.flat()
        assert describe(partition_faults(position.model, flat.atoms, flat.partition)) == []
        assert (position.labels() == labels).all()
    assert moved > 0
