"""What sets rows apart from all others, in sentences that are true of the data as they stand.

A sentence is a rule on one column in the data's own values, with the share of the rows that it
holds for and the share elsewhere: "country Norway: 82 %, elsewhere 9 %", "width 17.01 to 17.03:
90 %, elsewhere 5 %". Location, spread and shares of categories compete by one measure: how much
knowing whether the rule holds tells of who is among the rows (mutual information; T. Cover and
J. Thomas, Elements of Information Theory, 2.4). What is counted is the rule as it is printed, with
the digits that are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf, log, log10

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


class _Rule:
    """A rule in words, where it holds, and what it tells by itself."""

    def __init__(self, what: str, holds: Mask) -> None:
        self.what, self.holds, self.information = what, holds, 0.0


def explain(
    columns: Sequence[Original], inside: Mask, *, share: float | None = None, most: int = 3
) -> list[Sentence]:
    """Return what sets rows apart, the most telling sentence first, each adding to those before.

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
    if not inside.any() or inside.all():
        return []
    weight = float(inside.mean()) if share is None else share
    best = [_best(column, inside, weight) for column in columns]
    found = [(column.name, rule) for column, rule in zip(columns, best, strict=True) if rule]
    found = [each for each in found if each[1].information > LEAST_ALONE]
    needed = _needed(len(inside), len(columns))
    chosen: list[Sentence] = []
    holds, known = np.ones(len(inside), dtype=bool), 0.0
    while found and len(chosen) < most:
        gains = [
            _information(holds & rule.holds, inside, weight) if chosen else rule.information
            for _, rule in found
        ]
        at = int(np.argmax(gains))
        least = max(LEAST_ADDED, needed / _limit(weight)) if not chosen else LEAST_ADDED
        if gains[at] - known < least:
            break
        name, rule = found.pop(at)
        holds, known = holds & rule.holds, gains[at]
        chosen.append(_sentence(name, rule, inside))
    return chosen


def sentence_of(column: Original, inside: Mask, *, share: float | None = None) -> Sentence | None:
    """Return the most telling sentence that one column has; None where it has none."""
    weight = float(inside.mean()) if share is None else share
    rule = _best(column, inside, weight) if inside.any() and not inside.all() else None
    return None if rule is None else _sentence(column.name, rule, inside)


def told(sentences: Sequence[Sentence]) -> str:
    """Return sentences on one line, or that there are none."""
    return "; ".join(map(str, sentences)) or "nothing sets it apart"


def _sentence(name: str, rule: _Rule, inside: Mask) -> Sentence:
    return Sentence(
        column=name,
        what=rule.what,
        inside=float(rule.holds[inside].mean()),
        elsewhere=float(rule.holds[~inside].mean()),
        information=rule.information,
    )


def _needed(n: int, n_columns: int) -> float:
    """Nats a row that a rule must tell before it is more than the best of many chances."""
    return (log(max(n, 2)) + log(max(n_columns, 1)) + 2.0) / n


def _limit(weight: float) -> float:
    """What there is to be known, in nats: the entropy of belonging."""
    return -weight * log(weight) - (1.0 - weight) * log(1.0 - weight) if 0 < weight < 1 else 1.0


def _information(holds: Mask, inside: Mask, weight: float) -> float:
    rates = holds[inside].mean(), holds[~inside].mean()
    return float(_shared(np.array(rates[0]), np.array(rates[1]), weight))


def _shared(
    inside: NDArray[np.float64], elsewhere: NDArray[np.float64], weight: float
) -> NDArray[np.float64]:
    """Share of the entropy of belonging that rules tell, from the shares that they hold for."""
    nats = nats_told(inside, elsewhere, weight) / _limit(weight)
    # A rule says what is so of the rows, not what is not.
    told: NDArray[np.float64] = np.where((inside > elsewhere) & (inside >= LEAST_INSIDE), nats, 0.0)
    return told


def nats_told(
    inside: NDArray[np.float64], elsewhere: NDArray[np.float64], weight: float
) -> NDArray[np.float64]:
    """What rules tell of belonging, from the shares that they hold for; ``weight`` belong."""
    total = weight * inside + (1.0 - weight) * elsewhere
    of_all, of_inside, of_elsewhere = entropy_of(np.stack([total, inside, elsewhere]))
    told: NDArray[np.float64] = of_all - weight * of_inside - (1.0 - weight) * of_elsewhere
    return told


