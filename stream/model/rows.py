"""Rows on their way into the model."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["IncomingRows"]


class IncomingRows(NamedTuple):
    """Rows on their way into the model: values (n, d), times (n), and keys where they matter."""

    values: NDArray[np.float64]
    times: NDArray[np.float64]
    keys: Sequence[str | None] = ()

    def part(self, start: int, stop: int) -> "IncomingRows":
        """Rows from one number to another."""
        values, times, keys = self
        return IncomingRows(values[start:stop], times[start:stop], keys[start:stop])
