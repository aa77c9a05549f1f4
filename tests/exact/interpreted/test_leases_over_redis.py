"""Concurrent workers over a real Redis and SQL: the short form of ``tests.leases.exactness``.

The right form is no further on its way to the wrong law than chance explains in all but one run of
two thousand, the wrong one no nearer to the posterior.
"""

import pytest

from tests.exact.cases import problem
from tests.leases.exactness import measure
from tests.leases.plane import Form


@pytest.mark.parametrize(
    ("form", "n_visits", "forgotten"), [(Form.LATE, 200, 0), (Form.PLAIN_ALPHA, 300, 4)]
)
def test_two_workers(redis_url: str, form: Form, n_visits: int, forgotten: int) -> None:
    small = problem("bernoulli", "dp", 3)
    found = measure(small, form, 2, n_visits, redis_url, forgotten)
    assert found.as_it_should_be, found.line()
    assert (found.n_fenced > 0) == (form is Form.LATE)
