"""What `auto` might try, and does not: spherical clusters, and priors pitman-yor and mfm.

    python -m benchmarks.untried spherical              on the tables that rules were set on
    python -m benchmarks.untried priors iris wine       on these

Both are compared by the log density of held-out rows, as `auto` compares ``gaussian`` and
``diagonal``: of 800 rows of a table of ``benchmarks.real`` a quarter is predicted by the others.

A spherical cluster has one variance for all columns, its own: mean given precision tau is
N(0, (kappa tau)^-1 I), tau ~ Gamma(shape, rate), and kappa, shape and rate are learned by random
walks; where shape grows, clusters share their scale. The better of two chains counts, from k-means
with 15 and with 40 clusters: 300 sweeps of Gibbs sampling, of which the second half predicts. Weald
has no such family, and chooses no prior: see ``docs/choosing.md``.
"""

import argparse
import time
import warnings
from dataclasses import replace
from math import lgamma, log, log1p, pi

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks.labelled_tables import TABLES, TUNED_ON
from benchmarks.real import prepared
from weald.mcmc.offline.chains import chains_for
from weald.mcmc.offline.fit import FitSettings, combine, run_chain
from weald.mcmc.offline.fit_groups import groups_of_fit
from weald.mcmc.offline.held_out import held_out_densities
from weald.mcmc.offline.resolution import within_resolution
from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.draw import choose

Values = NDArray[np.float64]

_MOST_ROWS = 800
_SWEEPS, _TRIAL = 300, 40
_STARTS = (15, 40)
_STEP, _STEPS = 0.3, 20


@compiled
def _log_marginal(row: Values, base: Values) -> float:
    """Log marginal of a cluster: ``row`` has its count, sums (d) and sum of squares."""
    n, d = row[0], row.size - 2
    kappa, shape, rate = base[0], base[1], base[2]
    scatter = row[-1] - (row[1:-1] ** 2).sum() / (kappa + n)
    power = shape + 0.5 * n * d
    value = lgamma(power) - lgamma(shape) - power * log1p(0.5 * max(scatter, 0.0) / rate)
    return value - 0.5 * n * d * log(2.0 * pi * rate) - 0.5 * d * log1p(n / kappa)


@compiled
def _sweep(
    rows: Values, labels: NDArray[np.int64], totals: Values, law: Values, rng: Generator
) -> None:
    """One Gibbs scan; ``law`` is kappa, shape, rate and alpha, and label n + 1 is never used."""
    n, base, alpha = rows.shape[0], law[:3], law[3]
    weights = np.empty(n + 1)
    marginal = np.array([_log_marginal(row, base) for row in totals])
    for i in range(n):
        old = labels[i]
        totals[old] -= rows[i]
        marginal[old] = _log_marginal(totals[old], base)
        empty = -1
        for k in range(n + 1):
            weights[k] = -np.inf
            if totals[k, 0] > 0.5 or empty < 0:
                size = totals[k, 0]
                if size < 0.5:
                    empty, size = k, alpha
                weights[k] = log(size) + _log_marginal(totals[k] + rows[i], base) - marginal[k]
        labels[i] = choose(rng, weights, n + 1)
        totals[labels[i]] += rows[i]
        marginal[labels[i]] = _log_marginal(totals[labels[i]], base)


def _predicted(totals: Values, law: Values, others: Values) -> Values:
    """Log density (q) of rows with statistics (q, m)."""
    clusters = np.concatenate([totals[totals[:, 0] > 0.5], np.zeros((1, totals.shape[1]))])
    weight = np.append(clusters[:-1, 0], law[3]) / (clusters[:, 0].sum() + law[3])
    joined = _log_marginals(clusters + others[:, None, :], law)
    return np.asarray(logsumexp(np.log(weight) + joined - _log_marginals(clusters, law), axis=1))


def _log_marginals(rows: Values, law: Values) -> Values:
    """As ``_log_marginal``, of an array of rows (..., m)."""
    kappa, shape, rate = law[:3]
    n, d = rows[..., 0], rows.shape[-1] - 2
    scatter = np.maximum(rows[..., -1] - (rows[..., 1:-1] ** 2).sum(axis=-1) / (kappa + n), 0.0)
    power = shape + 0.5 * n * d
    value = gammaln(power) - gammaln(shape) - power * np.log1p(0.5 * scatter / rate)
    return np.asarray(
        value - 0.5 * n * d * np.log(2.0 * np.pi * rate) - 0.5 * d * np.log1p(n / kappa)
    )


def _learned(totals: Values, law: Values, n: int, rng: Generator) -> Values:
    """Kappa, shape and rate by random walks on their logarithms, alpha by an auxiliary variable."""
    clusters = totals[totals[:, 0] > 0.5]

    def log_joint(logs: Values) -> float:
        weak = 0.5 * ((logs[0] / 5.0) ** 2 + (logs[1] / 3.0) ** 2)
        return float(_log_marginals(clusters, np.exp(logs)).sum() - weak)

    logs = np.log(law[:3])
    now = log_joint(logs)
    for _ in range(_STEPS):
        # Shape and rate also move together, which keeps the scale.
        which = ([0], [1], [2], [1, 2])[rng.integers(4)]
        tried = logs.copy()
        tried[which] += _STEP * rng.normal()
        then = log_joint(tried)
        if log(rng.random()) < then - now:
            logs, now = tried, then
    k = len(clusters)
    spread = 1.0 - log(rng.beta(law[3] + 1.0, n))
    more = rng.random() * (n * spread + k) < k
    return np.append(np.exp(logs), rng.gamma(k + float(more), 1.0 / spread))


