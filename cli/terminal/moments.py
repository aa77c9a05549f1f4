"""Moments as people type them: a date, seconds, an age, or a publication."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from weald.cli.errors import UsageError

if TYPE_CHECKING:
    from weald.storage.queries.base import AsOf

__all__ = ["FORMS", "parse_moment", "parse_since"]

FORMS = "ISO 8601 (UTC unless it names a zone), seconds since 1970, or an age such as 90m, 24h, 7d"

_AGE = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d|w)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


def parse_moment(text: str) -> AsOf:
    """Return the moment that ``--as-of`` names.

    Raises
    ------
    UsageError
        If it is no moment and no publication.
    """
    from weald.storage.queries.base import AsOf

    head, _, tail = text.partition(":")
    if head == "publication" and tail.isdecimal():
        return AsOf(publication=int(tail))
    seconds = _seconds(text)
    if seconds is None:
        raise UsageError(
            f"--as-of {text}: expected {FORMS}, or publication:NUMBER",
            next_step="weald assign KEY --as-of 2026-01-31T12:00:00Z",
        )
    return AsOf(time=seconds)


def parse_since(text: str) -> float:
    """Return the moment that ``--since`` names, in seconds since 1970.

    Raises
    ------
    UsageError
        If it is no moment.
    """
    seconds = _seconds(text)
    if seconds is None:
        raise UsageError(f"--since {text}: expected {FORMS}", next_step="weald lineage --since 24h")
    return seconds


def _seconds(text: str) -> float | None:
    age = _AGE.fullmatch(text)
    if age is not None:
        return time.time() - float(age[1]) * _SECONDS[age[2]]
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
