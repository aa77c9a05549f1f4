"""What is known of a stream's refinement plane: its workers by Redis, its leases by SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .state import State

__all__ = ["plane_of"]

# A question must not wait for a server that is away.
_TIMEOUT_SECONDS = 1.0


def plane_of(state: State) -> dict[str, Any]:
    """Workers heard of lately, and leases by outcome; nothing for a stream that never had any.

    ``workers`` is None where Redis does not answer.
    """
    counts = state.reader.lease_counts(state.stream)
    settings = state.loaded.settings
    if not counts and settings.refinement.mode == "inline":
        return {}
    return {"workers": _workers(state), "leases": counts}


def _workers(state: State) -> list[dict[str, Any]] | None:
    import msgspec

    from ..storage.errors import StorageError
    from ..storage.lease_queue import LeaseQueue

    settings = state.loaded.settings
    if not settings.redis.enabled:
        return None
    brief = msgspec.structs.replace(settings.redis, timeout_seconds=_TIMEOUT_SECONDS, retries=0)
    horizon = 2 * settings.workers.lease_seconds
    try:
        with LeaseQueue(brief, state.stream) as queue:
            rows = queue.workers()
    except StorageError:
        return None
    return [
        {"name": row.name, "idle_seconds": row.idle_seconds, "n_held": row.n_held}
        for row in rows
        if row.idle_seconds <= horizon
    ]
