"""Records that repeat a key: observations of their own, or duplicates that are counted."""

import json
from pathlib import Path

import pytest

from tests.stream.scenario import (
    NAME,
    KilledError,
    assert_exactly_once,
    line_of,
    new_store,
    outcome,
    plan_for,
    run,
    values_of,
    write_lines,
)

N, N_REPEATED = 300, 90


@pytest.fixture
def repeating(tmp_path: Path) -> Path:
    """Good records, some of them again under the same key: soon after, and much later."""
    rows = values_of(N + N_REPEATED)
    lines = [line_of(i, row) for i, row in enumerate(rows[:N])]
    again = [line_of(3 * i, row) for i, row in enumerate(rows[N:])]
    return write_lines(
        tmp_path / "records.jsonl", [*lines[:40], *again[:10], *lines[40:], *again[10:]]
    )


def test_by_default_each_is_an_observation(tmp_path: Path, repeating: Path) -> None:
    store = new_store(tmp_path)
    run(plan_for(repeating), store)
    (row,) = store.ledger(NAME)
    assert (row.n_inserted, row.n_duplicate) == (N + N_REPEATED, 0)


def test_the_first_is_kept_and_the_others_are_counted(tmp_path: Path, repeating: Path) -> None:
    store = new_store(tmp_path)
    run(plan_for(repeating, duplicate_keys="keep-first"), store)
    assert_exactly_once(store, N)
    (row,) = store.ledger(NAME)
    assert (row.n_received, row.n_inserted, row.n_duplicate) == (N + N_REPEATED, N, N_REPEATED)
    first = [row.values.tolist() for row in store.assignments(NAME, ["k0", "k27"])]
    assert first == [values_of(N + N_REPEATED)[i].tolist() for i in (0, 27)]


def test_it_is_the_same_after_a_kill_and_in_other_batches(tmp_path: Path, repeating: Path) -> None:
    calm, store = new_store(tmp_path, "calm"), new_store(tmp_path)
    run(plan_for(repeating, duplicate_keys="keep-first"), calm)
    for count in (1, 3):

        def killer(step: str, nth: int, last: int = count) -> None:
            if (step, nth) == ("redis", last):
                raise KilledError

        with pytest.raises(KilledError):
            run(plan_for(repeating, batch_records=23, duplicate_keys="keep-first"), store, killer)
    run(plan_for(repeating, batch_records=41, duplicate_keys="keep-first"), store)
    assert outcome(store) == outcome(calm)


def test_records_without_a_key_are_never_duplicates(tmp_path: Path) -> None:
    rows = values_of(200)
    lines = [json.dumps({"x": x, "y": y}) for x, y in rows.tolist()]
    plan = plan_for(write_lines(tmp_path / "plain.jsonl", lines), duplicate_keys="keep-first")
    schema = type(plan.schema)(fields=plan.schema.fields)
    store = new_store(tmp_path)
    run(type(plan)(plan.stream, schema, plan.model, plan.refinement), store)
    assert store.ledger(NAME)[0].n_inserted == 200
