"""``weald lineage``: what became of the clusters."""

# ruff: noqa: PLR0913 - one parameter for each flag of the command

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from weald.cli.terminal.complete import complete_cluster
from weald.cli.terminal.moments import FORMS, parse_since
from weald.cli.terminal.options import Config, Limit, Output, Set, StreamName, Wide, example
from weald.cli.terminal.output import Form, note, write_rows

__all__ = ["add_to"]


class Happened(StrEnum):
    """What can happen to a cluster."""

    birth = "birth"
    split = "split"  # type: ignore[assignment]  # a text has a method of that name
    merge = "merge"
    move = "move"
    retire = "retire"


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald lineage",
            "weald lineage --since 24h --kind split --kind merge",
            "weald lineage --cluster 3 --output json",
        )
    )(lineage)


def lineage(
    *,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help=f"Only later events: {FORMS}.")
    ] = None,
    cluster: Annotated[
        int | None,
        typer.Option(
            "--cluster",
            metavar="ID",
            help="Only those in which this cluster took part.",
            autocompletion=complete_cluster,
        ),
    ] = None,
    kind: Annotated[
        list[Happened] | None, typer.Option("--kind", help="Only such events; repeat for more.")
    ] = None,
    limit: Limit = 100,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
    _wide: Wide = False,
) -> None:
    """Show births, splits, merges, moves and ends of clusters, oldest first.

    An observation that changes its cluster is counted by exactly one event, as `moved`. Of more
    events than --limit allows, the newest are shown. Leaves with 3 (not found) for a cluster that
    never was.
    """
    from weald.answers.records import lineage_record
    from weald.cli.terminal.describe import LINEAGE_COLUMNS
    from weald.cli.terminal.opened import cluster_asked, reading

    moment = None if since is None else parse_since(since)
    with reading(config, set_, stream, undivided=False) as state:
        # Kinds are chosen here: a limit in SQL would count the events that nobody asked for.
        asked = None if kind else limit + 1
        events = state.reader.lineage(state.stream, since=moment, cluster=cluster, limit=asked)
        if cluster is not None and not events:
            cluster_asked(state, cluster)
    chosen = [event for event in events if not kind or event.kind in kind]
    write_rows([lineage_record(event) for event in chosen[-limit:]], LINEAGE_COLUMNS, output)
    if len(chosen) > limit:
        note(f"the newest {limit}; --limit {2 * limit} shows more")
