"""R-hat and effective sample sizes of chains: rank-normalised and split.

Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Bayesian Analysis 16, sections 3 and 4.
ArviZ has them too; importing it takes longer than most fits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from weald.answers.report_data import Chains

__all__ = [
    "AGREEING",
    "FEWEST_DRAWS",
    "LEAST_SIZE",
    "bulk_size",
    "diagnose",
    "may_be_quoted",
    "r_hat",
    "tail_size",
]

Draws = NDArray[np.float64]

# Each chain is split in two, and each half needs four draws.
FEWEST_DRAWS = 8
_TAILS = (0.05, 0.95)
# What they ask of a quantity that is quoted: R-hat, and effective sizes for each chain.
AGREEING, LEAST_SIZE = 1.01, 100


def diagnose(chains: Chains) -> list[dict[str, Any]]:
    """Return a row for each number followed: mean, R-hat, effective sample sizes.

    A number that never changed has none. Empty where the iterations are not draws of one
    posterior, or are too few.
    """
    if not chains.stationary:
        return []
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
                "r_hat": r_hat(drawn) if moved else math.nan,
                "ess_bulk": bulk_size(drawn) if moved else math.nan,
                "ess_tail": tail_size(drawn) if moved else math.nan,
            }
        )
    return rows


def may_be_quoted(row: Mapping[str, Any], n_chains: int) -> bool:
    """Whether a row of `diagnose` says that chains agree, and have draws enough."""
    sizes = row["ess_bulk"], row["ess_tail"]
    # One that never changed has none of them.
    return not (row["r_hat"] > AGREEING or min(sizes) < LEAST_SIZE * n_chains)


def r_hat(draws: Draws) -> float:
    """The larger of R-hat of location and of scale, of chains (c, n) with 8 draws at least."""
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves))
    return max(_plain_r_hat(_normal_scores(halves)), _plain_r_hat(_normal_scores(folded)))


def bulk_size(draws: Draws) -> float:
    """Effective sample size for the middle of the distribution, of chains (c, n)."""
    return _effective_size(_normal_scores(_split(draws)))


def tail_size(draws: Draws) -> float:
    """The least effective sample size for the quantiles .05 and .95, of chains (c, n)."""
    below = (_split(draws <= quantile) for quantile in np.quantile(draws, _TAILS))
    return min(_effective_size(each.astype(np.float64)) for each in below)


def _split(draws: NDArray[Any]) -> NDArray[Any]:
    """Each chain's two halves as chains; the middle draw of an odd number is left out."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: Draws) -> Draws:
    _, place, count = np.unique(draws, return_inverse=True, return_counts=True)
    # Equal draws share the mean of their ranks; scipy has this in a package slow to load.
    ranks = (np.cumsum(count) - 0.5 * (count - 1))[place].reshape(draws.shape)
    return np.asarray(ndtri((ranks - 0.375) / (draws.size + 0.25)))


def _plain_r_hat(draws: Draws) -> float:
    n = draws.shape[1]
    within = float(draws.var(axis=1, ddof=1).mean())
    between = float(draws.mean(axis=1).var(ddof=1))
    if within == 0.0:
        return math.inf if between > 0.0 else math.nan
    return math.sqrt((n - 1.0) / n + between / within)


def _autocovariances(draws: Draws) -> Draws:
    """Autocovariances (c, n) at every lag, over n each."""
    n = draws.shape[1]
    off = draws - draws.mean(axis=1, keepdims=True)
    # With zeros to a power of two, the end does not run into the beginning, and it is fast.
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(off, size, axis=1)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :n] / n)


def _effective_size(draws: Draws) -> float:
    """Draws over the sum of autocorrelations, by Geyer's initial monotone sequence of pairs."""
    c, n = draws.shape
    if np.ptp(draws) == 0.0:
        return float(draws.size)
    lags = _autocovariances(draws).mean(axis=0)
    within = lags[0] * n / (n - 1.0)
    total = lags[0] + (float(draws.mean(axis=1).var(ddof=1)) if c > 1 else 0.0)
    rho = 1.0 - (within - lags) / total
    rho[0] = 1.0
    last = max((n - 3) // 2, 0)
    pairs = rho[: 2 * last].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0.0)
    stop = int(negative[0]) if negative.size else last
    # Of the pair where the sum ends, what is surely signal.
    time = -1.0 + 2.0 * float(np.minimum.accumulate(pairs[:stop]).sum())
    time += max(float(rho[2 * stop]), 0.0)
    return draws.size / max(time, 1.0 / math.log10(draws.size))
