"""Concurrent workers over a real Redis and SQL: the short form of ``tests.leases.exactness``.

A right form is further from the posterior's mean number of clusters than it may be in one run of
two thousand; the full concentration is off by eight errors at this length.
"""

import pytest

from tests.exact.cases import problem
from tests.leases.exactness import MOST_ERRORS, Found, measure
from tests.leases.plane import Form

N_ROUNDS = 200


def errors(found: Found) -> float:
    return abs(found.n_clusters - found.true_clusters) / found.n_clusters_error


@pytest.mark.parametrize(("form", "n_workers"), [(Form.COINS, 2), (Form.LATE, 4)])
def test_right_forms(redis_url: str, form: Form, n_workers: int) -> None:
    found = measure(problem("bernoulli", "dp", 5), form, n_workers, N_ROUNDS, redis_url)
    assert errors(found) < MOST_ERRORS
    assert (found.n_fenced > 0) == (form is Form.LATE)


def test_the_full_concentration(redis_url: str) -> None:
    found = measure(problem("bernoulli", "dp", 5), Form.PLAIN_ALPHA, 4, N_ROUNDS, redis_url)
    assert errors(found) > MOST_ERRORS
