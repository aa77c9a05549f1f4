"""What the columns of a table say: nothing, what others say, or more by their logarithms.

Columns with one value say nothing. What repeats another but for its unit, or is a sum of others
(with any weights, and a constant), says what these say: it would count twice, and no cluster
would have a covariance that can be inverted.
"""

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.family.gaussian.robust_spread import spread_of

__all__ = [
    "FARTHEST",
    "Informative",
    "informative_columns",
    "skewed_columns",
    "too_far",
    "values_apart",
    "without_absurd",
]

Values = NDArray[np.float64]

_REPEATED = 1.0 - 1e-10
_NOTHING_OWN, _ROWS_A_COLUMN, _OFTEN = 1e-10, 2, 10
# Correlations of more columns than these are not looked at.
_MOST_COMPARED = 2000
_SKEWED = 2.0
_ABSURD, _FEW_ABSURD = 30.0, 0.05
# Spreads from a column's median beyond which a number would cost the others their digits in sums.
# Families refuse one a million widths of a cluster away: these may be far below a spread.
FARTHEST = 1e4
# Of a value apart: share of the rows that have it, steps between others, how much nearer these are.
_OFTEN_APART, _FEWEST_STEPS, _STEPS_APART = 0.05, 10, 3.0


class Informative(NamedTuple):
    """Columns that say something, and others.

    Attributes
    ----------
    kept:
        Those that say something.
    constant:
        Those of one value.
    repeated:
        Pairs (column, the one it repeats).
    combined:
        Those that are sums of columns before them.
    """

    kept: NDArray[np.int64]
    constant: list[int]
    repeated: list[tuple[int, int]]
    combined: list[int]


def informative_columns(values: Values) -> Informative:
    """Which columns of observations (n, d) say something; of those with NaN, which vary."""
    # A column of NaN alone has no least and no largest value.
    least = np.where(np.isnan(values), np.inf, values).min(axis=0)
    most = np.where(np.isnan(values), -np.inf, values).max(axis=0)
    varying = np.flatnonzero(most > least)
    constant = np.setdiff1d(np.arange(values.shape[1]), varying).tolist()
    repeated: list[tuple[int, int]] = []
    combined: list[int] = []
    if 1 < varying.size <= _MOST_COMPARED and not np.isnan(values).any():
        rows = without_absurd(values[:, varying])
        # Two columns that are seldom anything but zero may well be so in the same few rows.
        often = max(min(_OFTEN, len(rows) // 2), 1)
        firm = np.flatnonzero((rows != np.median(rows, axis=0)).sum(axis=0) >= often)
        compared = varying[firm]
        unit = rows[:, firm] - rows[:, firm].mean(axis=0)
        unit /= np.sqrt((unit**2).sum(axis=0))
        first = (np.abs(unit.T @ unit) > _REPEATED).argmax(axis=1)
        repeated = [
            (int(compared[at]), int(compared[of])) for at, of in enumerate(first) if of < at
        ]
        others = np.flatnonzero(first >= np.arange(first.size))
        # Few rows are a sum of many columns by chance.
        if len(rows) >= _ROWS_A_COLUMN * others.size:
            # What each column has that those before it do not.
            own = np.diag(np.linalg.qr(unit[:, others], mode="r")) ** 2
            combined = compared[others[own < _NOTHING_OWN]].tolist()
    kept = np.setdiff1d(varying, [column for column, _ in repeated] + combined)
    return Informative(kept, constant, repeated, combined)


def without_absurd(values: Values) -> Values:
    """Rows (n, d) without those few that are absurd: 30 spreads or more from a column's median.

    One of them would say how far apart clusters lie, or make all columns alike. Where more than a
    twentieth of the rows are so far away, that is what the data are like, and all stay.
    """
    if not len(values):
        return values
    reach = _ABSURD * spread_of(values)
    with np.errstate(invalid="ignore"):
        absurd = (np.abs(values - np.nanmedian(values, axis=0)) >= reach).any(axis=1)
    return values if absurd.mean() > _FEW_ABSURD else values[~absurd]


def too_far(values: Values, among: Values | None = None) -> NDArray[np.bool_]:
    """Which numbers (n, d) no family of numbers takes beside the others of their columns.

    These are ``among`` (m, d), by default the values themselves.
    """
    others = values if among is None else among
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        # Of a column of gaps alone.
        warnings.simplefilter("ignore", RuntimeWarning)
        far = np.abs(values - np.nanmedian(others, axis=0)) > FARTHEST * spread_of(others)
    return np.asarray(far)


def values_apart(values: Values) -> dict[int, float]:
    """Columns of observations (n, d) with one value at their edge that no other comes near.

    It is the least or the largest of a column of numbers, one row in twenty has it, and it is three
    times as far from the next as nine tenths of the others are from theirs: 0 or -1 often says that
    nothing is known. Returns it by column.
    """
    found = {}
    for c in range(values.shape[1]):
        seen, counts = np.unique(values[:, c], return_counts=True, equal_nan=True)
        finite = np.isfinite(seen)
        seen, counts = seen[finite], counts[finite]
        steps = np.diff(seen)
        for edge, rest in ((0, steps[1:]), (-1, steps[:-1])):
            if rest.size < _FEWEST_STEPS or counts[edge] < _OFTEN_APART * counts.sum():
                continue
            if steps[edge] > _STEPS_APART * np.quantile(rest, 0.9):
                found[c] = float(seen[edge])
    return found


def skewed_columns(values: Values) -> NDArray[np.int64]:
    """Columns above zero, none missing, with a heavy right tail that a logarithm would mend."""
    positive = np.flatnonzero((values > 0.0).all(axis=0))
    logs = np.log(values[:, positive])
    skewed, mended = _skewness(values[:, positive]), _skewness(logs)
    return positive[(skewed > _SKEWED) & (2.0 * np.abs(mended) < skewed)]


def _skewness(values: Values) -> Values:
    off = values - values.mean(axis=0)
    spread = off.std(axis=0)
    # Of one value, or nearly: rounding is no skewness.
    spread[spread <= 1e-9 * np.abs(values).max(axis=0)] = np.inf
    return np.asarray(((off / spread) ** 3).mean(axis=0))
