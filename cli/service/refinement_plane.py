"""What is known of a stream's refinement plane: its workers by Redis, its leases by SQL."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weald.answers.stored_stream import StoredStream
    from weald.cli.config.settings import Settings

__all__ = ["plane_of"]

# A question must not wait for a server that is away.
_TIMEOUT_SECONDS = 1.0


def plane_of(state: StoredStream, settings: Settings) -> dict[str, Any]:
    """Workers heard of lately, leases by outcome, and what the leases of each role came to.

    Nothing for a stream that never had any. ``workers`` is None where Redis does not answer.
    """
    counts = state.reader.lease_counts(state.stream)
    if not counts and settings.refinement.mode == "inline":
        return {}
    return {
        "workers": _workers(state.stream, settings),
        "leases": counts,
        "roles": [asdict(row) for row in state.reader.roles(state.stream)],
    }


def _workers(stream: str, settings: Settings) -> list[dict[str, Any]] | None:
    import msgspec

    from weald.mcmc.schedule.registry import ROLES
    from weald.storage.errors import StorageError
    from weald.storage.redis.lease_queue import LeaseQueue

    if not settings.redis.enabled:
        return None
    brief = msgspec.structs.replace(settings.redis, timeout_seconds=_TIMEOUT_SECONDS, retries=0)
    horizon = 2 * settings.workers.lease_seconds
    try:
        with LeaseQueue(brief, stream, tuple(ROLES)) as queue:
            rows = queue.workers()
    except StorageError:
        return None
    return [
        {
            "name": row.name,
            "role": row.role,
            "idle_seconds": row.idle_seconds,
            "n_held": row.n_held,
        }
        for row in rows
        if row.idle_seconds <= horizon
    ]
