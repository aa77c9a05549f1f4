"""The partition to show: of least expected loss over draws that never leave their shards.

Rows that no draw divides are one item, and move together in a search for the partition of least
loss. So a shard sends its items, each with the number of its rows; the search, and how sure it is
of each item, need nothing else. Where draws are so many, or so unsure, that there are more items
than can be held, every second of them is left out until there are not.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.estimate.consensus import consensus_partition, membership
from weald.treecore.errors import ParameterError
from weald.treecore.prior.sequential import canonical_labels

from .fixed_order import total
from .passes import Counts, Matrix
from .shard import SHOWN, Shards, hash_of_draws

__all__ = ["ShownPartition", "shown_partition", "statistics_of_shown"]

_MOST_ITEMS = 200_000
# A search has a table with an entry for each row. Of more rows it sees shares so fine.
_FINEST = 10_000_000


class ShownPartition(NamedTuple):
    """Clusters of items, which every row has one of.

    Attributes
    ----------
    sweeps:
        Whose labels were compared (t).
    weight, first:
        Rows of each item (i), and the first of these.
    cluster:
        Of each item (i), numbered by first row.
    probability, stability:
        Of each item (i): the mean share of its drawn cluster that is in its shown one, and the mean
        share of the others there that it is with.
    """

    sweeps: list[int]
    weight: Counts
    first: Counts
    cluster: Counts
    probability: Matrix
    stability: Matrix

    @property
    def n_clusters(self) -> int:
        """Clusters shown."""
        return int(self.cluster.max()) + 1


def shown_partition(
    shards: Shards, sweeps: Sequence[int], loss: str, most_items: int = _MOST_ITEMS
) -> ShownPartition:
    """The partition of least expected loss ("vi", "binder"), or the last draw for "map".

    ``sweeps`` are those whose labels the shards keep, in order. In the end they have marked every
    row with its place among the items.
    """
    compared = list(sweeps[-1:] if loss == "map" else sweeps)
    while True:
        found = _items(shards, compared, most_items)
        if found is not None or len(compared) == 1:
            break
        compared = compared[::-1][::2][::-1]
    if found is None:
        raise ParameterError(f"one draw has more than {most_items} clusters")
    labels, weight, first = found
    shards.ask("mark", compared, labels)
    draws = np.stack([canonical_labels(draw) for draw in labels.T])
    cluster = draws[0] if loss == "map" else _consensus(draws, loss, weight)
    return ShownPartition(compared, weight, first, cluster, *membership(draws, cluster, weight))


def _consensus(draws: NDArray[np.int64], loss: str, weight: Counts) -> Counts:
    """Clusters of least expected loss of the items (i); losses look at shares of rows only."""
    n = int(weight.sum())
    if n > _FINEST:
        weight = np.maximum(np.rint(weight * (_FINEST / n)).astype(np.int64), 1)
    return consensus_partition(draws, loss, weight=weight)


def _items(
    shards: Shards, sweeps: list[int], most: int
) -> tuple[NDArray[np.int32], Counts, Counts] | None:
    """Labels (i, t), weights and first rows of all items by first row; None of too many."""
    answers = shards.ask("items", sweeps, most)
    if any(answer is None for answer in answers):
        return None
    labels, weight, first = (np.concatenate(each) for each in zip(*answers, strict=True))
    kinds, at = np.unique(labels, axis=0, return_inverse=True)
    at = at.reshape(-1)
    if len(kinds) > most or np.unique(hash_of_draws(list(kinds.T))).size < len(kinds):
        return None
    weights = np.bincount(at, weights=weight).astype(np.int64)
    firsts = np.full(len(kinds), np.iinfo(np.int64).max)
    np.minimum.at(firsts, at, first)
    order = np.argsort(firsts)
    return np.ascontiguousarray(kinds[order]), weights[order], firsts[order]


def statistics_of_shown(shards: Shards, shown: ShownPartition) -> Matrix:
    """Statistics (k, m) of the clusters that are shown."""
    answers = shards.ask("sum_labels", SHOWN, shown.cluster, shown.n_clusters)
    return total(part for answer in answers for part in answer)
