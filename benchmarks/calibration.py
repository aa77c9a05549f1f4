"""Whether what is shown with probability p is true in a share p: reliability on simulated sets.

    python -m benchmarks.calibration                 100 sets, some minutes
    python -m benchmarks.calibration --sets 200 --stream
    python -m benchmarks.calibration --sets 8 --stream --rows 20000

Each set is drawn from a Dirichlet process mixture of Gaussians with a base measure of its own: 300
rows (unless others are asked for) of three columns, of clusters that overlap. Weald is on its
defaults, which do not know it. Four things are compared with the truth: whether two rows are
together (against the draws' share), how much of a row's true cluster lies in the cluster that is
shown (against `probability`) and in the group that is shown (against the same share of the draws'
blocks), and whether one that is shown alone is alone (against its `probability`). The expected
calibration error is the mean distance between what was said and what was true, over ten bins by
size.
"""

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.estimate.consensus import membership
from weald.mcmc.offline.fit import FitSettings, combine, run_chain
from weald.mcmc.offline.fit_groups import groups_of_fit
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.stream.model.mixture_shard import MixtureShard
from weald.stream.model.model import free_shard

Values = NDArray[np.float64]
Labels = NDArray[np.int64]

ROWS, COLUMNS, PAIRS, BINS = 300, 3, 400, 10


class Answer(NamedTuple):
    """What is shown of rows (n): their clusters, probabilities and groups; and the draws (n)."""

    cluster: Labels
    probability: Values
    group: Labels
    draws: list[Labels]


# From rows and a seed.
Find = Callable[[Values, int], Answer]


class Said(NamedTuple):
    """What was said of each of many things, and how much of it was true."""

    said: Values
    true: Values


def drawn_set(rng: Generator, rows: int = ROWS) -> tuple[Values, Labels]:
    """Rows (n, 3) and their clusters, from a mixture with its own alpha, kappa, nu and psi."""
    alpha, kappa = rng.gamma(3.0, 0.7), np.exp(rng.uniform(-3.5, -1.0))
    freedom = np.exp(rng.uniform(1.0, 4.0))
    labels, counts = np.zeros(rows, dtype=np.int64), [1]
    for row in range(1, rows):
        weights = np.array([*counts, alpha])
        labels[row] = rng.choice(len(weights), p=weights / weights.sum())
        if labels[row] == len(counts):
            counts.append(0)
        counts[labels[row]] += 1
    values = np.empty((rows, COLUMNS))
    for cluster in range(len(counts)):
        # Inverse Wishart with mean one: nu = freedom + d + 1.
        normal = rng.standard_normal((COLUMNS, int(np.ceil(freedom)) + COLUMNS + 1))
        covariance = freedom * np.linalg.inv(normal @ normal.T)
        root = np.linalg.cholesky(covariance)
        centre = root @ rng.standard_normal(COLUMNS) / np.sqrt(kappa)
        here = labels == cluster
        values[here] = centre + rng.standard_normal((here.sum(), COLUMNS)) @ root.T
    return values, labels


def share_inside(shown: Labels, blocks: Labels) -> Values:
    """Share (n) of each row's block that lies in the cluster that is shown for it."""
    cell = np.unique(shown * (blocks.max() + 1) + blocks, return_inverse=True)[1]
    return np.asarray(np.bincount(cell)[cell] / np.bincount(blocks)[blocks])


def offline(values: Values, seed: int) -> Answer:
    """What `weald fit` shows with one chain."""
    settings = FitSettings(seed=seed)
    result = combine(settings, [run_chain(values, settings, 0, time.perf_counter)], values)
    labels = result.labels.astype(np.int64)
    groups = groups_of_fit(result, values).group[labels]
    return Answer(labels, result.probability, groups, list(result.traces[0].draws))


def stream(values: Values, seed: int) -> Answer:
    """The same of a stream after its last publication; of few rows that is its only one."""
    rows = len(values)
    few = RefinementSettings(every_records=50, publish_every_records=ROWS)
    model = ModelSettings(family="gaussian", seed=seed)
    shard = free_shard(model, few if rows == ROWS else RefinementSettings(), values[:200])
    probability = np.full(rows, np.nan)
    for done in (shard.apply(values, 0.0), shard.conclude(0.0)):
        for told in done.certainties:
            probability[told.seq - 1] = told.percent[0] / 100.0
    groups = shard.groups.group[np.searchsorted(shard.groups.cluster, shard.clusters)]
    shown, grouped = (np.unique(each, return_inverse=True)[1] for each in (shard.clusters, groups))
    return Answer(shown, probability, grouped, draws_of(shard))


def draws_of(shard: MixtureShard) -> list[Labels]:
    """Those of a stream's newest draws that have every row."""
    state = shard.state()
    draws = np.split(state["draws.labels"], np.cumsum(state["draws.lengths"])[:-1])
    return [each.astype(np.int64) for each in draws if len(each) == shard.seq]


def judged(find: Find, n_sets: int, rows: int = ROWS) -> dict[str, Said]:
    """Everything that was said of many sets, beside the truth."""
    names = ("pairs", "membership", "groups", "alone")
    found: dict[str, list[tuple[Values, Values]]] = {name: [] for name in names}
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        values, truth = drawn_set(rng, rows)
        shown, probability, groups, draws = find(values, seed)
        one, other = rng.integers(0, rows, (2, PAIRS))
        together = np.mean([each[one] == each[other] for each in draws], axis=0)
        apart = one != other
        found["pairs"].append((together[apart], (truth[one] == truth[other])[apart]))
        true = share_inside(shown, truth)
        alone = np.bincount(shown)[shown] == 1
        found["membership"].append((probability[~alone], true[~alone]))
        in_group = membership(np.stack(draws), groups)[0]
        found["groups"].append((in_group, share_inside(groups, truth)))
        found["alone"].append((probability[alone], (np.bincount(truth)[truth] == 1)[alone]))
    return {
        name: Said(*(np.concatenate(each).astype(np.float64) for each in zip(*sets, strict=True)))
        for name, sets in found.items()
    }


def table(said: Said) -> list[tuple[float, float, int]]:
    """For each bin that is not empty: mean of what was said, of what was true, and how many."""
    place = np.minimum((said.said * BINS).astype(int), BINS - 1)
    return [
        (float(said.said[here].mean()), float(said.true[here].mean()), int(here.sum()))
        for here in (place == each for each in range(BINS))
        if here.any()
    ]


def calibration_error(said: Said) -> float:
    """Mean distance between what was said and what was true, over the bins by size."""
    rows = table(said)
    return sum(n * abs(p - q) for p, q, n in rows) / max(sum(n for *_, n in rows), 1)


def main() -> None:
    """Print the reliability tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of each set")
    parser.add_argument("--stream", action="store_true", help="a stream in place of a fit")
    asked = parser.parse_args()
    find = stream if asked.stream else offline
    for name, said in judged(find, asked.sets, asked.rows).items():
        print(f"{name}: expected calibration error {calibration_error(said):.3f}")
        for p, q, n in table(said):
            print(f"  said {p:.2f}  true {q:.2f}  of {n}")


if __name__ == "__main__":
    main()
