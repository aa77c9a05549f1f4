"""What a Gaussian fit sees of a table: which columns, and along which axes.

Columns with one value, and columns that repeat another but for their unit, say nothing and are
left out. Of more than 16 columns a cluster's covariance would have more numbers than its rows can
tell, so rows are seen along their principal components. Columns of like spread (pixels, scores of
components) keep their units there, as their spread says how much they matter; others are
standardised.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from weald.treecore.family.gaussian.robust_spread import without_extremes

__all__ = ["Components", "Informative", "informative_columns", "most_columns", "skewed_columns"]

Values = NDArray[np.float64]

# Columns that are looked at as they are.
_MOST_COLUMNS = 16
# The axes hold so much of the variance, within bounds on their number. Held-out density would take
# all there are: it rises with every axis on each of the seven tables that this was set on.
_SHARE, _FEWEST, _MOST = 0.9, 8, 20
_ROWS_AN_AXIS = 10
# Rows from which axes are learned.
_MOST_ROWS = 20_000
# No column of like ones is spread so many times as widely as the middle one.
_LIKE = 2.0
# Where so many columns are no wider than the one before, they are scores of components.
_FALLING = 0.8
_REPEATED = 1.0 - 1e-10
# Correlations of more columns than these are not looked at.
_MOST_COMPARED = 2000
_SKEWED = 2.0


def most_columns() -> int:
    """Columns above which rows are seen along their principal components."""
    return _MOST_COLUMNS


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


class Components(NamedTuple):
    """Axes through a table, and how its columns are measured along them.

    Attributes
    ----------
    mean, scale:
        What is taken from each column (d), and what it is then divided by.
    axes:
        Orthonormal directions (d, q), that of most variance first.
    share:
        Share of the variance along them.
    """

    mean: Values
    scale: Values
    axes: Values
    share: float

    @classmethod
    def of(cls, values: Values, n_axes: int | None = None) -> Self:
        """Principal components of observations (n, d), ``n_axes`` of them or by the rule.

        A few absurd rows do not turn them.
        """
        n, d = values.shape
        rows = np.linspace(0, n - 1, min(n, _MOST_ROWS)).astype(np.int64)
        seen = without_extremes(values[rows])
        mean, spread = seen.mean(axis=0), seen.std(axis=0)
        spread[spread == 0.0] = 1.0
        middle = float(np.median(spread))
        falling = float(np.mean(np.diff(spread) <= 0.0)) if d > 1 else 0.0
        like = spread.max() < _LIKE * middle or falling > _FALLING
        scale = np.full(d, middle) if like else spread
        off = (seen - mean) / scale
        if d <= rows.size:
            variance, axes = np.linalg.eigh(off.T @ off)
            variance, axes = variance[::-1], axes[:, ::-1]
        else:
            _, root, across = np.linalg.svd(off, full_matrices=False)
            variance, axes = root**2, across.T
        share = np.cumsum(variance) / variance.sum()
        if n_axes is None:
            most = max(min(_MOST, n // _ROWS_AN_AXIS), 2)
            n_axes = min(max(int(np.searchsorted(share, _SHARE)) + 1, _FEWEST), most)
        n_axes = min(n_axes, axes.shape[1])
        return cls(mean, scale, np.ascontiguousarray(axes[:, :n_axes]), float(share[n_axes - 1]))

    def along(self, values: Values) -> Values:
        """Where observations (n, d) are along the axes (n, q)."""
        return np.ascontiguousarray((values - self.mean) / self.scale @ self.axes)
