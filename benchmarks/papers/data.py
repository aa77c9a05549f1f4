"""Where the real data sets lie: the folder that ``WEALD_DATA`` names, else ``../shared/data``."""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["DATA", "observations"]

DATA = Path(os.environ.get("WEALD_DATA", "../shared/data"))


def observations(name: str) -> NDArray[np.float64]:
    """The rows (n, d) of a stored table."""
    with np.load(DATA / name) as held:
        return np.asarray(held["X"], dtype=np.float64)
