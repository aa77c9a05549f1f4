"""Back from the columns of an observation to values as they came in: names, flags, units, times.

What the features keep of a time is its place in the hour, day, week or year, and of a hashed
category its level: more cannot be had back from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weald.stream.record.refused import Refused
from weald.stream.record.schema import Field, Schema

from .event_time import time_of
from .features import DAY, PERIODS

if TYPE_CHECKING:
    from weald.treecore.family import FeatureSummary

__all__ = [
    "Original",
    "moments_of",
    "original_names",
    "original_summaries",
    "originals_of",
    "phase_text",
    "unscaled",
]

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OTHER = "(other)"
# Digits of a number that a logarithm and its inverse leave as they were.
DIGITS = 12


@dataclass(frozen=True)
class Original:
    """One column of values as they came in.

    Attributes
    ----------
    name : str
    kind : str
        ``"number"``, ``"category"`` (flags, too), ``"moment"`` of a time as it came in, or the
        period that a time has a place in: ``"hour"``, ``"day"``, ``"week"`` or ``"year"``.
    values : ndarray, shape (n,)
        Numbers, of moments the seconds since the epoch, and of places in a period the seconds since
        it began, as float64, NaN where there is none; names of categories (of flags "yes" and "no")
        as objects, None where there is none. Never changed: what is found of them once is kept.
    """

    name: str
    kind: str
    values: NDArray[Any]

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Where (n) there is no value."""
        if self.kind == "category":
            return np.array([each is None for each in self.values], dtype=np.bool_)
        missing: NDArray[np.bool_] = np.isnan(self.values)
        return missing

    @cached_property
    def ordered(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Rows (m) that have a number or a moment, by it, and these, smallest first."""
        rows = np.argsort(self.values, kind="stable")[: len(self.values) - int(self.missing.sum())]
        return rows, self.values[rows]

    @cached_property
    def coded(self) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
        """Names of a category, sorted, and which of them each row (n) has; -1 for none."""
        told = ["" if each is None else str(each) for each in self.values]
        names, codes = np.unique(np.array(told), return_inverse=True)
        return names, np.where(self.missing, -1, codes)

    @property
    def period(self) -> float | None:
        """Seconds after which its values begin anew; None of what does not."""
        return PERIODS[self.kind][0] if self.kind in PERIODS else None

    def plain(self) -> list[Any]:
        """Values as JSON, CSV and people take them: numbers, names, flags, moments of a period."""
        if self.kind == "category":
            return list(self.values.tolist())
        told = [None if np.isnan(each) else each for each in self.values.tolist()]
        if self.kind == "number":
            return told
        tell = self.moments()
        return [None if each is None else tell(each) for each in told]

    @cached_property
    def has_dates(self) -> bool:
        """Whether all are moments or of a week, and midnights, as dates without a clock are."""
        return self.kind in ("moment", "week") and not (self.values % DAY > 0.0).any()

    @cached_property
    def _has_seconds(self) -> bool:
        return bool((self.values % 60.0 >= 1.0).any())

    def moments(self) -> Callable[[float], str]:
        """How moments, or those of its period, are told; those of dates as the nearest day."""
        if self.kind == "moment":
            written = 10 if self.has_dates else 19 if self._has_seconds else 16
            return lambda seconds: str(_EPOCH + timedelta(seconds=seconds))[:written]
        if self.has_dates:
            return lambda seconds: phase_text("week", round(seconds / DAY) * DAY)[:3]
        return lambda seconds: phase_text(self.kind, seconds)

    def typical(
        self, chosen: NDArray[np.bool_] | None = None
    ) -> tuple[float | str | None, float | None]:
        """Mean and standard deviation of numbers; of names the commonest, of moments the middle."""
        values = self.values if chosen is None else self.values[chosen]
        if self.kind == "category":
            counts = Counter(each for each in values.tolist() if each is not None)
            return (counts.most_common(1)[0][0], None) if counts else (None, None)
        values = values[~np.isnan(values)]
        if values.size == 0:
            return None, None
        if self.kind == "moment":
            return self.moments()(float(np.median(values))), None
        if self.period is None:
            return float(values.mean()), float(values.std())
        turn = float(np.angle(np.exp(2j * np.pi * values / self.period).mean())) / (2.0 * np.pi)
        return self.moments()(turn * self.period % self.period), None


def originals_of(schema: Schema, values: NDArray[np.float64]) -> list[Original]:
    """Return the columns of observations (n, d) as they came in, texts left out."""
    found: list[Original] = []
    at = 0
    for field in schema.fields:
        found += _originals(schema, field, values[:, at : at + field.width], at)
        at += field.width
    return found


def moments_of(name: str, told: Sequence[Any]) -> Original:
    """Return times (n,) as records tell them, in UTC; what cannot be read is none."""
    values = np.full(len(told), np.nan)
    for at, each in enumerate(told):
        with suppress(Refused):
            values[at] = time_of(each, text=True)
    return Original(name, "moment", values)


def original_names(schema: Schema) -> tuple[str, ...]:
    """Return the names of the columns that `originals_of` gives."""
    nothing = np.empty((0, schema.dimension))
    return tuple(each.name for each in originals_of(schema, nothing))


def original_summaries(schema: Schema, summaries: Sequence[FeatureSummary]) -> list[FeatureSummary]:
    """Return what a family says of a cluster's features in the values that came in.

    Categories are called by their names, numbers have their own units again, and a time has the
    middle of its moments in place of a sine and a cosine: the nearest day where its place in the
    week is all that is asked for. Texts are left out.
    """
    told: list[FeatureSummary] = []
    at = 0
    for field in schema.fields:
        own = summaries[at : at + field.width]
        centre = np.array([float(each.centre) for each in own])
        spread = np.array([each.spread or 0.0 for each in own])
        originals = _originals(
            schema, field, np.stack([centre, centre - spread, centre + spread]), at
        )
        # Of a time each period has two summaries, which know the same number of values.
        of = own[:: field.width // max(len(originals), 1)]
        if field.kind == "time" and field.settings.periods == ("week",):
            # As dates without a clock are declared: where their middle is has no clock either.
            originals = [
                replace(each, values=np.round(each.values / DAY) % 7 * DAY) for each in originals
            ]
        told += map(_summary, originals, of)
        at += field.width
    return told


def _summary(original: Original, of: FeatureSummary) -> FeatureSummary:
    """What a summary says of a feature, said of the values that came in."""
    if of.kind == "share":
        return of
    if original.kind != "number":
        centre = original.plain()[0]
        return replace(of, name=original.name, kind=original.kind, centre=centre, spread=None)
    centre, low, high = original.values.tolist()
    spread = None if of.spread is None else (high - low) / 2.0
    return replace(of, name=original.name, centre=centre, spread=spread)


def phase_text(period: str, seconds: float) -> str:
    """Return a moment of an hour, a day, a week or a year as people write it."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if period == "hour":
        return f"{minutes % 60:02d}:{second:02d}"
    if period == "day":
        return f"{hours % 24:02d}:{minute:02d}"
    if period == "week":
        return f"{_WEEKDAYS[hours // 24 % 7]} {hours % 24:02d}:{minute:02d}"
    day = int(seconds // DAY)
    for name, days in zip(_MONTHS, _MONTH_DAYS, strict=True):
        if day < days:
            return f"{name} {day + 1}"
        day -= days
    return "Dec 31"


def _originals(
    schema: Schema, field: Field, values: NDArray[np.float64], at: int
) -> Sequence[Original]:
    if field.kind == "number":
        plain = unscaled(schema, values, at)
        return [
            Original(name, "number", plain[:, column]) for column, name in enumerate(field.columns)
        ]
    if field.kind == "count":
        return [Original(field.name, "number", values[:, 0])]
    if field.kind == "flag":
        return [Original(field.name, "category", _named(values[:, 0], ("no", "yes")))]
    if field.kind == "category":
        return [Original(field.name, "category", _named(values[:, 0], field.settings.values))]
    if field.kind == "time":
        return [
            Original(
                f"{field.name} ({period})" if len(field.settings.periods) > 1 else field.name,
                period,
                _phase(period, values[:, 2 * place], values[:, 2 * place + 1]),
            )
            for place, period in enumerate(field.settings.periods)
        ]
    return []


def unscaled(schema: Schema, values: NDArray[np.float64], at: int = 0) -> NDArray[np.float64]:
    """Return columns (n, q) of observations, the first of them column ``at``, as they came in."""
    scaling = schema.scaling
    if scaling is None:
        return values
    here = slice(at, at + values.shape[1])
    plain = values * scaling.spread[here] + scaling.center[here]
    log = scaling.log[here]
    plain[:, log] = _as_written(np.expm1(plain[:, log]))
    return plain


def _as_written(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers that went through a logarithm, without the digits that this has left: 4, not 3.9…."""
    digits = DIGITS - np.floor(np.log10(1.0 + np.abs(values)))
    # Powers of ten are exact up to the 22nd, and a quotient of two exact numbers is rounded once.
    power = 10.0 ** np.maximum(digits, 0.0)
    return np.asarray(np.rint(values * power) / power)


def _named(codes: NDArray[np.float64], names: Sequence[str]) -> NDArray[Any]:
    """Names of codes; of those that have none, as hashed ones, the code itself."""
    if names:
        known = np.array([*names, OTHER, None], dtype=object)
        at = np.where(np.isnan(codes), len(names) + 1, np.minimum(codes, len(names)))
        named: NDArray[Any] = known[at.astype(np.int64)]
        return named
    told = [None if np.isnan(code) else f"#{code:.0f}" for code in codes.tolist()]
    return np.array(told, dtype=object)


def _phase(
    period: str, sine: NDArray[np.float64], cosine: NDArray[np.float64]
) -> NDArray[np.float64]:
    turns: NDArray[np.float64] = np.arctan2(sine, cosine) / (2 * np.pi)
    # Without what sines leave, by which a midnight would be of the day before.
    return np.round(turns * PERIODS[period][0], 6) % PERIODS[period][0]
