"""The questions: each reads the stored state and returns an answer. None of them writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from weald.answers.prediction import PublishedPredictive
from weald.answers.projection import plane_of
from weald.answers.records import cluster_record, group_records, lineage_record
from weald.cli.commands.assign import look_at_publication, row_of
from weald.storage.errors import MomentForgotten
from weald.storage.queries.base import AsOf
from weald.stream.record.decode import decode
from weald.stream.record.record import Message
from weald.stream.record.schema import Schema
from weald.stream.settings import SchemaSettings

from .answers import (
    Assignments,
    Cluster,
    Clusters,
    Events,
    Groups,
    Point,
    Points,
    Predictions,
    Question,
    Refusal,
    Stream,
)
from .problem import RefusedError

if TYPE_CHECKING:
    from weald.answers.stored_stream import StoredStream
    from weald.storage.queries.base import ClusterRow

__all__ = [
    "Place",
    "assignments_of",
    "cluster_of",
    "clusters_of",
    "epoch_of",
    "events_after",
    "events_of",
    "groups_of",
    "points_of",
    "predictions_of",
    "stream_of",
]

# How far a listener has come: a shard's events are told beside the others'.
Place = tuple[int, ...]


def epoch_of(state: StoredStream) -> int:
    """Number of the last commit: an answer can only change when this does."""
    return state.reader.position(state.stream).epoch


def stream_of(state: StoredStream) -> Stream:
    """Return the stream at a glance."""
    found = asdict(state.reader.status(state.stream))
    return msgspec.convert({**found, "features": list(state.features)}, Stream)


def clusters_of(
    state: StoredStream, *, retired: bool, limit: int, cursor: str | None = None
) -> Clusters:
    """Return a page of clusters, largest first."""
    epoch = epoch_of(state)
    total = state.n_clustered
    rows = state.reader.clusters(state.stream, include_retired=retired)
    if cursor is not None:
        size, last = (int(part) for part in cursor.split("-"))
        rows = [row for row in rows if (-row.n_observations, row.cluster) > (-size, last)]
    page = rows[:limit]
    following = f"{page[-1].n_observations}-{page[-1].cluster}" if len(rows) > limit else None
    return Clusters(epoch, [_cluster(state, row, total) for row in page], following)


def groups_of(state: StoredStream) -> Groups:
    """Return the groups of clusters, largest first."""
    found = {"epoch": epoch_of(state), "items": group_records(state)}
    return msgspec.convert(found, Groups)


def cluster_of(state: StoredStream, cluster: int) -> Cluster:
    """Return one cluster, ended or not.

    Raises
    ------
    RefusedError
        404, if there never was one with this id.
    """
    found = state.reader.cluster(state.stream, cluster)
    if found is None:
        raise RefusedError(HTTPStatus.NOT_FOUND, f"there never was a cluster {cluster}")
    return _cluster(state, found, state.n_clustered)


def _cluster(state: StoredStream, row: ClusterRow, total: int) -> Cluster:
    return msgspec.convert(cluster_record(state, row, total), Cluster)


def assignments_of(state: StoredStream, key: str, *, limit: int, as_of: Any = None) -> Assignments:
    """Return the newest observations with a key, with the cluster now or then.

    Raises
    ------
    RefusedError
        404, if no observation has the key, or what was shown then is not known any more.
    NotFoundError
        If there is no such publication.
    """
    moment = None
    if isinstance(as_of, str):
        moment = AsOf(publication=int(as_of.removeprefix("publication:")))
    elif as_of is not None:
        moment = AsOf(time=as_of)
    epoch = epoch_of(state)
    # PostgreSQL has no text with NUL, and so no such key.
    keys = [] if "\0" in key else [key]
    try:
        found = state.reader.assignments(state.stream, keys, as_of=moment, limit=limit)
    except MomentForgotten as error:
        raise RefusedError(HTTPStatus.NOT_FOUND, str(error)) from error
    if not found:
        look_at_publication(state, moment)
        then = "" if moment is None else " then"
        raise RefusedError(HTTPStatus.NOT_FOUND, f"no observation{then} with this key")
    # Groups change from one publication to the next.
    fresh = replace(state)
    items = [row_of(row, fresh) for row in found]
    return msgspec.convert({"epoch": epoch, "items": items}, Assignments)


def events_of(
    state: StoredStream,
    *,
    limit: int,
    since: float | None = None,
    cluster: int | None = None,
    cursor: int | None = None,
) -> Events:
    """Return a page of lineage, oldest first."""
    epoch = epoch_of(state)
    rows = state.reader.lineage(state.stream, since=since, cluster=cluster)
    start = cursor or 0
    page = [lineage_record(row) for row in rows[start : start + limit]]
    following = str(start + limit) if len(rows) > start + limit else None
    return msgspec.convert({"epoch": epoch, "items": page, "next": following}, Events)


def events_after(
    state: StoredStream, place: Place | None
) -> tuple[Place, list[tuple[Place, dict[str, Any]]]]:
    """Return how many lineage events there are, and those after a place, each with its own.

    A place says how many there are in each of the lists that grow by themselves. Without one, or
    with one that has another number of lists, nothing comes after it.
    """
    found = state.reader.lineages(state.stream)
    now = tuple(len(rows) for rows in found)
    if place is None or len(place) != len(now):
        return now, []
    fresh = []
    passed = list(place)
    for at, rows in enumerate(found):
        for row in rows[place[at] :]:
            passed[at] += 1
            fresh.append((tuple(passed), lineage_record(row)))
    return now, fresh


def points_of(state: StoredStream, *, limit: int) -> Points:
    """Return the newest observations in two dimensions."""
    position = state.reader.position(state.stream)
    if state.network:
        return Points(position.epoch, ("", ""), "The vertices of a network have no places.", [])
    after = max(0, position.next_seq - 1 - limit)
    blocks = []
    while (block := state.reader.observations(state.stream, after, limit)) is not None:
        blocks.append(block)
        after = int(block.seq[-1])
    if sum(len(block.seq) for block in blocks) < 2:
        return Points(position.epoch, ("", ""), "Too few observations yet.", [])
    values = np.concatenate([block.values for block in blocks])
    clusters = np.concatenate([block.cluster for block in blocks])
    keys = [key for block in blocks for key in block.key]
    plane = plane_of(values, clusters, state.features, state.schema)
    rows = zip(plane.points.tolist(), clusters.tolist(), keys, strict=True)
    items = [Point(x, y, cluster, key) for (x, y), cluster, key in rows]
    return Points(position.epoch, plane.axes, plane.how, items)


def predictions_of(state: StoredStream, question: Question) -> Predictions:
    """Say where records would go, by the stream's own schema; nothing is stored or learned."""
    epoch = epoch_of(state)
    if state.network:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "a network: ask `weald predict` for edges")
    declared = msgspec.convert(state.spec.schema, SchemaSettings)
    schema = Schema.of(msgspec.structs.replace(declared, key=None, time=None))
    batch, letters = decode(_messages(question.records), schema)
    answers = PublishedPredictive.of(state)(batch.values) if len(batch) else []
    items = [
        {"row": row, **answer} for row, answer in zip(batch.offset.tolist(), answers, strict=True)
    ]
    refused = [Refusal(letter.offset, letter.reason, letter.detail) for letter in letters]
    return msgspec.convert({"epoch": epoch, "items": items, "refused": refused}, Predictions)


def _messages(records: Sequence[dict[str, Any]]) -> list[Message]:
    return [
        Message("question", 0, row, -1, None, msgspec.json.encode(record))
        for row, record in enumerate(records)
    ]
