"""What a chain's mean is known to, from the spread of its batches."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["batch_means"]


def batch_means(values: NDArray[Any], n_batches: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean of a chain (n, ...) over its draws, and its standard error from so many batches."""
    batches = values.reshape(n_batches, -1, *values.shape[1:]).mean(axis=1)
    return batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(n_batches)
