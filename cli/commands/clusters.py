"""``weald clusters``: what the stream is made of."""

# ruff: noqa: PLR0913 - one parameter for each flag of the command

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weald.cli.errors import NotFoundError, UsageError
from weald.cli.terminal.complete import complete_cluster
from weald.cli.terminal.moments import FORMS, parse_since
from weald.cli.terminal.options import Config, Limit, Output, Set, StreamName, Wide, example
from weald.cli.terminal.output import Column, Form, note, write_rows

if TYPE_CHECKING:
    from weald.answers.description.contrast import ClusterContrast
    from weald.answers.stored_stream import StoredStream

__all__ = ["add_to"]

# Clusters of a group that a table names.
_LISTED = 6
# Growth is judged by where so many of the newest observations went.
NEWEST = 1000

Row = dict[str, Any]


class Sort(StrEnum):
    """What clusters are ordered by."""

    size = "size"
    growth = "growth"
    stability = "stability"
    anomaly = "anomaly"
    born = "born"
    id = "id"


_ORDER: dict[Sort, Callable[[Row], Any]] = {
    Sort.size: lambda row: -row["size"],
    Sort.growth: lambda row: -row["growth"],
    Sort.stability: lambda row: 2.0 if row["stability"] is None else row["stability"],
    Sort.anomaly: lambda row: -(row["anomaly"] or 0.0),
    Sort.born: lambda row: -(row["born"] or 0.0),
    Sort.id: lambda row: row["cluster"],
}


# Names count up: of those of one publication the last is newest, and so of those of an earlier
# version, whose births are not known.
_ORDER_OF_GROUPS: dict[Sort, Callable[[Row], Any]] = {
    Sort.size: lambda row: -row["size"],
    Sort.born: lambda row: (-(row["born_publication"] or 0), -row["group"]),
    Sort.id: lambda row: row["group"],
}


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald clusters",
            "weald clusters --level groups",
            "weald clusters --level groups --sort born --limit 3    # the newest kinds",
            "weald clusters --sort growth --limit 5 --output json",
            "weald clusters --since 24h    # what is new today",
            "weald clusters --retired --output csv > clusters.csv",
        )
    )(clusters)


class Level(StrEnum):
    """What a row of the table is."""

    clusters = "clusters"
    groups = "groups"


def clusters(
    *,
    level: Annotated[
        Level, typer.Option("--level", help="Clusters, or the groups that they make.")
    ] = Level.clusters,
    sort: Annotated[
        Sort,
        typer.Option(
            "--sort", help="Largest, fastest growing, least stable, oddest or newest first."
        ),
    ] = Sort.size,
    min_size: Annotated[
        int, typer.Option("--min-size", metavar="N", min=0, help="Only clusters this large.")
    ] = 0,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help=f"Only clusters born later: {FORMS}."),
    ] = None,
    containing: Annotated[
        str | None,
        typer.Option("--containing", metavar="TEXT", help="Only those so described."),
    ] = None,
    retired: Annotated[
        bool, typer.Option("--retired", help="Show also the clusters that have ended.")
    ] = False,
    limit: Limit = 100,
    cursor: Annotated[
        int | None,
        typer.Option(
            "--cursor",
            metavar="ID",
            help="Go on after this cluster, the last one of the page before.",
            autocompletion=complete_cluster,
        ),
    ] = None,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
    _wide: Wide = False,
) -> None:
    """List the clusters in the data's own units, largest first.

    Each feature is told as its typical value ± the standard deviation within the cluster, texts by
    their template. `share` is of all that is in clusters now, so without what has left a window or
    was replaced. `growth` compares it with the cluster's share of the newest observations, of as
    many as are in clusters, at most 1,000; `stability` is the mean share of its cluster that an
    observation stays with in the chain's recent draws; `anomaly` the share of recent observations
    that are less surprising.

    One kind is often several clusters, as its shape is not the family's. Those without a valley of
    density between them are one `group`; --level groups lists groups with their clusters, how sure
    it is of their members, since when it or one of its clusters is there (`new`: since the latest
    publication), and what sets it apart.

    The ids are stable: a cluster or group keeps its id for as long as it lives, and an id is never
    used again.
    """
    from weald.answers.description.contrast import ClusterContrast
    from weald.cli.terminal.describe import flattened
    from weald.cli.terminal.opened import reading

    if level is Level.groups:
        if since is not None or containing is not None or retired or cursor is not None:
            raise UsageError("--level groups takes --sort, --min-size and --limit only")
        if sort not in _ORDER_OF_GROUPS:
            orders = ", ".join(_ORDER_OF_GROUPS)
            raise UsageError(f"--level groups takes no --sort {sort}: expected one of {orders}")
        with reading(config, set_, stream, undivided=False) as state:
            _tell_groups(state, (sort, min_size, limit), output)
        return
    born_after = None if since is None else parse_since(since)
    with reading(config, set_, stream, undivided=False) as state:
        everything = state.reader.clusters(state.stream, include_retired=retired)
        live = [each for each in everything if each.retired_publication is None]
        contrasts = ClusterContrast(state, live)
        rows = [
            row
            for row in _rows(state, everything)
            if row["size"] >= min_size and (born_after is None or (row["born"] or 0) >= born_after)
        ]
        if sort is Sort.anomaly:
            _paint(rows, contrasts, "anomaly")
        if containing is not None:
            _paint(rows, contrasts, "description")
            rows = [row for row in rows if containing.lower() in row["description"].lower()]
        rows.sort(key=lambda row: (_ORDER[sort](row), row["cluster"]))
        page = _page(rows, cursor, limit)
        _paint(page, contrasts, "anomaly")
        _paint(page, contrasts, "description")
        columns = _columns(state)
    shown = [row | {"born": _iso(row["born"])} for row in page]
    if retired:
        columns.append(Column("retired_publication", "retired", "right"))
    write_rows(flattened(shown, output), columns, output)
    if page and page[-1] is not rows[-1]:
        more = f"--cursor {page[-1]['cluster']} goes on"
        note(f"{len(page)} of {len(rows)} clusters; --limit {len(rows)} shows all, {more}")


