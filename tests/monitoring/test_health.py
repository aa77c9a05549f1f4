"""Health: the loop's progress decides liveness, the conditions decide readiness."""

import pytest

from tests.clock import Clock
from weald.monitoring.health import ADVISORY, REQUIRED, Health, JointHealth


def ready_health(clock: Clock) -> Health:
    health = Health(10.0, clock=clock)
    for name in REQUIRED:
        health.satisfied(name)
    return health


def test_alive_while_the_loop_comes_round() -> None:
    clock = Clock()
    health = Health(10.0, clock=clock)
    for now in (8.0, 16.0, 24.0):
        clock.now = now
        assert health.live().ok
        health.progress()


def test_dead_when_the_loop_stalls() -> None:
    clock = Clock()
    health = Health(10.0, clock=clock)
    clock.now = 10.5
    report = health.live()
    assert not report.ok
    assert report.conditions[0].reason == "last round of the loop 10.5 s ago, limit 10 s"


def test_outages_leave_the_process_alive() -> None:
    health = ready_health(Clock())
    for name in (*REQUIRED, *ADVISORY):
        health.unsatisfied(name, "away")
    assert health.live().ok


def test_not_ready_before_anything_is_known() -> None:
    report = Health(clock=Clock()).ready()
    assert not report.ok
    assert {condition.reason for condition in report.conditions} == {"not known yet"}


@pytest.mark.parametrize("name", REQUIRED)
def test_each_required_condition_is_needed(name: str) -> None:
    health = ready_health(Clock())
    assert health.ready().ok
    health.unsatisfied(name, "database is locked")
    report = health.ready()
    assert not report.ok
    assert [c.reason for c in report.conditions if c.name == name] == ["database is locked"]
    health.satisfied(name)
    assert health.ready().ok


@pytest.mark.parametrize("name", ADVISORY)
def test_advisory_conditions_are_told_only(name: str) -> None:
    health = ready_health(Clock())
    health.unsatisfied(name, "connection refused")
    report = health.ready()
    assert report.ok
    assert "connection refused" in [condition.reason for condition in report.conditions]


def test_unknown_condition_is_refused() -> None:
    with pytest.raises(ValueError, match="one of schema, sql, source, model, redis"):
        Health().satisfied("moon")


def test_several_are_as_well_as_the_worst_of_them() -> None:
    well, ill = Health(), Health()
    for name in REQUIRED:
        well.satisfied(name)
        ill.satisfied(name)
    both = JointHealth({"s/0": well, "s/1": ill})
    assert both.ready().ok
    assert both.live().ok
    ill.unsatisfied("sql", "is away")
    assert not both.ready().ok
    bad = [each for each in both.ready().conditions if not each.ok and each.required]
    assert [(each.name, each.reason) for each in bad] == [("s/1 sql", "is away")]
