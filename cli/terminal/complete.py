"""Shell completion with what is there: names of streams, ids of clusters, keys of records.

A shell asks while somebody types, so nothing is said of any trouble: no answer is the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from weald.answers.stored_stream import StoredStream

__all__ = ["complete_cluster", "complete_key", "complete_stream"]

MOST = 50


class Typed(Protocol):
    """The words typed so far, as the command understands them."""

    @property
    def params(self) -> dict[str, Any]:
        """Arguments and options by name."""


def complete_stream(ctx: Typed, incomplete: str) -> list[str]:
    """Names of the streams in the database."""
    from .opened import opened

    given = ctx.params
    try:
        with opened(given.get("config"), given.get("set_")) as (reader, _):
            return _beginning(incomplete, reader.streams())
    except Exception:  # noqa: BLE001 - whatever it is, the person is in the middle of a line
        return []


def complete_cluster(ctx: Typed, incomplete: str) -> list[str]:
    """Ids of the clusters that are shown, largest first."""
    return _asked(ctx, incomplete, lambda state: state.reader.cluster_ids(state.stream))


def complete_key(ctx: Typed, incomplete: str) -> list[str]:
    """Keys of records."""
    return _asked(
        ctx, incomplete, lambda state: state.reader.keys_like(state.stream, incomplete, limit=MOST)
    )


def _asked(
    ctx: Typed, incomplete: str, ask: Callable[[StoredStream], Iterable[object]]
) -> list[str]:
    from .opened import reading

    given = ctx.params
    try:
        where = given.get("config"), given.get("set_"), given.get("stream")
        with reading(*where, undivided=False) as state:
            return _beginning(incomplete, ask(state))
    except Exception:  # noqa: BLE001 - as above
        return []


def _beginning(start: str, found: Iterable[object]) -> list[str]:
    return [text for text in map(str, found) if text.startswith(start)][:MOST]