def _tell_groups(state: StoredStream, which: tuple[Sort, int, int], output: Form) -> None:
    """Tell of groups in this order, of a size and no more than so many."""
    from weald.answers.description.contrast import ClusterContrast
    from weald.answers.numbers import share_text
    from weald.answers.records import group_records
    from weald.cli.terminal.describe import flattened

    sort, min_size, limit = which
    rows = [row for row in group_records(state) if row["size"] >= min_size]
    rows.sort(key=_ORDER_OF_GROUPS[sort])
    contrasts = ClusterContrast(state, state.reader.clusters(state.stream))
    shown = [row | {"description": contrasts.description(*row["clusters"])} for row in rows[:limit]]
    columns = [
        Column("group", "group", "right"),
        Column("size", "size", "right"),
        Column("share", "share", "right", lambda share: f"{share:.1%}", gives_way=3),
        Column("probability", "how sure", "right", share_text, gives_way=2),
        Column("since", "since (UTC)", gives_way=1),
        Column("clusters", "clusters", show=_listed, gives_way=4),
        Column("description", "what sets it apart"),
    ]
    if output is Form.table:
        shown = [row | {"since": _since(row)} for row in shown]
    write_rows(flattened(shown, output), columns, output)
    if len(rows) > limit:
        note(f"{limit} of {len(rows)} groups; --limit {len(rows)} shows all")


def _since(row: Row) -> str:
    if row["is_new"]:
        return "new"
    if row["born"]:
        # To the minute.
        return str(row["born"][:16].replace("T", " "))
    born = row["born_publication"]
    return "" if born is None else f"publication {born}"


def _listed(clusters: Sequence[int]) -> str:
    more = f" and {len(clusters) - _LISTED} more" if len(clusters) > _LISTED else ""
    return ", ".join(map(str, clusters[:_LISTED])) + more


def _told(state: StoredStream) -> tuple[str, ...]:
    """Names of what clusters are described by."""
    return state.features if state.network else state.columns


def _rows(state: StoredStream, everything: Sequence[Any]) -> list[Row]:
    from weald.answers.records import cluster_record

    total = state.n_clustered
    born = state.reader.births(state.stream)
    # Shares of all are of what is there: of what has left before no arrivals are looked at.
    newest = NEWEST if state.network else min(NEWEST, total)
    arrived = state.reader.arrivals(state.stream, newest=newest)
    n_arrived = sum(arrived.values())
    rows = []
    for each in everything:
        row = cluster_record(state, each, total)
        recent = arrived.get(each.cluster, 0)
        expected = row["share"] * n_arrived
        row |= {"recent": recent, "growth": recent / expected if expected else 0.0}
        rows.append(row | {"born": born.get(each.cluster)})
    return rows


def _page(rows: list[Row], cursor: int | None, limit: int) -> list[Row]:
    if cursor is None:
        return rows[:limit]
    ids = [row["cluster"] for row in rows]
    if cursor not in ids:
        raise NotFoundError(
            f"--cursor {cursor}: no such cluster among those asked for",
            next_step="weald clusters    begins anew",
        )
    return rows[ids.index(cursor) + 1 :][:limit]


def _paint(rows: list[Row], contrasts: ClusterContrast, what: str) -> None:
    """Add what takes a look at the clusters' observations, where it is not there yet."""
    described = what == "description"
    tell: Callable[[int], Any] = contrasts.description if described else contrasts.anomaly
    for row in rows:
        if what not in row:
            ended = row["retired_publication"] is not None
            row[what] = ("" if described else None) if ended else tell(row["cluster"])


def _columns(state: StoredStream) -> list[Column]:
    from weald.answers.numbers import share_text
    from weald.cli.terminal.describe import cluster_columns

    kinds = set(state.schema.kinds)
    features = () if "text" in kinds or len(state.columns) > 6 else _told(state)
    columns = cluster_columns(features)
    at = next(i for i, column in enumerate(columns) if column.key == "stability")
    columns.insert(
        at, Column("growth", "growth", "right", lambda value: f"{value:.1f}x", gives_way=5)
    )
    columns.insert(at + 2, Column("anomaly", "anomaly", "right", share_text, gives_way=5))
    if not features:
        columns.append(Column("description", "description"))
    return columns


def _iso(seconds: float | None) -> str | None:
    from weald.answers.numbers import iso_time

    return iso_time(seconds)
