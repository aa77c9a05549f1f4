"""Figure 3 and table 2 of Herlau et al.: ``python -m benchmarks.papers.arm_small``.

Figure 3: a network of four vertices, of which 1 is linked with 2, 3 and 4, and 3 with 4; how often
each partition is visited in 160,000 iterations of one move (split-merge and adaptive
reconfiguration without Gibbs sweeps between them), beside its probability. The paper shows both in
a plot and finds them in good agreement; here stands their total variation, and what it would be by
chance alone (from the differences between chains).

Table 2: 100 observations of five components with 6, 8 and 10 binary attributes; alpha = beta = 1,
8 chains from 50 Gibbs sweeps, 2000 iterations of a move and a Gibbs sweep; 20 data sets. The
autocorrelation times (1 + 2 sum) of the largest cluster's share and of pairs being together (the
largest of the 105 pairs of 15 observations, three of each component), means and standard deviations
over sets and chains, and the effort in Gibbs sweeps. A trace that never moves has none.

ARM takes its guides from the growing history of all chains, as in the paper; *ARM, population* from
the other half of the chains, which is exact at any time. ``--sets``, ``--attributes`` and
``--iterations`` make table 2 shorter, ``--draws`` figure 3; with ``--keep FOLDER`` each data set is
kept as it ends, and a run that was broken off goes on from there.
"""

import pathlib
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.schedule.kernels import KERNELS
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels
from weald.treecore.relational.network import Links, Network, make_network

from .arm import on_network, population
from .chains import arguments, autocorrelation_time, kept, kept_in, problem, reporting, source
from .population import N_CHAINS, Population
from .simulated import bernoulli_mixture

# Rows, each a method and where its guides come from.
SAMPLERS = {
    "Gibbs": ("Gibbs", "population"),
    "SM": ("SM", "population"),
    "ARM": ("ARM", "history"),
    "ARM, population": ("ARM", "population"),
}
LINKS = ([0, 0, 0, 2], [1, 2, 3, 3])
N, N_VERTICES, PER_COMPONENT = 100, 4, 3
# Mean and standard deviation of the two autocorrelation times, and effort.
TABLE_2: dict[tuple[int, str], tuple[str, str, int]] = {
    (6, "Gibbs"): ("116.5 +- 93.9", "91.6 +- 88.9", 2000),
    (6, "SM"): ("27.8 +- 12.2", "23.2 +- 10.3", 6741),
    (6, "ARM"): ("14.9 +- 7.7", "13.6 +- 7.1", 6712),
    (8, "Gibbs"): ("165.4 +- 165.6", "131.3 +- 135.9", 2000),
    (8, "SM"): ("27.9 +- 14.9", "26.4 +- 14.9", 6855),
    (8, "ARM"): ("8.5 +- 5.0", "9.2 +- 4.9", 6731),
    (10, "Gibbs"): ("88.9 +- 137.4", "99.3 +- 132.7", 2000),
    (10, "SM"): ("19.3 +- 17.1", "30.4 +- 25.4", 7503),
    (10, "ARM"): ("10.8 +- 12.5", "14.7 +- 14.0", 6705),
}
WHY = """\
Why they differ. The paper speaks of 16 partitions of four vertices; there are 15. In table 2 data
sets differ far more than methods do, and the paper's are not printed: only the order of the methods
within one set can be compared. Chains that stay in one mode have short autocorrelation times, and
Gibbs sampling has them most often the more attributes there are."""


