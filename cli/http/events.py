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
# Digits of a number that somebody may send.
_LONGEST = 18


def stream_events(request: Request, state: StoredStream, poll_seconds: float) -> StreamingResponse:
    """Answer with events until the other side has gone."""
    place = _place(request.headers.get("last-event-id", ""))
    lines = _lines(request, state, place, poll_seconds)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(lines, media_type="text/event-stream", headers=headers)


def _place(given: str) -> questions.Place | None:
    """Read what `_event` wrote as the number of an event; None of anything else."""
    numbers = given.split("-") if given.isascii() else []
    if not all(each.isdecimal() and len(each) < _LONGEST for each in numbers):
        return None
    return tuple(int(each) for each in numbers) or None


async def _lines(
    request: Request, state: StoredStream, place: questions.Place | None, poll_seconds: float
) -> AsyncIterator[str]:
    epoch, quiet = -1, 0
    while not await request.is_disconnected():
        now = await run_in_threadpool(questions.epoch_of, state)
        if now != epoch:
            total, fresh = await run_in_threadpool(questions.events_after, state, place)
            for at, event in fresh:
                yield _event("lineage", event, at)
            place, epoch, quiet = total, now, 0
            yield _event("epoch", {"epoch": now}, total)
        elif quiet >= LOOKS_BETWEEN_COMMENTS:
            quiet = 0
            yield ": nothing new\n\n"
        quiet += 1
        await asyncio.sleep(poll_seconds)


def _event(kind: str, data: Any, place: questions.Place) -> str:
    number = "-".join(map(str, place))
    return f"event: {kind}\nid: {number}\ndata: {msgspec.json.encode(data).decode()}\n\n"
