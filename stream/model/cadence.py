"""The cadence of refinement and publication as a row of numbers, which a saved model holds."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.settings import RefinementSettings

__all__ = ["cadence_of", "cadence_row"]

_MODES: tuple[Literal["inline", "workers"], ...] = ("inline", "workers")


def cadence_row(cadence: RefinementSettings) -> NDArray[np.int64]:
    """Say a cadence in numbers."""
    counts = (cadence.every_records, cadence.publish_every_records, cadence.rounds)
    return np.array([*counts, _MODES.index(cadence.mode)], dtype=np.int64)


def cadence_of(row: NDArray[Any], kernels: str) -> RefinementSettings:
    """Undo `cadence_row`, for a stream that these kernels refine."""
    every, publish_every, rounds, mode = row.tolist()
    return RefinementSettings(every, publish_every, rounds, _MODES[mode], kernels=kernels)
