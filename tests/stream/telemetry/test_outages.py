"""What is said of an outage: its beginning, one line a minute, its end."""

import logging

import pytest

from tests.clock import Clock
from weald.stream.telemetry.outages import Outages


@pytest.fixture
def clock(caplog: pytest.LogCaptureFixture) -> Clock:
    caplog.set_level(logging.INFO)
    return Clock(1_000.0)


def test_an_outage_is_told_at_its_ends_and_once_a_minute(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    outages = Outages(clock)
    outages.back("sql")
    for _ in range(1_120):
        outages.away("sql", "disk full")
        clock.now += 0.125
    outages.back("sql")
    outages.back("sql")
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("WARNING", "sql is away (asked again until it answers): disk full"),
        ("WARNING", "sql is away (still, after 60 s and 481 attempts): disk full"),
        ("WARNING", "sql is away (still, after 120 s and 961 attempts): disk full"),
        ("INFO", "sql answers again after 140.0 s, attempt 1120"),
    ]


def test_what_comes_and_goes_is_told_once_a_minute(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    outages = Outages(clock)
    for _ in range(720):
        outages.away("kafka", "no leader")
        clock.now += 0.125
        outages.back("kafka")
    outages.away("redis", "refused")
    told = [each.getMessage() for each in caplog.records]
    assert len([line for line in told if line.startswith("kafka is away")]) == 2
    assert len([line for line in told if line.startswith("kafka answers again")]) == 2
    assert told[-1] == "redis is away (asked again until it answers): refused"
