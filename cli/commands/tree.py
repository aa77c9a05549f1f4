"""``weald tree``: the tree that a cluster's observations hang on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from weald.cli.errors import NotFoundError
from weald.cli.terminal.complete import complete_cluster
from weald.cli.terminal.options import Config, Output, Set, StreamName, example
from weald.cli.terminal.output import Column, Form, note, write_rows

if TYPE_CHECKING:
    from weald.answers.stored_stream import StoredStream

__all__ = ["add_to"]

COLUMNS = (
    Column("branch", "size"),
    Column("description", "what sets it apart"),
    Column("keys", "newest"),
)


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(epilog=example("weald tree 3", "weald tree 3 --parts 20 --output json"))(tree)


def tree(
    cluster_id: Annotated[
        int,
        typer.Argument(
            metavar="ID",
            help="Id, as `weald clusters` lists.",
            autocompletion=complete_cluster,
        ),
    ],
    *,
    parts: Annotated[
        int, typer.Option("--parts", min=1, max=1000, help="Cut it into so many parts.")
    ] = 8,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """Show how a cluster's observations hang together: its tree, cut where it is largest.

    The tree is the guide of the sampler, as of the newest snapshot; nodes that hold nothing else of
    the cluster on one side are passed over. Trees that hang on no other may be one row, which says
    how many they are. Of a model that holds a sample the tree has the sample's observations. What
    sets a part apart from the rest of its cluster is counted among the newest 200 observations of
    either. A stream of edges has no tree: which block a vertex is in depends on all other blocks,
    so that none could guide anything. Of a network `weald cluster ID` shows who is in a block, and
    `weald predict` how probable edges are.
    """
    from weald.answers.subtree import SnapshotForest, part_records
    from weald.cli.terminal.opened import reading

    with reading(config, set_, stream) as state:
        members = state.reader.member_seqs(state.stream, cluster_id)
        if not members:
            raise _nothing_to_cut(state, cluster_id)
        forest = SnapshotForest.of(state)
        rows = part_records(state, forest.parts(members, parts))
        found = state.reader.cluster(state.stream, cluster_id)
    size = len(members) if found is None else found.n_observations
    n_hung = sum(row["size"] for row in rows if row["leaf"])
    late = sum(seq > forest.last_seq for seq in members)
    if output is Form.table:
        rows = [{**row, "branch": "  " * row["depth"] + str(row["size"])} for row in rows]
    write_rows(rows, COLUMNS, output)
    if n_hung + late < size:
        others = size - n_hung - late
        note(f"{others:,} of the cluster's {size:,} have no leaf: beside the sample, or in bundles")
    if late:
        note(f"{late} of its {len(members)} observations came after the newest snapshot")


def _nothing_to_cut(state: StoredStream, cluster_id: int) -> NotFoundError:
    found = state.reader.cluster(state.stream, cluster_id)
    if found is None or found.retired_publication is not None:
        return NotFoundError(
            f"stream {state.stream} has no observations in a cluster {cluster_id} now",
            next_step="weald clusters    lists those it has",
        )
    return NotFoundError(
        f"the model of stream {state.stream} holds none of the {found.n_observations:,} "
        f"observations of cluster {cluster_id}, and a tree is of what it holds",
        next_step=f"weald cluster {cluster_id}    says what is known of it",
    )
