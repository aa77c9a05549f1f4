"""Families whose features have a mean of their own, above 0: counts and amounts."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .base import FeatureSummary, n_observed
from .checks import positive

__all__ = ["prior_of_counts", "summaries_of_means"]

Vector = NDArray[np.float64]


def prior_of_counts(
    parameters: Mapping[str, object], sample: NDArray[np.float64]
) -> tuple[Vector, Vector]:
    """Shape and rate (d each) of a gamma prior of mean counts, as given or from a sample (n, d).

    What is not given says that means are exponential around the sample's own.
    """
    d, seen = sample.shape[1], np.isfinite(sample)
    total = np.where(seen, sample, 0.0).sum(axis=0)
    shape = positive("shape", parameters.get("shape", 1.0), d)
    rate = shape * (seen.sum(axis=0) + 1.0) / (total + 1.0)
    return shape, positive("rate", parameters.get("rate", rate), d)


def summaries_of_means(
    row: Vector,
    names: Sequence[str],
    kind: str,
    sums: tuple[Vector, Vector],
    prior: Vector,
    spread: Callable[[Vector], Vector],
) -> list[FeatureSummary]:
    """Describe a cluster by the means of its features.

    Parameters
    ----------
    row:
        Its statistics row.
    names, kind:
        Of the features (d), and what each is.
    sums:
        Weights of the observed values, and sums of these (d each).
    prior:
        Means where nothing was observed (d).
    spread:
        The standard deviation of values whose means these are (d).
    """
    weights, totals = sums
    counts = [n_observed(row, weight) for weight in weights]
    seen = np.array(counts) > 0
    means = np.where(seen, totals / np.where(seen, weights, 1.0), prior)
    return [
        FeatureSummary(name, kind, float(mean), float(wide) if n else None, n)
        for name, mean, wide, n in zip(names, means, spread(means), counts, strict=True)
    ]
