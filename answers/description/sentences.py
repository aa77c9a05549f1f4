"""What sets rows apart from all others, in sentences that are true of the data as they stand.

A sentence is a rule on one column in the data's own values, with the share of the rows that it
holds for and the share elsewhere: "country Norway: 82 %, elsewhere 9 %", "width 17.01 to 17.03:
90 %, elsewhere 5 %". Location, spread and shares of categories compete by one measure: how much
knowing whether the rule holds tells of who is among the rows (mutual information; T. Cover and
J. Thomas, Elements of Information Theory, 2.4). What is counted is the rule as it is printed, with
the digits that are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, inf, log, log10
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.stream.record.fields.features import DAY
from weald.stream.record.fields.originals import Original

__all__ = ["Sentence", "entropy_of", "explain", "nats_told", "sentence_of", "told"]

# A rule is about most of the rows that it describes.
LEAST_INSIDE = 0.5
# Another sentence has to add so much of what there is to be known.
LEAST_ADDED = 0.02
# And say something by itself, too.
LEAST_ALONE = 0.05
MOST_NAMED = 3
# Ends of intervals are looked for among so many quantiles.
ENDS = 50
_ENDS = np.linspace(0.0, 1.0, ENDS)
_INFINITE = np.array([-inf, inf])
_TENTHS_AND_ENDS = np.append([0.1, 0.9], _ENDS)
# An interval is called narrow where so many of the others lie on either side.
BOTH_SIDES = 0.1
# Ends of intervals of a period, to so many seconds.
GRAIN = {"hour": 60.0, "day": 900.0, "week": 3600.0, "year": DAY}

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Sentence:
    """One thing that is true of most of some rows, and of fewer others.

    Attributes
    ----------
    column : str
    what : str
        The rule in words and values: "country Norway", "width 17.01 to 17.03", "no income".
    inside, elsewhere : float
        Shares of the rows, and of all others, that it holds for.
    information : float
        Share of what there is to be known of who is among the rows, from 0 to 1.
    """

    column: str
    what: str
    inside: float
    elsewhere: float
    information: float

    def __str__(self) -> str:
        return f"{self.what}: {_percent(self.inside)}, elsewhere {_percent(self.elsewhere)}"


class _Parted(NamedTuple):
    """Rows to describe among all others: which, how many of either, and their share of all."""

    inside: Mask
    n_inside: int
    n_elsewhere: int
    weight: float

    @classmethod
    def of(cls, inside: Mask, share: float | None) -> _Parted:
        n_inside = int(np.count_nonzero(inside))
        weight = n_inside / len(inside) if share is None else share
        return cls(inside, n_inside, len(inside) - n_inside, weight)

    def shares(self, holds: Mask) -> tuple[float, float]:
        """Shares of the rows and of all others that a rule holds for."""
        own = int(np.count_nonzero(holds & self.inside))
        return own / self.n_inside, (int(np.count_nonzero(holds)) - own) / self.n_elsewhere

    def information(self, inside: float, elsewhere: float) -> float:
        """What a rule tells that holds for these shares."""
        return float(_shared(np.array(inside), np.array(elsewhere), self.weight))

    def information_of(self, cells: NDArray[np.int64]) -> float:
        """What it tells to know in which of some cells (n) a row is."""
        own = np.bincount(cells[self.inside], minlength=int(cells.max()) + 1)
        every = np.bincount(cells, minlength=len(own))
        of = np.array([self.weight, 1.0 - self.weight])
        shares = np.array([own / self.n_inside, (every - own) / self.n_elsewhere])
        total = of @ shares
        # Of a cell without any row nothing is told.
        ratio = shares[:, total > 0.0] / total[total > 0.0]
        told = of @ (shares[:, total > 0.0] * np.log(np.where(ratio > 0.0, ratio, 1.0)))
        return float(told.sum()) / _limit(self.weight)


class _Rule(NamedTuple):
    """What a rule tells by itself, and, for the few that are said, its words and where it holds.

    ``says`` and ``where`` are asked for only then: of a hundred columns three have a say.
    """

    information: float
    says: Callable[[], str]
    where: Callable[[], Mask]


def explain(
    columns: Sequence[Original], inside: Mask, *, share: float | None = None, most: int = 3
) -> list[Sentence]:
    """Return what sets rows apart, the most telling sentence first, each adding to those before.

    That all of them hold says more than that the ones before do. Where there is none such beside
    the first, one that says of the rows what that leaves unsaid is told as well.

    Parameters
    ----------
    columns : sequence of Original
        Of n rows.
    inside : ndarray of bool, shape (n,)
        The rows to describe.
    share : float, optional
        Of them among all, where these n are a sample of either kind; theirs here by default.
    most : int
        Sentences at most.
    """
    rows = _Parted.of(inside, share)
    if not rows.n_inside or not rows.n_elsewhere:
        return []
    best = [(column.name, _best(column, rows)) for column in columns]
    found = [
        (name, rule, rule.where()) for name, rule in best if rule and rule.information > LEAST_ALONE
    ]
    needed = _needed(len(inside), len(columns))
    chosen: list[Sentence] = []
    least = max(LEAST_ADDED, needed / _limit(rows.weight))
    holds, known = np.ones(len(inside), dtype=bool), 0.0
    while found and len(chosen) < most:
        gains = [
            rows.information(*rows.shares(holds & where)) if chosen else rule.information
            for _, rule, where in found
        ]
        at = int(np.argmax(gains))
        if gains[at] - known < (LEAST_ADDED if chosen else least):
            break
        name, rule, where = found.pop(at)
        holds, known = holds & where, gains[at]
        chosen.append(_sentence(name, rule, rows.shares(where)))
    if len(chosen) == 1 < most and found:
        chosen += _beside(holds, found, rows, least)
    return chosen


def _beside(
    first: Mask, others: Sequence[tuple[str, _Rule, Mask]], rows: _Parted, least: float
) -> list[Sentence]:
    """The sentence that tells most of what a first one leaves unsaid, if that is enough.

    Of rows that it holds for or not, as may be: both together need not hold for more of the rows.
    """
    known = rows.information_of(first.astype(np.int64))
    gains = [rows.information_of(2 * first + where) - known for _, _, where in others]
    at = int(np.argmax(gains))
    if gains[at] < least:
        return []
    name, rule, where = others[at]
    return [_sentence(name, rule, rows.shares(where))]


def sentence_of(column: Original, inside: Mask, *, share: float | None = None) -> Sentence | None:
    """Return the most telling sentence that one column has; None where it has none."""
    rows = _Parted.of(inside, share)
    rule = _best(column, rows) if rows.n_inside and rows.n_elsewhere else None
    return None if rule is None else _sentence(column.name, rule, rows.shares(rule.where()))


def told(sentences: Sequence[Sentence]) -> str:
    """Return sentences on one line, or that there are none."""
    return "; ".join(map(str, sentences)) or "nothing sets it apart"


def _sentence(name: str, rule: _Rule, shares: tuple[float, float]) -> Sentence:
    return Sentence(name, rule.says(), *shares, rule.information)


def _needed(n: int, n_columns: int) -> float:
    """Nats a row that a rule must tell before it is more than the best of many chances."""
    return (log(max(n, 2)) + log(max(n_columns, 1)) + 2.0) / n


def _limit(weight: float) -> float:
    """What there is to be known, in nats: the entropy of belonging."""
    return -weight * log(weight) - (1.0 - weight) * log(1.0 - weight) if 0 < weight < 1 else 1.0


def _shared(
    inside: NDArray[np.float64], elsewhere: NDArray[np.float64], weight: float
) -> NDArray[np.float64]:
    """Share of the entropy of belonging that rules tell, from the shares that they hold for."""
    told = np.zeros(inside.shape)
    # A rule says what is so of the rows, not what is not. Others are most, and are not weighed.
    so = (inside > elsewhere) & (inside >= LEAST_INSIDE)
    told[so] = nats_told(inside[so], elsewhere[so], weight) / _limit(weight)
    return told


def nats_told(
    inside: NDArray[np.float64], elsewhere: NDArray[np.float64], weight: float
) -> NDArray[np.float64]:
    """What rules tell of belonging, from the shares that they hold for; ``weight`` belong."""
    total = weight * inside + (1.0 - weight) * elsewhere
    of_all, of_inside, of_elsewhere = entropy_of(np.array([total, inside, elsewhere]))
    told: NDArray[np.float64] = of_all - weight * of_inside - (1.0 - weight) * of_elsewhere
    return told


def entropy_of(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nats that it takes to say of a row whether it is in a share of all."""
    from scipy.special import entr

    found: NDArray[np.float64] = entr(share) + entr(np.maximum(1.0 - share, 0.0))
    return found


