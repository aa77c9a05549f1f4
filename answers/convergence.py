"""R-hat and effective sample sizes, by ArviZ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .report_data import Chains

__all__ = ["FEWEST_DRAWS", "diagnose"]

# ArviZ splits each chain in two and asks for four draws in each half.
FEWEST_DRAWS = 8


def diagnose(chains: Chains) -> list[dict[str, Any]]:
    """Return a row for each number followed: mean, R-hat, effective sample sizes.

    R-hat is rank-normalised and split; both it and the effective sample sizes are those of Vehtari
    et al. (2021). A number that never changed has none. Empty where the iterations are not draws
    of one posterior, or are too few.

    Raises
    ------
    ImportError
        Where ArviZ is missing; names the extra that brings it.
    """
    if not chains.stationary:
        return []
    from weald.stream.estimators.inference_data import library

    arviz = library()
    rows = []
    for name, values in chains.values.items():
        drawn = np.asarray(values, dtype=np.float64)[:, chains.burnt :]
        drawn = drawn[:, np.isfinite(drawn).all(axis=0)]
        if drawn.shape[1] < FEWEST_DRAWS:
            continue
        moved = bool(np.ptp(drawn) > 0.0)
        rows.append(
            {
                "name": name,
                "mean": float(drawn.mean()),
                "sd": float(drawn.std()),
                "r_hat": float(arviz.rhat(drawn)) if moved else math.nan,
                "ess_bulk": float(arviz.ess(drawn, method="bulk")) if moved else math.nan,
                "ess_tail": float(arviz.ess(drawn, method="tail")) if moved else math.nan,
            }
        )
    return rows
