"""Which family suits rows of numbers: the one that predicts other rows better.

Two families are tried on most of a sample and predict the rest of it: ``gaussian``, whose clusters
have any covariance, and ``diagonal``, whose features are independent inside a cluster. The latter
has to win clearly: on a few hundred rows it may win by a little because a full covariance is not
yet known, and on all of them lose.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from weald.mcmc.estimate.evidence import Gain
from weald.mcmc.settings import FitSettings

from .fit import run_chain
from .held_out import held_out_densities
from .preparation import too_far
from .resolution import within_resolution

__all__ = ["FULL", "INDEPENDENT", "Choice", "choose_family"]

FULL, INDEPENDENT = "gaussian", "diagonal"
# Rows that are looked at, of which a quarter is predicted, and sweeps of each trial.
_MOST_ROWS = 800
_FEWEST_ROWS = 60
_SWEEPS = 40
# Seconds of each trial at most, on hundreds of columns; else it takes a second or two.
_SECONDS = 20.0
# Standard errors by which the simpler family has to win.
_CLEAR = 3.0


class Choice(NamedTuple):
    """A family, and why it was chosen, in one sentence."""

    family: str
    reason: str


def choose_family(
    values: NDArray[np.float64],
    settings: FitSettings,
    clock: Callable[[], float],
    n_threads: int = 1,
    seconds: float | None = None,
) -> Choice:
    """Choose for rows (n, d); ``settings`` are those of the fit, whatever family they name.

    A function of rows and seed: two chains of 40 sweeps on 600 rows at most. One that takes more
    than so many ``seconds`` of ``clock`` (20 by default) for that stops there, which the reason
    says. With two threads they run side by side.
    """
    seconds = _SECONDS if seconds is None else seconds
    n, d = values.shape
    if not np.isfinite(values).all():
        return Choice(INDEPENDENT, "values are missing, which gaussian does not take")
    if d == 1 or n < _FEWEST_ROWS or settings.params:
        few = "there is only one row" if n == 1 else f"there are only {n} rows"
        why = "there is one column" if d == 1 else few
        return Choice(FULL, "its parameters were given" if settings.params else why)
    order = Generator(PCG64(settings.seed)).permutation(n)[:_MOST_ROWS]
    held = order.size // 4
    # On the grid that values lie on, the narrower clusters would win.
    rows = within_resolution(values[order])
    # Of a heavy tail, what the table holds may be too far for the few rows that are seen here.
    near = ~np.asarray(too_far(rows, rows[held:]).any(axis=1))
    seen, others = rows[held:][near[held:]], rows[:held][near[:held]]
    held = len(others)

    sweeps = []

    def density(family: str) -> NDArray[np.float64]:
        trial = replace(settings, family=family, iterations=_SWEEPS, seconds=seconds, chains=1)
        trial = replace(trial, kernels=("auto",), keep_labels=False)
        trace = run_chain(seen, trial, 0, clock)
        sweeps.append(len(trace.log_joint))
        return held_out_densities(seen, others, [trace])

    # Kernels release the interpreter lock.
    with ThreadPoolExecutor(n_threads) as pool:
        independent, full = pool.map(density, (INDEPENDENT, FULL))
    gain = independent - full
    error = float(gain.std(ddof=1)) / held**0.5
    mean = float(gain.mean())
    best, other = (INDEPENDENT, FULL) if mean > _CLEAR * error else (FULL, INDEPENDENT)
    ahead = mean if best == INDEPENDENT else -mean
    short = ""
    if min(sweeps) < _SWEEPS:
        short = f", after {min(sweeps)} of {_SWEEPS} sweeps, as {seconds:.3g} seconds were over"
    word = "better" if ahead > 0.0 else "as well"
    return Choice(
        best,
        f"it predicts {held} of {held + len(seen)} rows {word} than {other} does"
        f" ({Gain(ahead, error)})".replace("as well than", "as well as")
        + short,
    )