def _best(column: Original, rows: _Parted) -> _Rule | None:
    rules = [_best_of(column, rows), _missing(column, rows)]
    found = [rule for rule in rules if rule is not None]
    best = max(found, key=lambda rule: rule.information, default=None)
    return best if best is not None and best.information > 0.0 else None


def _missing(column: Original, rows: _Parted) -> _Rule | None:
    holds = column.missing
    if not holds.any():
        return None
    told = rows.information(*rows.shares(holds))
    return _Rule(told, lambda: f"no {column.name}", lambda: holds)


def _best_of(column: Original, rows: _Parted) -> _Rule | None:
    if column.kind == "category":
        return _best_names(column, rows)
    in_order, ordered = column.ordered
    own = rows.inside[in_order]
    parted = ordered[np.flatnonzero(own)], ordered[np.flatnonzero(~own)]
    if not parted[0].size:
        return None
    if column.period is not None:
        return _best_phase(column, rows, parted)
    if column.kind == "moment":
        return _best_time(column, rows, parted)
    return _best_interval(column, rows, parted)


def _best_names(column: Original, rows: _Parted) -> _Rule | None:
    """The names that are most typical of the rows: those with the largest ratio of shares."""
    names, code = column.coded
    of_all = np.bincount(code[~column.missing], minlength=len(names))
    of_own = np.bincount(code[rows.inside & ~column.missing], minlength=len(names))
    if not of_own.any():
        return None
    own, rest = of_own / rows.n_inside, (of_all - of_own) / rows.n_elsewhere
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(own > 0.0, own / (own + rest), -1.0), kind="stable")
    # Rare names with a high ratio would crowd out common ones: only those that many rows have.
    order = order[own[order] >= min(0.1, own.max())][:MOST_NAMED]
    gains = _shared(np.cumsum(own[order]), np.cumsum(rest[order]), rows.weight)
    several = order[: int(np.argmax(gains)) + 1]
    singles = _shared(own[order], rest[order], rows.weight)
    chosen = several
    if singles.max() >= gains.max():
        chosen = order[[int(np.argmax(singles))]]
    chosen = chosen[np.argsort(-own[chosen], kind="stable")]
    held = int(of_own[chosen].sum()), int(of_all[chosen].sum())
    told = rows.information(held[0] / rows.n_inside, (held[1] - held[0]) / rows.n_elsewhere)
    words = " or ".join(names[at] for at in chosen)
    return _Rule(told, lambda: f"{column.name} {words}", lambda: np.isin(code, chosen))


