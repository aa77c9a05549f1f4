"""How wide the bulk of a sample is, whatever a few absurd rows say.

A column's spread is the distance between its quantiles .05 and .95, as a normal law's standard
deviation; where that is zero (most values are the same), the standard deviation itself. What is
over five spreads away from a column's median counts as five: one value of 10^4 among 300 ordinary
ones would set the location and covariance that base measures are made of.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["spread_of", "without_extremes"]

Values = NDArray[np.float64]

# Of a normal law, in standard deviations.
_BETWEEN_QUANTILES = 3.289707253902945
_FARTHEST = 5.0


def spread_of(values: Values) -> Values:
    """Spread (d) of the columns of a sample (n, d), NaN left out; 1 where all is the same."""
    low, high = np.nanquantile(values, (0.05, 0.95), axis=0)
    spread = (high - low) / _BETWEEN_QUANTILES
    flat = ~(spread > 0.0)
    spread[flat] = np.nanstd(values[:, flat], axis=0)
    return np.asarray(np.where(spread > 0.0, spread, 1.0))


def without_extremes(values: Values) -> Values:
    """A sample (n, d) with what is far from its column's median moved to five spreads from it."""
    if values.shape[0] == 0:
        return values
    middle, reach = np.nanmedian(values, axis=0), _FARTHEST * spread_of(values)
    return np.asarray(np.clip(values, middle - reach, middle + reach))
