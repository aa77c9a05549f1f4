"""SIGKILL at every labelled step of a file's journey into SQLite."""

from pathlib import Path

import pytest

from tests.crash.processes import runners
from tests.crash.runner import Orders
from tests.stream.scenario import (
    assert_exactly_once,
    new_store,
    outcome,
    plan_for,
    records_file,
    run,
)

N = 420
STEPS = ("poll", "decode", "insert", "refine", "publish", "snapshot", "commit", "redis", "courtesy")


@pytest.mark.slow
def test_killed_at_every_step_and_started_again(tmp_path: Path) -> None:
    plan = plan_for(records_file(tmp_path, N), snapshot_records=150)
    calm = new_store(tmp_path, "calm")
    run(plan, calm)
    store = new_store(tmp_path)
    orders = Orders(f"sqlite:///{tmp_path / 'weald.db'}", plan.stream)
    with runners(tmp_path) as start:
        for i, step in enumerate(STEPS):
            # The first commit comes with the second batch, once the warm-up is over.
            count = 1 if step in {"refine", "publish", "snapshot"} else 2
            mortal = Orders(orders.database, orders.stream, step=step, count=count)
            status = start(mortal, f"{i}-{step}").ended()
            assert status in {-9, 0}
        assert start(orders, "last").ended() == 0
    assert_exactly_once(store, N)
    assert outcome(store) == outcome(calm)
