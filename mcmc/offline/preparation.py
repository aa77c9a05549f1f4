"""What the columns of a table say: nothing, what others say, or more by their logarithms.

Columns with one value, and columns that repeat another but for their unit, say nothing and are
left out.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Informative", "informative_columns", "skewed_columns"]

Values = NDArray[np.float64]

_REPEATED = 1.0 - 1e-10
# Correlations of more columns than these are not looked at.
_MOST_COMPARED = 2000
_SKEWED = 2.0


class Informative(NamedTuple):
    """Columns that say something, those of one value, and pairs (column, the one it repeats)."""

    kept: NDArray[np.int64]
    constant: list[int]
    repeated: list[tuple[int, int]]


def informative_columns(values: Values) -> Informative:
    """Which columns of observations (n, d) say something; of those with NaN, which vary."""
    # A column of NaN alone has no least and no largest value.
    least = np.where(np.isnan(values), np.inf, values).min(axis=0)
    most = np.where(np.isnan(values), -np.inf, values).max(axis=0)
    varying = np.flatnonzero(most > least)
    constant = np.setdiff1d(np.arange(values.shape[1]), varying).tolist()
    repeated: list[tuple[int, int]] = []
    if 1 < varying.size <= _MOST_COMPARED and not np.isnan(values).any():
        alike = np.abs(np.corrcoef(values[:, varying], rowvar=False)) > _REPEATED
        first = alike.argmax(axis=1)
        repeated = [(int(varying[at]), int(varying[of])) for at, of in enumerate(first) if of < at]
    kept = np.setdiff1d(varying, [column for column, _ in repeated])
    return Informative(kept, constant, repeated)


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