class _Interval(NamedTuple):
    """An interval, what it tells, and the shares of the others that lie below and above it."""

    low: float
    high: float
    information: float
    below: float
    above: float

    def where(self, values: NDArray[np.float64]) -> Mask:
        with np.errstate(invalid="ignore"):
            return (values >= self.low) & (values <= self.high)


# Values of the rows, and of all others, each smallest first and without gaps.
Parted = tuple[NDArray[np.float64], NDArray[np.float64]]


def _best_interval(column: Original, rows: _Parted, parted: Parted) -> _Rule | None:
    own = parted[0]
    quantiles = _quantiles(own, _TENTHS_AND_ENDS)
    decimals = _decimals(own, float(quantiles[0]), float(quantiles[1]))
    found = _widest_gain(parted, rows, _ends(quantiles[2:], decimals))
    low, high = found.low, found.high
    if low == -inf and high == inf:
        return None
    _, ordered = column.ordered

    def says() -> str:
        # Where there is nothing beyond, "at most 0" is 0.
        first = high if low == -inf and high == ordered[0] else low
        last = low if high == inf and low == ordered[-1] else high
        if first == -inf:
            what = f"at most {_number(last, decimals)}"
        elif last == inf:
            what = f"at least {_number(first, decimals)}"
        elif first == last:
            what = _number(first, decimals)
        else:
            what = f"{_number(first, decimals)} to {_number(last, decimals)}"
            if min(found.below, found.above) >= BOTH_SIDES:
                what += f", {_number(last - first, decimals)} wide"
        return f"{column.name} {what}"

    return _Rule(found.information, says, lambda: found.where(column.values))


def _best_time(column: Original, rows: _Parted, parted: Parted) -> _Rule | None:
    """Since, until or from one moment to another, each as it is printed."""
    inner = _quantiles(parted[0], _ENDS)
    grain = DAY if column.has_dates else _grain(float(np.ptp(inner)))
    lows = _distinct(_INFINITE[:1], np.floor(inner / grain) * grain)
    highs = _distinct(np.ceil(inner / grain) * grain, _INFINITE[1:])[::-1]
    found = _widest_gain(parted, rows, (lows, highs))
    low, high = found.low, found.high
    if low == -inf and high == inf:
        return None

    def says() -> str:
        tell = column.moments()
        if low == -inf:
            return f"{column.name} until {tell(high)}"
        if high == inf:
            return f"{column.name} since {tell(low)}"
        return f"{column.name} {' to '.join(dict.fromkeys((tell(low), tell(high))))}"

    return _Rule(found.information, says, lambda: found.where(column.values))


def _grain(wide: float) -> float:
    """Seconds to which moments that lie so far apart are told."""
    return next((each for each in (DAY, 3600.0, 60.0) if wide > ENDS * each), 1.0)


