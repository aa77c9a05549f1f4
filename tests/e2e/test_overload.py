"""A short form of the burst that `python -m benchmarks.overload` makes for a minute."""

import pytest

from benchmarks.overload import check, measure
from tests.servers.kafka import libraries
from tests.servers.server import MissingServerError


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_burst_ends_with_every_record_accounted_for() -> None:
    try:
        libraries()
    except MissingServerError as missing:
        pytest.skip(str(missing))
    outcome = measure(rate=20.0, steady=1.0, burst=3.0, patience=600.0)
    assert outcome.produced == 500 + 20 + 1_200 + 20
    assert outcome.bad > 10
    check(outcome)
