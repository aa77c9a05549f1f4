"""When something happened, as records tell it."""

from datetime import UTC, datetime
from math import isfinite

from weald.stream.record.record import Reason
from weald.stream.record.refused import Refused, cut

__all__ = ["EARLIEST_TIME", "LATEST_TIME", "NO_TIME", "time_of"]

# Above this a number of the epoch counts milliseconds: as seconds it would be the year 5138.
MILLISECONDS_FROM = 1e11
EARLIEST_TIME, LATEST_TIME = -62_135_596_800.0, 253_402_300_800.0
NO_TIME = float("nan")


def time_of(value: object, *, text: bool) -> float:
    """Seconds since the epoch, or NaN for an absent time.

    Raises
    ------
    Refused
        When it is neither a number of the epoch nor ISO 8601, or no date of our calendar.
    """
    if value is None or (text and value == ""):
        return NO_TIME
    seconds = _seconds(value, text=text)
    if not EARLIEST_TIME <= seconds < LATEST_TIME:
        detail = f"{cut(repr(value))} is no ISO 8601 time, nor seconds, nor milliseconds"
        raise Refused(Reason.BAD_TIME, detail)
    return seconds


def _seconds(value: object, *, text: bool) -> float:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            return aware.timestamp()
        except (ValueError, OverflowError):
            return _epoch(value) if text else NO_TIME
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _epoch(value)
    return NO_TIME


def _epoch(value: str | float) -> float:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return NO_TIME
    return number / 1000 if isfinite(number) and abs(number) >= MILLISECONDS_FROM else number
