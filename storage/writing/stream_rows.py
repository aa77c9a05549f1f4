"""The row of a stream: as it begins, and as it is once the stream is seen anew."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sa

from weald.storage.commit.commit import REVISED, Revision, StreamSpec
from weald.storage.sql.schema import stream_models, streams

__all__ = ["plain", "row_of", "write_revisions"]


def row_of(spec: StreamSpec) -> dict[str, Any]:
    """Return the row of a stream that nobody has claimed."""
    return _described(spec) | {
        "created_at": time.time(),
        "owner": "",
        "generation": 0,
        "epoch": 0,
        "next_seq": 1,
        "next_event": 1,
    }


def plain(spec: StreamSpec) -> StreamSpec:
    """Return the spec as JSON would give it back: tuples as lists, keys as text."""
    names = ("family_params", "prior_params", "schema", "hyperprior", "resolution", "log_steps")
    parts = {name: getattr(spec, name) for name in names}
    return replace(spec, **json.loads(json.dumps(parts)))


def write_revisions(
    connection: sa.Connection, stream_id: int, revisions: Sequence[Revision]
) -> None:
    """Write how the stream is seen from now on, and tell it in the journal."""
    if not revisions:
        return
    now = _described(revisions[-1].spec)
    connection.execute(
        sa.update(streams)
        .where(streams.c.id == stream_id)
        .values({name: now[name] for name in REVISED})
    )
    told = [asdict(each.row) | {"stream_id": stream_id} for each in revisions]
    connection.execute(sa.insert(stream_models), told)


def _described(spec: StreamSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "family": spec.family,
        "family_params": spec.family_params,
        "prior": spec.prior,
        "prior_params": spec.prior_params,
        "record_schema": spec.schema,
        "seed": spec.seed,
        "transformation": spec.transformation,
        "seen_as": spec.seen_as,
        "hyperprior": spec.hyperprior,
        "resolution": spec.resolution,
        "moves": spec.moves,
        "log_steps": spec.log_steps,
        "shards": spec.shards,
        "shard": spec.shard,
    }
