"""``weald cluster``: one cluster, what makes it different, who is in it and where it came from."""

# ruff: noqa: PLR0913 - one parameter for each flag of the command

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from weald.answers.numbers import number, share_text
from weald.cli.terminal.complete import complete_cluster
from weald.cli.terminal.options import Config, Output, Set, StreamName, Wide, example
from weald.cli.terminal.output import Column, Form, write_record

if TYPE_CHECKING:
    from weald.answers.stored_stream import StoredStream

__all__ = ["add_to"]

# A long history would push the members off the screen; the other forms have all of it.
LINEAGE_SHOWN = 10
FEATURES_SHOWN = 12
LOOKED_AT = 200
PARTS = 4


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald cluster 3",
            "weald cluster 3 --members 50 --output json",
            "weald cluster 3 --typical 5",
        )
    )(cluster)


def cluster(
    cluster_id: Annotated[
        int,
        typer.Argument(
            metavar="ID",
            help="Id, as `weald clusters` lists.",
            autocompletion=complete_cluster,
        ),
    ],
    *,
    members: Annotated[
        int, typer.Option("--members", "-m", min=0, help="Show so many of its newest members.")
    ] = 10,
    typical: Annotated[
        int,
        typer.Option("--typical", min=0, help="Show so many that fit it best, and that fit worst."),
    ] = 3,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
    _wide: Wide = False,
) -> None:
    """Show one cluster: what makes it different from the rest, its parts, history and members.

    `description` says what sets it apart, with the share of its observations that each sentence is
    true of and the share elsewhere; `tells` is how much the best such sentence on one column tells
    of who is in the cluster, from 0 to 1. Both look at the newest 5,000 observations. `parts` are
    told apart from each other in the same way (`weald tree` cuts finer). Typical and borderline
    members are chosen from the newest 200 by their density under the cluster. A cluster that has
    ended still answers, with its history.
    """
    from weald.cli.terminal.opened import cluster_asked, reading

    with reading(config, set_, stream, undivided=False) as state:
        found = cluster_asked(state, cluster_id)
        answer = _answer(state, found, members)
        if found.retired_publication is None:
            answer |= _contrast(state, cluster_id, typical)
        tables = _tables(state)
    write_record(_for_table(answer) if output is Form.table else answer, output, tables=tables)


def _answer(state: StoredStream, found: Any, n_members: int) -> dict[str, Any]:
    from weald.answers.numbers import iso_time
    from weald.answers.records import cluster_record, lineage_record

    reader, stream = state.reader, state.stream
    record = cluster_record(state, found, state.n_clustered)
    newest = reader.members(stream, found.cluster, limit=n_members) if n_members else []
    events = reader.lineage(stream, cluster=found.cluster)
    own = {each.kind: each.time for each in events if each.cluster == found.cluster}
    return {
        "stream": stream,
        **record,
        "born": iso_time(own.get("birth", own.get("split"))),
        "retired": iso_time(own.get("retire")),
        "lineage": [lineage_record(event) for event in events],
        "members": [_member(state, member) for member in newest],
    }


def _member(state: StoredStream, member: Any) -> dict[str, Any]:
    from weald.answers.numbers import iso_time

    row = {"key": member.key, "time": iso_time(member.event_time)}
    if state.schema.has_text:
        row["text"] = member.text
    return row | state.values(member.values[None])[0]


def _contrast(state: StoredStream, cluster_id: int, typical: int) -> dict[str, Any]:
    from weald.answers.description.contrast import ClusterContrast
    from weald.answers.subtree import parts_of

    contrasts = ClusterContrast(state, state.reader.clusters(state.stream))
    newest = state.reader.members(state.stream, cluster_id, limit=LOOKED_AT)
    told = contrasts.told(cluster_id, newest) if typical else []
    return {
        "description": contrasts.description(cluster_id),
        "contrast": contrasts.contrast(cluster_id),
        "typical_members": told[:typical],
        "borderline_members": told[::-1][: min(typical, max(len(told) - typical, 0))],
        "parts": parts_of(state, cluster_id, PARTS),
    }


def _for_table(answer: dict[str, Any]) -> dict[str, Any]:
    """Bring what makes it different to the front, and leave out what a person does not need."""
    from weald.answers.description.contrast import contrast_text

    told = ("contrast", "parts", "typical_members", "borderline_members")
    named = ("probability", "stability", "description", "born", "retired")
    apart = ("version", "features", "log_marginal", "lineage", "members", *named, *told)
    hidden = {*apart, "born_publication", "retired_publication"}
    shown = {key: value for key, value in answer.items() if key not in hidden}
    contrast = []
    for row in answer.get("contrast", [])[:FEATURES_SHOWN]:
        own, rest = contrast_text(row)
        contrast.append({**row, "typical": own, "rest": rest})
    n_parted = sum(row["size"] for row in answer.get("parts", []))
    some = 0 < n_parted < answer["size"]
    tables = {
        "contrast": contrast,
        **{key: answer.get(key, []) for key in told[1:]},
        "lineage": answer["lineage"][-LINEAGE_SHOWN:],
        "members": answer["members"],
    }
    return {
        **{key: value for key, value in shown.items() if value is not None},
        "share": f"{answer['share']:.1%}",
        **({"since": answer["born"]} if answer["born"] else {}),
        **({"ended": answer["retired"]} if answer["retired"] else {}),
        "how sure": share_text(answer["probability"]),
        "stability": share_text(answer["stability"]),
        **({"what sets it apart": answer["description"]} if "description" in answer else {}),
        **({"in parts below": f"{n_parted:,} that have a leaf"} if some else {}),
        **{key: rows for key, rows in tables.items() if rows},
    }


def _tables(state: StoredStream) -> dict[str, list[Column]]:
    from weald.cli.terminal.describe import LINEAGE_COLUMNS

    text = [Column("text", "text")] if state.schema.has_text else []
    shown = [Column(name, name, "right", _seven, gives_way=1) for name in state.columns]
    fits = [
        Column("key", "key"),
        Column("seq", "observation", "right", gives_way=1),
        Column("membership", "how sure", "right", share_text),
        *text,
    ]
    return {
        "contrast": [
            Column("feature", "feature"),
            Column("typical", "typical", "right"),
            Column("rest", "the rest", "right"),
            Column("information", "tells", "right", share_text),
        ],
        "typical_members": fits,
        "borderline_members": fits,
        "parts": [
            Column("size", "size", "right"),
            Column("description", "what sets it apart"),
        ],
        "lineage": list(LINEAGE_COLUMNS),
        "members": [Column("key", "key"), Column("time", "time", gives_way=2), *text, *shown],
    }


def _seven(value: object) -> str:
    return f"{value:.7g}" if isinstance(value, float) else number(value)
