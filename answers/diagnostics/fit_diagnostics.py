"""Whether to believe a fit: whether it has settled, and how well it predicts other rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weald.answers.errors import UnsuitableError
from weald.answers.report_data import Chains
from weald.mcmc.estimate.agreement import share_alike
from weald.mcmc.estimate.consensus import consensus_partition
from weald.mcmc.estimate.groups import shared_groups
from weald.mcmc.offline.held_out import held_out_densities
from weald.treecore.prior.sequential import canonical_labels

from .convergence import AGREEING, diagnose
from .trust import NEARLY_SAME, SAME

if TYPE_CHECKING:
    from weald.mcmc.offline.fit import FitResult
    from weald.mcmc.offline.fit_groups import DrawnGroups

__all__ = [
    "chains_of",
    "diagnostics",
    "held_out_density",
    "is_settled",
    "settled_by_r_hat",
    "settled_in_words",
    "shares_alone",
]

# Draws that a run's own answer is told from, at least; rows that are compared, at most.
FEWEST_DRAWS, MOST_ROWS = 4, 5000

# R-hat of chains that nearly agree; effective draws that are enough (Vehtari et al. 2021).
NEARLY, ENOUGH = 1.1, 400


def chains_of(result: FitResult) -> Chains:
    """The numbers that the chains followed on which a fit rests, cut to the shortest chain."""
    traces = [result.traces[at] for at in result.trusted]
    n = min(len(trace.log_joint) for trace in traces)

    def stacked(values: list[list[float]]) -> NDArray[np.float64]:
        return np.array([each[:n] for each in values], dtype=np.float64)

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
    exact = all(kernel.claim != "approximate" for kernel in result.kernels)
    return Chains("iteration", values, burnt=n // 2, stationary=exact)


def diagnostics(result: FitResult) -> list[dict[str, Any]]:
    """R-hat and effective sample sizes of the second halves; empty without exact draws."""
    return diagnose(chains_of(result))


def shares_alone(drawn: DrawnGroups, grouped: NDArray[np.int64]) -> list[float]:
    """For each chain, or half of a lone one: share of the rows that it alone puts so, too.

    Of rows in groups (n), some thousand, evenly chosen. What one chain alone would show is told
    from its draws as the answer was from all of them, and its groups are matched to those that are
    shown, one to one. Empty where there are too few draws.
    """
    runs = drawn.places()
    if len(runs) == 1:
        middle = len(runs[0]) // 2
        runs = [runs[0][:middle], runs[0][middle:]]
    if min(map(len, runs), default=0) < FEWEST_DRAWS:
        return []
    n = grouped.size
    rows = np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(np.int64)
    found = []
    for run in runs:
        labels = [canonical_labels(drawn.runs[at][draw][1][rows]) for at, draw in run]
        alone = consensus_partition(np.stack(labels), "vi")
        own, _ = shared_groups(alone, drawn.of(run)[:, rows])
        found.append(share_alike(own[alone], grouped[rows]))
    return found


def is_settled(shares: Sequence[float]) -> bool:
    """Whether `shares_alone` tell that longer sampling would show the same groups."""
    return bool(shares) and min(shares) >= SAME


def settled_in_words(shares: Sequence[float], n_chains: int) -> str:
    """Say in one sentence what `shares_alone` tell: whether longer sampling would say the same."""
    if not shares:
        return "not known: too few draws; let it run longer"
    worst = min(shares)
    runs = f"each of {n_chains} runs" if n_chains > 1 else "each half of the run"
    share = "all rows" if worst == 1.0 else f"{np.floor(100.0 * worst):.0f} % of the rows or more"
    found = f"{runs} alone puts {share} into the same"
    if is_settled(shares):
        return f"yes: {found} groups"
    how = "nearly" if worst >= NEARLY_SAME else "no"
    return f"{how}: {found} groups; let it run longer"


def settled_by_r_hat(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say in one sentence what `diagnostics` tell of a chain whose draws are not at hand."""
    # As it is printed: 1.01 that is above 1.01 would make no sense.
    followed = [
        {**row, "r_hat": round(float(row["r_hat"]), 2)}
        for row in rows
        if not np.isnan(row["r_hat"])
    ]
    if not rows:
        return "not known: too few draws; let the chains run longer"
    if not followed:
        return "not known: nothing that was followed moved in every chain"
    worst = max(followed, key=lambda row: float(row["r_hat"]))
    fewest = min(followed, key=lambda row: float(row["ess_bulk"]))
    if worst["r_hat"] > AGREEING:
        how = "nearly" if worst["r_hat"] <= NEARLY else "no"
        return (
            f"{how}: chains differ in {worst['name']} (R-hat {worst['r_hat']:.2f}, above "
            f"{AGREEING}); let them run longer"
        )
    if fewest["ess_bulk"] < ENOUGH:
        return (
            f"nearly: {fewest['name']} has {fewest['ess_bulk']:.0f} effective draws, below "
            f"{ENOUGH}; let the chains run longer"
        )
    return (
        f"yes: R-hat is at most {AGREEING}, and there are {fewest['ess_bulk']:.0f} effective draws"
    )


def held_out_density(
    values: NDArray[np.float64], test: NDArray[np.float64], result: FitResult
) -> dict[str, float]:
    """How probable other rows are to the fit, by the mean of its draws' predictive densities.

    Returns ``n``, ``mean_log_density`` of a row in nats, and its standard error over the rows.

    ``values`` (n, d) were fitted, ``test`` (q, d) were not.

    Raises UnsuitableError where the fit has no draws of exact kernels, and ObservationError for a
    row that the family cannot take.
    """
    if not any(trace.draws for trace in result.traces):
        raise UnsuitableError(
            "approximate kernels have no draws to predict other rows by: use an exact one"
        )
    found = held_out_densities(values, test, [result.traces[at] for at in result.trusted])
    error = found.std(ddof=1) / np.sqrt(found.size) if found.size > 1 else np.nan
    return {
        "n": int(found.size),
        "mean_log_density": float(found.mean()),
        "standard_error": float(error),
    }
