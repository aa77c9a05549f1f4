"""Densities of rows without themselves, against their definition; which partition they support."""

import numpy as np
import pytest
from numpy.random import Generator
from scipy.sparse import csr_matrix

from weald.mcmc.estimate.evidence import Gain, gain_in_density, left_out_densities
from weald.treecore.family import FAMILIES
from weald.treecore.family.totals import log_marginals, totals_of_groups


def test_densities_are_those_of_the_other_rows(rng: Generator) -> None:
    """By hand: a mixture of what the others of each cluster, and a new cluster, say of the row."""
    values = rng.normal(size=(12, 2))
    labels = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3])
    family = FAMILIES["gaussian"].build({}, values)
    found = left_out_densities(family, values, labels)

    def marginal(rows: np.ndarray) -> float:
        if rows.shape[0] == 0:
            return 0.0
        totals = totals_of_groups(family, rows, np.zeros(rows.shape[0], dtype=np.int64), 1)
        return float(log_marginals(family, totals)[0])

    for row in range(12):
        others = np.arange(12) != row
        density = 0.0
        for cluster in range(5):
            rest = values[others & (labels == cluster)]
            weight = rest.shape[0] if cluster < 4 else 1.0
            joined = np.concatenate([rest, values[[row]]])
            density += weight / 12.0 * np.exp(marginal(joined) - marginal(rest))
        assert found[row] == pytest.approx(np.log(density), abs=1e-9)


@pytest.mark.parametrize(("apart", "supported"), [(0.0, False), (6.0, True)])
def test_parting_is_supported_where_there_are_two(
    apart: float, supported: bool, rng: Generator
) -> None:
    labels = np.arange(400) % 2
    values = rng.normal(size=(400, 3))
    values[:, 0] += apart * labels
    family = FAMILIES["gaussian"].build({}, values)
    two, one = (left_out_densities(family, values, each) for each in (labels, 0 * labels))
    assert gain_in_density(two, one).is_clear == supported
    assert not gain_in_density(one, one).is_clear


def test_sparse_rows_count_as_dense_ones(rng: Generator) -> None:
    counts = rng.poisson(1.0, size=(40, 6)).astype(np.float64)
    labels = np.arange(40) % 3
    family = FAMILIES["multinomial"].build({}, counts)
    dense, sparse = (
        left_out_densities(family, values, labels) for values in (counts, csr_matrix(counts))
    )
    np.testing.assert_allclose(dense, sparse, atol=1e-10)


@pytest.mark.parametrize(
    ("gain", "told"),
    [
        (Gain(np.log(3.0), 0.0), "3 times as probable"),
        (Gain(0.0, np.log(2.0) / 2.0), "1 times as probable (0.5 to 2)"),
        (Gain(9.0, 0.1), "over 1000 times as probable"),
        (Gain(0.0, np.inf), "1 times as probable (almost 0 to over 1000)"),
    ],
)
def test_a_gain_reads_as_how_many_times(gain: Gain, told: str) -> None:
    assert str(gain) == told
