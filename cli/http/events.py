"""Lineage as it happens: server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from . import questions

if TYPE_CHECKING:
    from starlette.requests import Request

    from weald.answers.stored_stream import StoredStream

__all__ = ["stream_events"]

# So many looks without news, and a comment keeps proxies from closing the connection.
LOOKS_BETWEEN_COMMENTS = 15


def stream_events(request: Request, state: StoredStream, poll_seconds: float) -> StreamingResponse:
    """Answer with events until the other side has gone."""
    given = request.headers.get("last-event-id", "")
    place = int(given) if given.isdecimal() and given.isascii() and len(given) < 18 else None
    lines = _lines(request, state, place, poll_seconds)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(lines, media_type="text/event-stream", headers=headers)


async def _lines(
    request: Request, state: StoredStream, place: int | None, poll_seconds: float
) -> AsyncIterator[str]:
    epoch, quiet = -1, 0
    while not await request.is_disconnected():
        now = await run_in_threadpool(questions.epoch_of, state)
        if now != epoch:
            total, fresh = await run_in_threadpool(questions.events_after, state, place)
            for at, event in enumerate(fresh, start=total - len(fresh) + 1):
                yield _event("lineage", event, at)
            place, epoch, quiet = total, now, 0
            yield _event("epoch", {"epoch": now}, total)
        elif quiet >= LOOKS_BETWEEN_COMMENTS:
            quiet = 0
            yield ": nothing new\n\n"
        quiet += 1
        await asyncio.sleep(poll_seconds)


def _event(kind: str, data: Any, number: int) -> str:
    return f"event: {kind}\nid: {number}\ndata: {msgspec.json.encode(data).decode()}\n\n"
