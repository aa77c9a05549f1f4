"""Whether to believe a fit: agreement of its chains, and how well it predicts other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weald.stream.publication.predictive import Predictive
from weald.treecore.family.totals import totals_of_groups

from .convergence import diagnose
from .errors import UnsuitableError
from .report_data import Chains

if TYPE_CHECKING:
    from weald.mcmc.offline.fit import FitResult

__all__ = ["chains_of", "diagnostics", "held_out_density"]

# Draws that predict: more change the mean density by less than its standard error.
_DRAWS = 50


def chains_of(result: FitResult) -> Chains:
    """The numbers that a fit's chains followed, cut to the shortest chain."""
    n = min(len(trace.log_joint) for trace in result.traces)

    def stacked(values: list[list[float]]) -> NDArray[np.float64]:
        return np.array([each[:n] for each in values], dtype=np.float64)

    traces = result.traces
    values = {
        "log joint": stacked([trace.log_joint for trace in traces]),
        "clusters": stacked([[float(k) for k in trace.n_clusters] for trace in traces]),
        "sum of squared shares": stacked([trace.sum_of_squares for trace in traces]),
        "pairs together": stacked([trace.together for trace in traces]),
    }
    for name in traces[0].hyper:
        learned = stacked([trace.hyper[name] for trace in traces])
        if np.ptp(learned) > 0.0:
            values[name] = learned
    exact = all(kernel.flag != "approximate" for kernel in result.kernels)
    return Chains("iteration", values, burnt=n // 2, stationary=exact)


def diagnostics(result: FitResult) -> list[dict[str, Any]]:
    """R-hat and effective sample sizes of the second halves; empty without exact draws."""
    return diagnose(chains_of(result))


def held_out_density(
    values: NDArray[np.float64], test: NDArray[np.float64], result: FitResult
) -> dict[str, float]:
    """How probable other rows are to the fit, by the mean of its draws' predictive densities.

    Returns ``n``, ``mean_log_density`` of a row in nats, and its standard error over the rows.

    ``values`` (n, d) were fitted, ``test`` (q, d) were not.

    Raises UnsuitableError where the fit has no draws of exact kernels, and ObservationError for a
    row that the family cannot take.
    """
    drawn = [
        each
        for trace in result.traces
        for each in zip(trace.draws, trace.draw_priors, trace.draw_families, strict=True)
    ]
    if not drawn:
        raise UnsuitableError(
            "approximate kernels have no draws to predict other rows by: use an exact one"
        )
    chosen = np.unique(np.linspace(0, len(drawn) - 1, _DRAWS).astype(int))
    log_densities = np.stack([_log_densities(values, test, drawn[at]) for at in chosen])
    mean = np.logaddexp.reduce(log_densities, axis=0) - np.log(len(chosen))
    error = mean.std(ddof=1) / np.sqrt(mean.size) if mean.size > 1 else np.nan
    return {
        "n": int(mean.size),
        "mean_log_density": float(mean.mean()),
        "standard_error": float(error),
    }


def _log_densities(
    values: NDArray[np.float64],
    test: NDArray[np.float64],
    drawn: tuple[NDArray[np.int64], Any, Any],
) -> NDArray[np.float64]:
    labels, prior, family = drawn
    clusters = np.arange(int(labels.max()) + 1)
    totals = totals_of_groups(family, values, labels, clusters.size)
    log_joint = Predictive.of(family, prior, clusters, totals).log_joint(test)
    return np.asarray(np.logaddexp.reduce(log_joint, axis=1))
