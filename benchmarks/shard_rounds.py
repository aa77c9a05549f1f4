"""Rounds of shards that began alone: how soon they have the clusters of one chain.

    python -m benchmarks.shard_rounds                     3 shards of 3,000 rows, ten clusters
    python -m benchmarks.shard_rounds 30000 --shards 8
    python -m benchmarks.shard_rounds --from one          each shard begins with one cluster

Each shard inserts its rows into a chain of its own, so that no cluster is known to two of them;
then all go through rounds. Beside them stands one chain of all rows, refined as often. The log
joints are those of the partition of all rows under one model, so that both can be compared;
``index`` is the adjusted Rand index against the clusters that made the rows. ``seconds`` are
processor seconds of all shards and of what asks them, in one process. ``joined`` and ``split``
count proposals of whole clusters, those that were accepted first. ``bytes`` are what a round's
reports hold.
"""

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from tests.mcmc.sharded.in_rounds import InRounds
from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.hyperparameters.base_scale import log_likelihood_under
from weald.mcmc.sharded.round_messages import added
from weald.treecore.family import FAMILIES
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels

D = 4
_SHOWN = (1, 2, 5, 10, 20, 50)


def made(
    n: int, k: int, distance: float, d: int = D
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows (n, d) of k normal clusters, and the cluster of each."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, k, n)
    return (distance * rng.normal(size=(k, d)))[truth] + rng.normal(size=(n, d)), truth


def main() -> None:
    """Print a line for the one chain, and one for the shards after some of the rounds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rows", nargs="?", type=int, default=3_000)
    parser.add_argument("--shards", type=int, default=3)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--distance", type=float, default=4.0)
    parser.add_argument("--numbers", type=int, default=D, help="of a row")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--from", dest="start", choices=("chains", "one"), default="chains")
    asked = parser.parse_args()
    rows, truth = made(asked.rows, asked.clusters, asked.distance, asked.numbers)
    model = FAMILIES["gaussian"].build({}, rows), build_prior("dp", {})

    began = time.process_time()
    one = MixtureChain.start(*model, seed=1)
    one.insert(rows)
    one.refine(asked.rounds)
    index = adjusted_rand_index(canonical_labels(one.labels), truth)
    print(
        f"one chain: {one.n_blocks} clusters, log_joint {one.log_joint():.1f}, "
        f"index {index:.4f}, {time.process_time() - began:.1f} seconds"
    )

    owner = np.random.default_rng(6).integers(0, asked.shards, asked.rows)
    shards = InRounds(model, rows, owner, together=asked.start == "one")
    tally, began, apart = np.zeros((2, 3)), time.process_time(), 0.0
    for number in range(1, asked.rounds + 1):
        tally += shards.go().tally
        if number not in _SHOWN and number % 100:
            continue
        aside = time.process_time()
        labels = canonical_labels(shards.names())
        blocks = [each.blocks for each in shards.reports]
        whole, sent = (
            added(blocks, blocks[0].rows.shape[1]),
            sum(each.rows.nbytes for each in blocks),
        )
        family, prior = model
        log_joint = log_likelihood_under(family, whole.rows) + prior.log_probability(whole.size)
        (split, accepted), (joined, agreed) = tally[:, :2].astype(int).tolist()
        print(
            f"round {number}: {labels.max() + 1} clusters, log_joint {log_joint:.1f}, "
            f"index {adjusted_rand_index(labels, truth):.4f}, {aside - began - apart:.1f} seconds, "
            f"joined {agreed} of {joined}, split {accepted} of {split}, {sent} bytes"
        )
        apart += time.process_time() - aside


if __name__ == "__main__":
    main()