def entropy_of(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nats that it takes to say of a row whether it is in a share of all."""
    from scipy.special import entr

    found: NDArray[np.float64] = entr(share) + entr(np.maximum(1.0 - share, 0.0))
    return found


def _best(column: Original, inside: Mask, weight: float) -> _Rule | None:
    rules = [_best_of(column, inside, weight), _missing(column)]
    found = [rule for rule in rules if rule is not None]
    for rule in found:
        rule.information = _information(rule.holds, inside, weight)
    best = max(found, key=lambda rule: rule.information, default=None)
    return best if best is not None and best.information > 0.0 else None


def _missing(column: Original) -> _Rule | None:
    holds = _empty(column)
    return _Rule(f"no {column.name}", holds) if holds.any() else None


def _empty(column: Original) -> Mask:
    if column.kind == "category":
        return np.array([each is None for each in column.values], dtype=bool)
    return np.isnan(column.values.astype(np.float64))


def _best_of(column: Original, inside: Mask, weight: float) -> _Rule | None:
    if not (inside & ~_empty(column)).any():
        return None
    if column.kind == "category":
        return _best_names(column, inside, weight)
    if column.period is not None:
        return _best_phase(column, inside, weight)
    if column.kind == "moment":
        return _best_time(column, inside, weight)
    return _best_interval(column, inside, weight)


def _best_names(column: Original, inside: Mask, weight: float) -> _Rule | None:
    """The names that are most typical of the rows: those with the largest ratio of shares."""
    names, code = np.unique(
        np.array(["" if each is None else str(each) for each in column.values]),
        return_inverse=True,
    )
    code = np.where(_empty(column), -1, code)
    own = np.bincount(code[inside & (code >= 0)], minlength=len(names)) / inside.sum()
    rest = np.bincount(code[~inside & (code >= 0)], minlength=len(names)) / (~inside).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(own > 0.0, own / (own + rest), -1.0), kind="stable")
    # Rare names with a high ratio would crowd out common ones: only those that many rows have.
    order = order[own[order] >= min(0.1, own.max())][:MOST_NAMED]
    gains = _shared(np.cumsum(own[order]), np.cumsum(rest[order]), weight)
    several = order[: int(np.argmax(gains)) + 1]
    single = int(order[np.argmax(_shared(own[order], rest[order], weight))])
    chosen = several
    if _shared(own[single], rest[single], weight) >= gains.max():
        chosen = np.array([single])
    chosen = chosen[np.argsort(-own[chosen], kind="stable")]
    words = " or ".join(names[at] for at in chosen)
    return _Rule(f"{column.name} {words}", np.isin(code, chosen))


def _best_interval(column: Original, inside: Mask, weight: float) -> _Rule | None:
    values = column.values.astype(np.float64)
    own = values[inside & ~np.isnan(values)]
    quantiles = np.quantile(own, [0.1, 0.9, *np.linspace(0.0, 1.0, ENDS)])
    decimals = _decimals(own, float(quantiles[0]), float(quantiles[1]))
    low, high = _widest_gain(values, inside, weight, _ends(quantiles[2:], decimals))
    if low == -inf and high == inf:
        return None
    # Where there is nothing beyond, "at most 0" is 0.
    if low == -inf and high == np.nanmin(values):
        low = high
    elif high == inf and low == np.nanmax(values):
        high = low
    if low == -inf:
        what = f"at most {_number(high, decimals)}"
    elif high == inf:
        what = f"at least {_number(low, decimals)}"
    elif low == high:
        what = _number(low, decimals)
    else:
        what = f"{_number(low, decimals)} to {_number(high, decimals)}"
        beyond = values[~inside]
        if min((beyond < low).mean(), (beyond > high).mean()) >= BOTH_SIDES:
            what += f", {_number(high - low, decimals)} wide"
    with np.errstate(invalid="ignore"):
        return _Rule(f"{column.name} {what}", (values >= low) & (values <= high))


def _best_time(column: Original, inside: Mask, weight: float) -> _Rule | None:
    """Since, until or from one moment to another, each as it is printed."""
    values, tell = column.values.astype(np.float64), column.moments()
    inner = np.quantile(values[inside & ~np.isnan(values)], np.linspace(0.0, 1.0, ENDS))
    grain = DAY if column.has_dates else _grain(float(np.ptp(inner)))
    lows = np.unique(np.append(-inf, np.floor(inner / grain) * grain))
    highs = np.unique(np.append(inf, np.ceil(inner / grain) * grain))[::-1]
    low, high = _widest_gain(values, inside, weight, (lows, highs))
    if low == -inf and high == inf:
        return None
    if low == -inf:
        what = f"until {tell(high)}"
    elif high == inf:
        what = f"since {tell(low)}"
    else:
        what = " to ".join(dict.fromkeys((tell(low), tell(high))))
    with np.errstate(invalid="ignore"):
        return _Rule(f"{column.name} {what}", (values >= low) & (values <= high))


def _grain(wide: float) -> float:
    """Seconds to which moments that lie so far apart are told."""
    return next((each for each in (DAY, 3600.0, 60.0) if wide > ENDS * each), 1.0)


def _best_phase(column: Original, inside: Mask, weight: float) -> _Rule | None:
    """An interval on a circle: cut where the rows have their largest gap, it is one of a line."""
    values, period = column.values.astype(np.float64), column.period or 1.0
    grain = DAY if column.has_dates else GRAIN[column.kind]
    own = np.unique(values[inside & ~np.isnan(values)])
    gaps = np.diff(np.append(own, own[0] + period))
    start = floor(float(own[(int(np.argmax(gaps)) + 1) % own.size]) / grain) * grain
    turned = (values - start) % period
    inner = np.quantile(turned[inside & ~np.isnan(values)], np.linspace(0.0, 1.0, ENDS))
    lows = np.unique(np.floor(inner / grain) * grain)
    highs = np.unique(np.minimum(np.ceil(inner / grain) * grain, period))
    low, high = _widest_gain(turned, inside, weight, (lows, highs))
    if high - low >= period:
        return None
    tell = column.moments()
    ends = dict.fromkeys(tell((each + start) % period) for each in (low, high))
    with np.errstate(invalid="ignore"):
        return _Rule(f"{column.name} {' to '.join(ends)}", (turned >= low) & (turned <= high))


def _widest_gain(
    values: NDArray[np.float64],
    inside: Mask,
    weight: float,
    ends: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> tuple[float, float]:
    """The interval between ends that tells most; of equals the one open where it can be."""
    lows, highs = ends
    own, rest = _below(values[inside], ends), _below(values[~inside], ends)
    within, without = (
        np.maximum(high[None, :] - low[:, None], 0) / size
        for (low, high), size in ((own, inside.sum()), (rest, (~inside).sum()))
    )
    best = int(np.argmax(_shared(within, without, weight)))
    at, to = divmod(best, len(highs))
    return float(lows[at]), float(highs[to])


def _below(
    values: NDArray[np.float64], ends: tuple[NDArray[np.float64], NDArray[np.float64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many values lie below each low end, and how many not above each high one."""
    ordered = np.sort(values[~np.isnan(values)])
    return np.searchsorted(ordered, ends[0], "left"), np.searchsorted(ordered, ends[1], "right")


def _ends(
    inner: NDArray[np.float64], decimals: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where intervals may begin and end: quantiles, rounded outwards to the digits shown."""
    step = 10.0 ** abs(decimals)
    if decimals < 0:
        lows, highs = np.floor(inner / step) * step, np.ceil(inner / step) * step
    else:
        lows, highs = np.floor(inner * step) / step, np.ceil(inner * step) / step
    return np.unique(np.append(-inf, lows)), np.unique(np.append(inf, highs))[::-1]


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
    return f"{value:.{max(decimals, 0)}f}"


def _percent(share: float) -> str:
    if 0.0 < share < 0.005:
        return "<1 %"
    if 0.995 <= share < 1.0:
        return ">99 %"
    return f"{share:.0%}".replace("%", " %")
