"""Whole numbers that are seen by their logarithm, moved about as far as they are rounded.

Their logarithms lie on no even grid, and each of the small ones would be a cluster of its own, too.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.offline.resolution import Moves, moved, moved_about, whole_steps
from weald.stream.record.fields.originals import unscaled
from weald.stream.record.schema import Scaling, Schema

__all__ = ["LogMoves", "moved_before_logarithms"]

Values = NDArray[np.float64]


class LogMoves(NamedTuple):
    """How such numbers are moved, as `resolution` has it for others.

    Attributes
    ----------
    step : ndarray of float64, shape (d,)
        To which they are known, in the units that came in; 0 of columns that stay.
    scaling : Scaling
        Of the schema.
    """

    step: Values
    scaling: Scaling

    @classmethod
    def of(cls, schema: Schema, values: Values) -> Self | None:
        """What observations (n, d), as the schema reads them, say; None where nothing moves."""
        scaling = schema.scaling
        if scaling is None or not scaling.log.any():
            return None
        step = np.where(scaling.log, whole_steps(unscaled(schema, values)), 0.0)
        return cls(step, scaling) if step.any() else None

    def steps(self, values: Values) -> Values:
        """The steps (n, d) of observations, in their own units.

        As wide as half a step up: half a step below 0 may have no logarithm.
        """
        at = np.flatnonzero(self.step)
        spread = self.scaling.spread[at]
        logarithm = values[:, at] * spread + self.scaling.center[at]
        found = np.zeros_like(values)
        found[:, at] = 2.0 * np.log1p(0.5 * self.step[at] * np.exp(-logarithm)) / spread
        return found

    def variance(self, centre: Values) -> Values:
        """Of the moves (d) of observations about this one (d)."""
        return Moves(self.steps(centre[None])[0]).variance()

    def moved(self, values: Values, seqs: NDArray[np.int64], seed: int) -> Values:
        """Observations (n, d) of these numbers (n) in a stream of such a seed."""
        return moved(values, Moves(self.steps(values)), seqs, seed)


def moved_before_logarithms(schema: Schema, values: Values) -> tuple[Values, LogMoves | None]:
    """Observations (n, d) moved as they say themselves, as those of a stream are, and how."""
    before = LogMoves.of(schema, values)
    return values if before is None else moved_about(values, before.steps(values)), before