def _best_phase(column: Original, rows: _Parted, parted: Parted) -> _Rule | None:
    """An interval on a circle: cut where the rows have their largest gap, it is one of a line."""
    period = column.period or 1.0
    grain = DAY if column.has_dates else GRAIN[column.kind]
    own = _distinct(parted[0])
    gaps = np.diff(np.append(own, own[0] + period))
    start = floor(float(own[(int(np.argmax(gaps)) + 1) % own.size]) / grain) * grain

    def turned(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return (values - start) % period

    ordered = np.sort(turned(parted[0])), np.sort(turned(parted[1]))
    inner = _quantiles(ordered[0], _ENDS)
    lows = _distinct(np.floor(inner / grain) * grain)
    highs = _distinct(np.minimum(np.ceil(inner / grain) * grain, period))
    found = _widest_gain(ordered, rows, (lows, highs))
    low, high = found.low, found.high
    if high - low >= period:
        return None

    def says() -> str:
        tell = column.moments()
        ends = dict.fromkeys(tell((each + start) % period) for each in (low, high))
        return f"{column.name} {' to '.join(ends)}"

    return _Rule(found.information, says, lambda: found.where(turned(column.values)))


def _widest_gain(
    parted: Parted, rows: _Parted, ends: tuple[NDArray[np.float64], NDArray[np.float64]]
) -> _Interval:
    """The interval between ends that tells most; of equals the one open where it can be."""
    lows, highs = ends
    (own_below, own_upto), (rest_below, rest_upto) = (
        # How many values lie below each low end, and how many not above each high one.
        (np.searchsorted(each, lows, "left"), np.searchsorted(each, highs, "right"))
        for each in parted
    )
    within = np.maximum(own_upto[None, :] - own_below[:, None], 0) / rows.n_inside
    without = np.maximum(rest_upto[None, :] - rest_below[:, None], 0) / rows.n_elsewhere
    told = _shared(within, without, rows.weight)
    at, to = divmod(int(np.argmax(told)), len(highs))
    return _Interval(
        float(lows[at]),
        float(highs[to]),
        float(told[at, to]),
        int(rest_below[at]) / rows.n_elsewhere,
        (parted[1].size - int(rest_upto[to])) / rows.n_elsewhere,
    )


def _quantiles(ordered: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """What ``numpy.quantile`` gives, to the last digit, of values that are in order already."""
    at = (len(ordered) - 1) * shares
    before = np.floor(at)
    place = before.astype(np.int64)
    low, high = ordered[place], ordered[np.minimum(place + 1, len(ordered) - 1)]
    part, wide = at - before, high - low
    found: NDArray[np.float64] = np.where(part < 0.5, low + wide * part, high - wide * (1.0 - part))
    return found


def _ends(
    inner: NDArray[np.float64], decimals: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where intervals may begin and end: quantiles, rounded outwards to the digits shown."""
    step = 10.0 ** abs(decimals)
    if decimals < 0:
        lows, highs = np.floor(inner / step) * step, np.ceil(inner / step) * step
    else:
        lows, highs = np.floor(inner * step) / step, np.ceil(inner * step) / step
    return _distinct(_INFINITE[:1], lows), _distinct(highs, _INFINITE[1:])[::-1]


def _distinct(*ordered: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values that are in order already, each once."""
    values = np.concatenate(ordered)
    new = np.empty(len(values), dtype=np.bool_)
    new[0] = True
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return values[new]


def _decimals(values: NDArray[np.float64], tenth: float, last_tenth: float) -> int:
    """Digits after the point that tell most of values apart; below 0 of large ones."""
    wide = last_tenth - tenth
    if wide <= 0.0:
        # Where most are 0, the others say how finely.
        wide = abs(tenth) * 1e-3 or float(np.ptp(values)) or 1.0
    if (values == np.floor(values)).all():
        return min(0, -floor(log10(max(wide, 1.0))) + 1)
    decimals = min(-floor(log10(wide)) + 1, 9)
    if last_tenth == tenth != 0.0:
        # Most are one number, which may need fewer.
        decimals = min(decimals, len(f"{tenth:.9f}".rstrip("0").partition(".")[2]))
    return decimals


def _number(value: float, decimals: int) -> str:
    if abs(value) >= 1e16:
        # The fewest digits that say it, with an exponent: further ones are none of its own.
        return str(float(value))
    return f"{value:.{max(decimals, 0)}f}"


def _percent(share: float) -> str:
    if 0.0 < share < 0.005:
        return "<1 %"
    if 0.995 <= share < 1.0:
        return ">99 %"
    return f"{share:.0%}".replace("%", " %")
