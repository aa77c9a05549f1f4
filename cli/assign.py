"""``weald assign``: the cluster of a record, now or at a moment in the past."""

# ruff: noqa: PLR0913 - one parameter for each flag of the command

from __future__ import annotations

from typing import Annotated, Any

import typer

from .complete import complete_key
from .errors import NotFoundError
from .moments import FORMS, parse_moment
from .options import Config, Output, Set, StreamName, example
from .output import Column, Form, iso_time, write_rows

__all__ = ["add_to", "row_of"]

COLUMNS = (
    Column("key", "key"),
    Column("cluster", "cluster", "right"),
    Column("probability", "probability", "right"),
    Column("stability", "stability", "right"),
    Column("event_time", "event time"),
    Column("topic", "topic"),
    Column("partition", "partition", "right"),
    Column("offset", "offset", "right"),
)


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command(
        epilog=example(
            "weald assign us2000crkq",
            "weald assign us2000crkq us1000cdjq --output csv",
            "weald assign us2000crkq --as-of 2026-11-21T09:00:00Z",
            "weald assign us2000crkq --as-of publication:2",
        )
    )(assign)


def assign(
    keys: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY...", help="The records' own keys.", autocompletion=complete_key
        ),
    ],
    *,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            help=f"What was shown then: {FORMS}, or publication:NUMBER.",
        ),
    ] = None,
    history: Annotated[
        int, typer.Option("--history", min=1, help="Newest observations to show of each key.")
    ] = 1,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """Say which cluster records belong to, now or then.

    `probability` is the share of the chain's recent draws in which the record is with most of its
    cluster, `stability` the mean share of its cluster's other members that it is with; both as of
    the newest publication.

    Leaves with 3 (not found) if any key is unknown; those that are known are printed all the same.
    """
    from .state import reading

    moment = None if as_of is None else parse_moment(as_of)
    with reading(config, set_, stream) as state:
        found = state.reader.assignments(state.stream, keys, as_of=moment, limit=history)
        rows = [row_of(each, state.features) for each in found]
    write_rows(rows, COLUMNS, output)
    known = {row["key"] for row in rows}
    missing = [key for key in keys if key not in known]
    if missing:
        then = "" if as_of is None else f" as of {as_of}"
        raise NotFoundError(
            f"no observation{then} with key {', '.join(missing)}",
            next_step="weald cluster ID --members 20    lists keys that exist",
        )


def row_of(observation: Any, features: tuple[str, ...]) -> dict[str, Any]:
    """Return an observation as a row."""
    return {
        "key": observation.key,
        "cluster": observation.cluster,
        "probability": observation.probability,
        "stability": observation.stability,
        "event_time": iso_time(observation.event_time),
        "topic": observation.topic,
        "partition": observation.partition,
        "offset": observation.offset,
        "seq": observation.seq,
        "values": dict(zip(features, observation.values.tolist(), strict=True)),
    }
