"""``weald status``: a stream at a glance, with its account."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer

from .options import Config, Output, Set, StreamName, example
from .output import Column, Form, iso_time, write_record

__all__ = ["add_to"]

LEDGER_COLUMNS = (
    Column("topic", "topic"),
    Column("partition", "partition", "right"),
    Column("next_offset", "next offset", "right"),
    Column("n_received", "received", "right"),
    Column("n_inserted", "inserted", "right"),
    Column("n_duplicate", "duplicate", "right"),
    Column("n_dead", "dead letters", "right"),
)
ROUND_COLUMNS = (
    Column("kernel", "kernel"),
    Column("seq", "after observation", "right"),
    Column("proposed", "proposed", "right"),
    Column("accepted", "accepted", "right"),
    Column("log_joint_before", "log joint before", "right", lambda value: f"{value:.1f}"),
    Column("log_joint_after", "after", "right", lambda value: f"{value:.1f}"),
    Column("seconds", "seconds", "right"),
)


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(epilog=example("weald status", "weald status --output json"))(status)


def status(
    *,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """Show what became of every record of a stream.

    The account of each partition adds up: received = inserted + duplicate + dead letters.
    """
    from .state import reading

    with reading(config, set_, stream) as state:
        glance = asdict(state.reader.status(state.stream))
        ledger = [asdict(row) for row in state.reader.ledger(state.stream)]
        reasons = state.reader.dead_letter_counts(state.stream)
        rounds = [asdict(row) for row in state.reader.rounds(state.stream, limit=3)]
    answer = {key: _shown(key, value) for key, value in glance.items()}
    answer["dead_letter_reasons"] = reasons
    answer["partitions"] = [{**row, "updated_at": iso_time(row["updated_at"])} for row in ledger]
    answer["last_refinement"] = rounds
    tables = {"partitions": LEDGER_COLUMNS, "last_refinement": ROUND_COLUMNS}
    write_record(_brief(answer) if output is Form.table else answer, output, tables=tables)


def _shown(key: str, value: Any) -> Any:
    return iso_time(value) if key.endswith("_at") else value


def _brief(answer: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only programs ask for."""
    bookkeeping = ("epoch", "generation", "log_joint_before", "seed")
    return {k: v for k, v in answer.items() if k not in bookkeeping and v not in (None, {}, [])}
