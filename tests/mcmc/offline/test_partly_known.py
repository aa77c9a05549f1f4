"""Rows with gaps in numbers are put where what they have fits best."""

import numpy as np
import pytest
from numpy.random import Generator
from scipy.special import logsumexp

from weald.mcmc.estimate.predictive import Predictive
from weald.mcmc.offline.partly_known import placed
from weald.treecore.family import FAMILIES
from weald.treecore.family.totals import totals_of_groups
from weald.treecore.prior import build_prior

PRIOR = build_prior("pitman-yor", {"alpha": 1.0, "discount": 0.3})


def test_a_gap_is_integrated_over(rng: Generator) -> None:
    """What is missing may be anything: the joint predictive, summed over a fine grid of it."""
    labels = np.repeat([0, 1, 2], [5, 9, 4])
    values = rng.normal(size=(18, 2)) @ np.array([[1.0, 0.8], [0.0, 0.5]])
    values += np.array([[0.0, 0.0], [1.5, -1.0], [0.5, 2.0]])[labels]
    params = {"mean": [0.3, 0.1], "kappa": 0.4, "nu": 5.5, "psi": [[1.2, 0.4], [0.4, 0.9]]}
    family = FAMILIES["gaussian"].build(params, values)
    ids = np.arange(3)
    asked = Predictive.of(family, PRIOR, ids, totals_of_groups(family, values, labels, 3))
    grid = np.linspace(-400.0, 400.0, 80_001)
    for known in (-0.4, 1.1):
        at = np.column_stack([np.full(grid.size, known), grid])
        joint = logsumexp(asked.log_joint(at)[:, :3], axis=0)
        found, sure = placed(family, PRIOR, (values, labels), np.array([[known, np.nan]]))
        assert found[0] == joint.argmax()
        assert sure[0] == pytest.approx(float(np.exp(joint.max() - logsumexp(joint))), abs=1e-4)


def test_what_else_a_row_has_counts_too(rng: Generator) -> None:
    """Clusters alike in one number, apart in the other, and told by a flag where that is gone."""
    labels = np.arange(200) % 2
    flag = (rng.random(200) < np.where(labels, 0.95, 0.05)).astype(np.float64)
    values = np.column_stack([rng.normal(size=200), 20.0 * labels + rng.normal(size=200), flag])
    parts = [{"family": "gaussian", "columns": [0, 1]}, {"family": "bernoulli", "columns": [2]}]
    family = FAMILIES["mixed"].build({"parts": parts}, values)
    gap = np.nan
    rows = np.array(
        [[gap, 19.0, 0.0], [0.0, gap, 1.0], [0.0, gap, 0.0], [gap, gap, gap], [gap, gap, 1.0]]
    )
    found, sure = placed(family, PRIOR, (values, labels), rows)
    assert found[[0, 1, 2, 4]].tolist() == [1, 1, 0, 1]
    assert sure[0] > 0.999
    assert 0.9 < sure[1] < 0.99
    # Nothing is known of it but how many there are of each.
    assert sure[3] == pytest.approx(0.5)