def spherical(seen: Values, others: Values) -> tuple[Values, float]:
    """Log densities (q) of other rows, and the mean number of clusters, of the better chain."""
    # As finely as values are known: a cluster may become no narrower than the grid they lie on.
    seen = within_resolution(seen)
    mean = seen.mean(axis=0)
    own, asked = (_statistics(values - mean) for values in (seen, others))
    found = [_chain(own, asked, KMeans(k, n_init=1, random_state=0), seen) for k in _STARTS]
    return max(found, key=lambda each: float(each[0].mean()))


def _statistics(values: Values) -> Values:
    return np.column_stack([np.ones(len(values)), values, (values**2).sum(axis=1)])


def _chain(rows: Values, others: Values, start: KMeans, seen: Values) -> tuple[Values, float]:
    n = len(rows)
    rng = Generator(PCG64(0))
    labels = start.fit_predict(seen).astype(np.int64)
    totals = np.zeros((n + 1, rows.shape[1]))
    np.add.at(totals, labels, rows)
    law = np.array([0.3, 3.0, float(seen.var(axis=0).mean()), 1.0])
    drawn, counts = [], []
    for sweep in range(_SWEEPS):
        _sweep(rows, labels, totals, law, rng)
        law = _learned(totals, law, n, rng)
        if sweep >= _SWEEPS // 2 and sweep % 3 == 0:
            drawn.append(_predicted(totals, law, others))
            counts.append(int((totals[:, 0] > 0.5).sum()))
    return np.asarray(logsumexp(drawn, axis=0) - log(len(drawn))), float(np.mean(counts))


def _halves(values: Values) -> tuple[Values, Values]:
    """Rows to fit and rows to predict, as ``auto`` parts them."""
    order = Generator(PCG64(0)).permutation(len(values))[:_MOST_ROWS]
    held = order.size // 4
    return values[order[held:]], values[order[:held]]


def _gain(one: Values, other: Values) -> str:
    off = one - other
    return f"{off.mean():+.3f} +- {off.std(ddof=1) / np.sqrt(off.size):.3f}"


def _trial(seen: Values, others: Values, settings: FitSettings) -> tuple[Values, int]:
    trace = run_chain(seen, replace(settings, iterations=_TRIAL), 0, time.perf_counter)
    return held_out_densities(seen, others, [trace]), trace.n_clusters[-1]


def of_spherical(name: str, values: Values) -> str:
    """How much better spherical clusters predict than those of the two families do."""
    seen, others = _halves(values)
    full, _ = _trial(seen, others, FitSettings())
    diagonal, _ = _trial(seen, others, FitSettings(family="diagonal"))
    found, k = spherical(seen, others)
    return (
        f"{name:16} spherical ({k:.0f} clusters) over gaussian {_gain(found, full)}, over "
        f"diagonal {_gain(found, diagonal)}"
    )


def of_priors(name: str, values: Values, others: Values, digits: NDArray[np.int64]) -> str:
    """How much better two priors predict than dp does, and what fits find."""
    parts = _halves(values)
    first, _ = _trial(*parts, FitSettings())
    told = [f"{name:16}"]
    for prior in ("dp", "pitman-yor", "mfm"):
        gain = "" if prior == "dp" else _gain(_trial(*parts, FitSettings(prior=prior))[0], first)
        settings = FitSettings(prior=prior, chains=chains_for(*values.shape))
        traces = [
            run_chain(values, settings, at, time.perf_counter) for at in range(settings.chains)
        ]
        result = combine(settings, traces, values)
        clusters = result.labels.astype(np.int64)
        groups = groups_of_fit(result, values).group[clusters]
        density = held_out_densities(values, others, [traces[at] for at in result.trusted])
        levels = [f"{adjusted_rand_score(digits, each):.2f}" for each in (clusters, groups)]
        told.append(f"{prior} {gain} (fit {density.mean():.2f}, index {' '.join(levels)})")
    return "  ".join(told)


def main() -> None:
    """Run what was asked for, a line for each table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["spherical", "priors"])
    parser.add_argument("tables", nargs="*", help="those with a star by default")
    asked = parser.parse_args()
    # Of the peers, too. The library has read its environment when numpy was loaded.
    threadpool_limits(1, "blas")
    warnings.simplefilter("ignore")
    for name in asked.tables or [each for each in TABLES if each in TUNED_ON]:
        table = prepared(name)
        if table is None:
            continue
        values, others, labels = table
        if asked.what == "spherical":
            print(of_spherical(name, values), flush=True)
        else:
            print(of_priors(name, values, others, labels), flush=True)


if __name__ == "__main__":
    main()