def law_of_partitions() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All partitions of the four vertices (15, 4), and their probabilities."""
    labels = (np.array(each) for each in product(range(N_VERTICES), repeat=N_VERTICES))
    partitions = np.unique([canonical_labels(each) for each in labels], axis=0)
    weights = np.array([on_network(four_vertices())(each).log_joint() for each in partitions])
    law = np.exp(weights - weights.max())
    return partitions, np.asarray(law / law.sum())


def four_vertices() -> Network:
    """The network of figure 3."""
    ends = np.array(LINKS)
    return make_network(N_VERTICES, Links(ends[0], ends[1], np.ones(ends.shape[1])))


def visited(sampler: str, partitions: NDArray[np.int64], draws: int) -> NDArray[np.float64]:
    """How often each chain was in each partition (chains, partitions)."""
    method, guides = SAMPLERS[sampler]
    chains = population(four_vertices(), 0, guides)
    places = N_VERTICES ** np.arange(N_VERTICES)
    index = {int(code): at for at, code in enumerate(partitions @ places)}
    counts = np.zeros((N_CHAINS, len(partitions)))
    for _ in range(max(draws // N_CHAINS, 1)):
        chains.advance(method, interlaced=False)
        for chain, code in enumerate(chains.labels() @ places):
            counts[chain, index[int(code)]] += 1.0
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def figure_3(draws: int) -> list[dict[str, Any]]:
    """Print the way from the exact law; returns rows."""
    partitions, law = law_of_partitions()
    print(f"\nfigure 3: {draws:,} iterations over {len(law)} partitions; published: they agree")
    rows = []
    for sampler in SAMPLERS:
        frequency = visited(sampler, partitions, draws)
        off = 0.5 * float(np.abs(frequency.mean(axis=0) - law).sum())
        error = frequency.std(axis=0, ddof=1) / np.sqrt(N_CHAINS)
        chance = 0.5 * float(np.sqrt(2.0 / np.pi) * error.sum())
        print(f"{sampler:>15} | total variation {off:.4f} | by chance {chance:.4f}", flush=True)
        rows.append({"figure": "3", "sampler": sampler, "off": off, "chance": chance})
    return rows


def times_of(sampler: str, m: int, index: int, iterations: int) -> dict[str, Any]:
    """One data set: both autocorrelation times of each chain, and the effort of an iteration."""
    method, guides = SAMPLERS[sampler]
    rng = source(m, index)
    values, truth = bernoulli_mixture(rng, m, N)
    prior = build_prior("dp", {"alpha": 1.0})
    here = problem("bernoulli", {"a": 1.0, "b": 1.0}, prior, values)
    chosen = [
        rng.choice(np.flatnonzero(truth == k), PER_COMPONENT, replace=False)
        for k in range(truth.max() + 1)
    ]
    pairs = np.array(list(combinations(np.concatenate(chosen), 2)))
    # Compile apart from what is timed.
    Population(here.chain, N, KERNELS, guides, (m, index)).advance(method)
    chains = Population(here.chain, N, KERNELS, guides, (m, index))
    largest = np.empty((iterations, N_CHAINS))
    together = np.empty((iterations, N_CHAINS, len(pairs)))
    for at in range(iterations):
        chains.advance(method)
        labels = chains.labels()
        largest[at] = [np.bincount(each).max() / N for each in labels]
        together[at] = labels[:, pairs[:, 0]] == labels[:, pairs[:, 1]]
    trace = [autocorrelation_time(each) for each in largest.T]
    indicator = [
        max((autocorrelation_time(pair) for pair in moving(together[:, chain])), default=np.nan)
        for chain in range(N_CHAINS)
    ]
    return {
        "trace": np.array(trace),
        "indicator": np.array(indicator),
        "effort": np.array(chains.normalised),
    }


def moving(traces: NDArray[np.float64]) -> NDArray[np.float64]:
    """The traces (n, t) of (t, m) that ever change."""
    return traces[:, traces.min(axis=0) < traces.max(axis=0)].T


def spread(values: NDArray[np.float64]) -> str:
    """Mean and standard deviation of what is known."""
    return f"{np.nanmean(values):6.1f} +- {np.nanstd(values):5.1f}"


def table_2(
    attributes: list[int], iterations: int, n_sets: int, folder: pathlib.Path | None = None
) -> list[dict[str, Any]]:
    """Print the table; returns its rows."""
    print(f"\ntable 2: {n_sets} data sets, {N_CHAINS} chains, {iterations} iterations")
    rows = []
    for m, sampler in product(attributes, SAMPLERS):
        found = []
        for index in range(n_sets):
            file = folder and folder / f"table-2-{iterations}-{m}-{sampler}-{index}.npz"

            def make(index: int = index, m: int = m, sampler: str = sampler) -> dict[str, Any]:
                return times_of(sampler, m, index, iterations)

            found.append(kept(file, make))
        trace, indicator = (
            np.concatenate([each[name] for each in found]) for name in ("trace", "indicator")
        )
        effort = iterations * float(np.mean([each["effort"] for each in found]))
        told = TABLE_2.get((m, SAMPLERS[sampler][0]), ("-", "-", 0))
        print(
            f"{m:>3} attributes {sampler:>15} | trace {spread(trace)} (published {told[0]})"
            f" | indicator {spread(indicator)} ({told[1]}) | effort {effort:.0f} ({told[2]})"
            f" | {100.0 * np.isnan(trace).mean():.0f} % of chains never move",
            flush=True,
        )
        key = {"table": "2", "attributes": m, "sampler": sampler, "effort": effort}
        rows.append({**key, "trace": trace.tolist(), "indicator": indicator.tolist()})
    return rows


def main() -> None:
    """Print both."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--attributes", default="6,8,10", help="of table 2's observations")
    parser.add_argument("--draws", type=int, default=160_000, help="of figure 3")
    kept_in(parser)
    options = parser.parse_args()
    with reporting(options.output) as rows:
        rows.extend(figure_3(options.draws))
        attributes = [int(m) for m in options.attributes.split(",")]
        rows.extend(table_2(attributes, options.iterations, options.sets, options.keep))
        print(f"\n{WHY}")


if __name__ == "__main__":
    main()
