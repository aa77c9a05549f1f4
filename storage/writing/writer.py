"""One batch, one transaction: the order of the writes, after the fence has let it pass."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from weald.storage.commit.commit import (
    BatchCommit,
    Bundled,
    ClusterRow,
    Handover,
    LineageRow,
    PublicationRow,
    Reassignment,
    Snapshot,
    Unbundled,
    WholeShown,
)
from weald.storage.commit.invariants import check_batch
from weald.storage.encoding.row_bytes import to_bytes
from weald.storage.encoding.snapshot import encode
from weald.storage.errors import InvariantBroken
from weald.storage.queries.certainty import write_certainty
from weald.storage.queries.dead_letters import take_back
from weald.storage.sql.bulk import (
    hand_over,
    insert_observations,
    mark_departed,
    reassign,
    upsert,
)
from weald.storage.sql.bundles import bundle_together, move_bundles, unbundle
from weald.storage.sql.failpoints import failpoint
from weald.storage.sql.schema import (
    clusters,
    dead_letters,
    lineage_events,
    lineage_parents,
    offsets,
    postponements,
    publications,
    rounds,
    snapshot_pieces,
    snapshots,
    streams,
)

from .fence import Turn, take_turn
from .leases import prune, write_leases
from .logs import replace_logs
from .shard_rounds import write_shard_rounds
from .stream_rows import write_revisions

__all__ = ["write_batch", "write_clusters", "write_snapshot"]

# Of a snapshot in one row: SQLite takes values below a gigabyte, and PostgreSQL's travel whole.
PIECE_BYTES = 1 << 26

Sources = dict[tuple[str, int], int]


def write_batch(connection: sa.Connection, batch: BatchCommit, snapshots_kept: int) -> bool:
    """Write the batch inside the connection's transaction; return False if it was there already.

    Raises
    ------
    Fenced, InvariantBroken, StreamNotFound
        Nothing must be committed then.
    """
    check_batch(batch)
    turn = take_turn(connection, batch)
    if turn is None:
        return False
    failpoint("commit.fenced")
    replace_logs(connection, turn.stream_id, batch.epoch, batch.replaced)
    sources = _advance_offsets(connection, turn.stream_id, batch)
    failpoint("commit.offsets")
    take_back(connection, sources, batch.taken_back)
    _write_observations(connection, turn, sources, batch)
    failpoint("commit.observations")
    _write_dead_letters(connection, turn.stream_id, sources, batch)
    failpoint("commit.dead_letters")
    _write_publications(connection, turn.stream_id, batch.publications)
    write_clusters(connection, turn.stream_id, batch.epoch, batch.clusters)
    for certainty in batch.certainties:
        write_certainty(connection, turn.stream_id, certainty)
    failpoint("commit.clusters")
    _write_lineage(connection, turn.stream_id, turn.next_event, batch.lineage)
    _write_rounds(connection, turn.stream_id, batch)
    put_off = [{"stream_id": turn.stream_id, "seq": seq} for seq in batch.postponed]
    _insert(connection, postponements, put_off)
    failpoint("commit.history")
    write_leases(connection, turn.stream_id, batch.leases, batch.adoptions)
    write_revisions(connection, turn.stream_id, batch.revisions)
    write_shard_rounds(connection, turn.stream_id, batch.shard_round, batch.shard_messages)
    if batch.whole is not None:
        _write_whole(connection, turn.stream_id, batch.epoch, batch.whole)
    if batch.snapshot is not None:
        imaged = batch.epoch if batch.snapshot.epoch is None else batch.snapshot.epoch
        write_snapshot(connection, turn.stream_id, imaged, batch.snapshot)
        _prune_snapshots(connection, turn.stream_id, snapshots_kept)
        prune(connection, turn.stream_id)
    failpoint("commit.written")
    return True


@cache
def _advance_statement(dialect: str) -> Any:
    insert = upsert(dialect, offsets)
    new = insert.excluded
    counts = ("n_received", "n_inserted", "n_duplicate", "n_dead")
    added = {name: offsets.c[name] + new[name] for name in counts}
    marks = ("topic_id", "log_start", "last_offset", "last_checksum")
    known = {name: sa.func.coalesce(new[name], offsets.c[name]) for name in marks}
    moved = {"next_offset": new.next_offset, "updated_at": new.updated_at}
    return insert.on_conflict_do_update(
        index_elements=["stream_id", "topic", "partition"],
        set_=added | known | moved,
        where=offsets.c.next_offset <= new.next_offset,
    ).returning(offsets.c.id)


def _advance_offsets(connection: sa.Connection, stream_id: int, batch: BatchCommit) -> Sources:
    """Move each partition forward, add to its account, and return the ids of their rows."""
    statement = _advance_statement(connection.dialect.name)
    now = time.time()
    sources: Sources = {}
    for advance in batch.offsets:
        row = asdict(advance) | {"stream_id": stream_id, "updated_at": now}
        mark = row.pop("mark")
        row |= mark | {"last_checksum": mark.pop("checksum")}
        source = connection.execute(statement, row).scalar_one_or_none()
        if source is None:
            raise InvariantBroken(
                f"stream {batch.stream!r}: {advance.topic}[{advance.partition}] would go back to "
                f"offset {advance.next_offset}"
            )
        sources[advance.topic, advance.partition] = source
    return sources


def _write_observations(
    connection: sa.Connection, turn: Turn, sources: Sources, batch: BatchCommit
) -> None:
    block = batch.observations
    if block is not None and len(block):
        first = int(block.seq[0])
        if first != turn.next_seq:
            raise InvariantBroken(
                f"stream {batch.stream!r}: the next observation is number {turn.next_seq}, the "
                f"batch starts at {first}"
            )
        insert_observations(connection, turn.stream_id, sources, block)
    # First: what had left before a publication follows where it leads.
    for departure in batch.departures:
        mark_departed(connection, turn.stream_id, departure)
    for kind, changes in groupby(batch.reassigned, type):
        if kind is Bundled:
            bundle_together(connection, turn.stream_id, list(changes))  # type: ignore[arg-type]  # of that kind
            continue
        for change in changes:
            _reassign(connection, turn.stream_id, change)


def _reassign(
    connection: sa.Connection, stream_id: int, change: Reassignment | Handover | Bundled | Unbundled
) -> None:
    if isinstance(change, Unbundled):
        unbundle(connection, stream_id, change)
    elif isinstance(change, Handover):
        hand_over(connection, stream_id, change)
    elif isinstance(change, Reassignment):
        reassign(connection, stream_id, change)
        moves = change.bundle, change.bundle_cluster
        move_bundles(connection, stream_id, change.publication, moves)


def _write_dead_letters(
    connection: sa.Connection, stream_id: int, sources: Sources, batch: BatchCommit
) -> None:
    rows = [
        {
            "stream_id": stream_id,
            "source_id": sources[letter.topic, letter.partition],
            "record_offset": letter.offset,
            "record_key": letter.key,
            "record_value": letter.value,
            "reason": str(letter.reason),
            "detail": _storable(letter.detail),
            "received_at": letter.received_at,
        }
        for letter in batch.dead_letters
    ]
    _insert(connection, dead_letters, rows)


def _write_publications(
    connection: sa.Connection, stream_id: int, published: Sequence[PublicationRow]
) -> None:
    rows = [
        {
            "stream_id": stream_id,
            "number": row.number,
            "seq": row.seq,
            "published_at": row.time,
            "log_joint_before": _finite(row.log_joint_before),
            "log_joint": _finite(row.log_joint),
            "n_clusters": row.n_clusters,
            "n_observations": row.n_observations,
            "prior_params": row.prior_params,
            "n_atoms": row.n_atoms,
            "disruption": row.disruption,
            "warnings": row.warnings,
            "base_measure": row.base_measure,
            "family_params": row.family_params,
        }
        for row in published
    ]
    _insert(connection, publications, rows)


@cache
def _cluster_statement(dialect: str) -> Any:
    insert = upsert(dialect, clusters)
    kept = {"stream_id", "cluster"}
    # These come by certainty.
    kept |= {"probability", "stability", "cluster_group", "group_born_publication"}
    changing = [c.name for c in clusters.c if c.name not in kept]
    return insert.on_conflict_do_update(
        index_elements=["stream_id", "cluster"],
        set_={name: insert.excluded[name] for name in changing},
    )


def write_clusters(
    connection: sa.Connection, stream_id: int, epoch: int, changed: Sequence[ClusterRow]
) -> None:
    """Write the clusters as they are after that commit."""
    rows = [
        {
            "stream_id": stream_id,
            "cluster": row.cluster,
            "n_observations": row.n_observations,
            "log_marginal": row.log_marginal,
            "statistics_bytes": to_bytes(row.statistics),
            "version": row.version,
            "epoch": epoch,
            "born_publication": row.born_publication,
            "retired_publication": row.retired_publication,
        }
        for row in changed
    ]
    if rows:
        connection.execute(_cluster_statement(connection.dialect.name), rows)


def _write_lineage(
    connection: sa.Connection, stream_id: int, first: int, lineage: Sequence[LineageRow]
) -> None:
    events: list[dict[str, Any]] = []
    parents: list[dict[str, Any]] = []
    for number, row in enumerate(lineage, start=first):
        identity = {"stream_id": stream_id, "number": number}
        events.append(
            identity
            | {
                "kind": row.kind,
                "publication": row.publication,
                "seq": row.seq,
                "happened_at": row.time,
                "cluster": row.cluster,
                "size": row.size,
                "n_moved": row.n_moved,
            }
        )
        parents += [
            identity | {"ordinal": ordinal, "parent": parent}
            for ordinal, parent in enumerate(row.parents)
        ]
    _insert(connection, lineage_events, events)
    _insert(connection, lineage_parents, parents)


def _write_whole(connection: sa.Connection, part_id: int, epoch: int, shown: WholeShown) -> None:
    """Write a publication of all shards as rows of the whole, behind the fence of shard 0."""
    part = streams.alias()
    whole = sa.select(part.c.part_of).where(part.c.id == part_id, part.c.shard == 0)
    n_events = len(shown.lineage)
    row = connection.execute(
        sa.update(streams)
        .where(streams.c.id == whole.scalar_subquery())
        .values(next_event=streams.c.next_event + n_events)
        .returning(streams.c.id, streams.c.next_event)
    ).one_or_none()
    if row is None:
        raise InvariantBroken("another shard than the first publishes what all of them show")
    if shown.publication is not None:
        _write_publications(connection, row.id, [shown.publication])
    if shown.judged is not None:
        number, warnings = shown.judged
        judged = publications.c.stream_id == row.id, publications.c.number == number
        connection.execute(sa.update(publications).where(*judged).values(warnings=warnings))
    failpoint("commit.whole")
    write_clusters(connection, row.id, epoch, shown.clusters)
    if shown.certainty is not None:
        write_certainty(connection, row.id, shown.certainty)
    _write_lineage(connection, row.id, row.next_event - n_events, shown.lineage)


def _write_rounds(connection: sa.Connection, stream_id: int, batch: BatchCommit) -> None:
    rows = [
        asdict(row)
        | {
            "stream_id": stream_id,
            "log_joint_before": _finite(row.log_joint_before),
            "log_joint_after": _finite(row.log_joint_after),
        }
        for row in batch.rounds
    ]
    _insert(connection, rounds, rows)


def write_snapshot(
    connection: sa.Connection, stream_id: int, epoch: int, snapshot: Snapshot
) -> int:
    """Write the image and return the number that it got."""
    payload = encode(snapshot.payload) if snapshot.encoded is None else snapshot.encoded
    taken = connection.execute(
        sa.select(sa.func.max(snapshots.c.number)).where(snapshots.c.stream_id == stream_id)
    ).scalar_one()
    number = max(snapshot.number, (taken or 0) + 1)
    row = {
        "stream_id": stream_id,
        "number": number,
        "seq": snapshot.seq,
        "epoch": epoch,
        "created_at": snapshot.created_at,
        "n_bytes": len(payload),
        "payload": payload[:PIECE_BYTES],
        "label": snapshot.label,
    }
    _insert(connection, snapshots, [row])
    starts = range(PIECE_BYTES, len(payload), PIECE_BYTES)
    for piece, start in enumerate(starts, start=1):
        # One at a time: each is copied on its way into the database.
        more = {
            "stream_id": stream_id,
            "number": number,
            "piece": piece,
            "payload": payload[start : start + PIECE_BYTES],
        }
        _insert(connection, snapshot_pieces, [more])
    return number


def _prune_snapshots(connection: sa.Connection, stream_id: int, kept: int) -> None:
    unlabelled = (snapshots.c.stream_id == stream_id, snapshots.c.label.is_(None))
    newest = (
        sa.select(snapshots.c.number)
        .where(*unlabelled)
        .order_by(snapshots.c.number.desc())
        .limit(kept)
    )
    connection.execute(sa.delete(snapshots).where(*unlabelled, snapshots.c.number.not_in(newest)))


def _insert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(sa.insert(table), rows)


def _finite(number: float) -> float | None:
    """Return the number, or None for NaN: SQLite stores NaN as NULL, so both databases do."""
    return None if math.isnan(number) else number


def _storable(text: str) -> str:
    """Return the text without what UTF-8 or PostgreSQL refuses: it may quote bad input."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode("utf-8")
