"""``weald clusters`` and ``weald cluster``: what the stream is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from .errors import NotFoundError
from .options import Config, Limit, Output, Set, StreamName, example
from .output import Column, Form, note, write_record, write_rows

__all__ = ["add_to"]

# A long history would push the members off the screen; the other forms have all of it.
LINEAGE_SHOWN = 10


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command(
        epilog=example(
            "weald clusters",
            "weald clusters --limit 5 --output json",
            "weald clusters --retired --output csv > clusters.csv",
        )
    )(clusters)
    app.command(epilog=example("weald cluster 3", "weald cluster 3 --members 50 --output json"))(
        cluster
    )


def clusters(
    *,
    retired: Annotated[
        bool, typer.Option("--retired", help="Show also the clusters that have ended.")
    ] = False,
    limit: Limit = 100,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """List the clusters in the data's own units, largest first.

    Each feature is told as its typical value ± the standard deviation within the cluster. The ids
    are stable: a cluster keeps its id for as long as it lives, and an id is never used again.
    """
    from .describe import cluster_columns, cluster_record, flattened
    from .state import reading

    with reading(config, set_, stream) as state:
        total = state.reader.status(state.stream).n_inserted
        found = state.reader.clusters(state.stream, include_retired=retired, limit=limit)
        rows = [cluster_record(state, each, total) for each in found]
        columns = cluster_columns(state.features)
        everything = state.reader.status(state.stream).n_clusters
    if retired:
        columns.append(Column("retired_publication", "retired", "right"))
    write_rows(flattened(rows, output), columns, output)
    if len(rows) < everything:
        note(f"{len(rows)} of {everything} clusters; --limit {everything} shows all")


def cluster(
    cluster_id: Annotated[int, typer.Argument(metavar="ID", help="Id, as `weald clusters` lists.")],
    *,
    members: Annotated[
        int, typer.Option("--members", "-m", min=0, help="Show so many of its newest members.")
    ] = 10,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """Show one cluster: its features, history and members.

    A cluster that has ended still answers, with its history.
    """
    from .state import reading

    with reading(config, set_, stream) as state:
        found = state.reader.cluster(state.stream, cluster_id)
        if found is None:
            raise NotFoundError(
                f"stream {state.stream} never had a cluster {cluster_id}",
                next_step="weald clusters    lists those it has",
            )
        answer = _answer(state, found, members)
        tables = _tables(state.features)
    write_record(_for_table(answer) if output is Form.table else answer, output, tables=tables)


def _answer(state: Any, found: Any, n_members: int) -> dict[str, Any]:
    from .describe import cluster_record, lineage_record
    from .output import iso_time

    reader, stream = state.reader, state.stream
    record = cluster_record(state, found, reader.status(stream).n_inserted)
    newest = reader.members(stream, found.cluster, limit=n_members) if n_members else []
    events = reader.lineage(stream, cluster=found.cluster)
    return {
        "stream": stream,
        **record,
        "lineage": [lineage_record(event) for event in events],
        "members": [
            {
                "key": member.key,
                "time": iso_time(member.event_time),
                **dict(zip(state.features, member.values.tolist(), strict=True)),
            }
            for member in newest
        ],
    }


def _for_table(answer: dict[str, Any]) -> dict[str, Any]:
    """List the features as rows, and leave out what a person does not need."""
    from .describe import spread_text

    features = [
        {"feature": name, "typical": spread_text(feature)}
        for name, feature in answer["features"].items()
    ]
    hidden = ("version", "lineage", "members")
    shown = {key: value for key, value in answer.items() if key not in hidden}
    return {
        **shown,
        "share": f"{answer['share']:.1%}",
        "features": features,
        "lineage": answer["lineage"][-LINEAGE_SHOWN:],
        "members": answer["members"],
    }


def _tables(features: Sequence[str]) -> dict[str, list[Column]]:
    from .describe import LINEAGE_COLUMNS

    return {
        "features": [Column("feature", "feature"), Column("typical", "typical", "right")],
        "lineage": list(LINEAGE_COLUMNS),
        "members": [
            Column("key", "key"),
            Column("time", "time"),
            *(Column(name, name, "right", lambda value: f"{value:.7g}") for name in features),
        ],
    }
