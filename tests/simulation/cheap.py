"""What costs time and decides nothing that simulation is about, replaced by what costs none.

Kernels, sums and densities of families, and what a publication is judged by. Each stand-in is
deterministic and keeps the contract of what it stands for.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.monitoring.metrics import Metrics
from weald.stream.model import mixture_shard, model, shard
from weald.stream.publication import certainty
from weald.stream.publication.groups import PublishedGroups
from weald.stream.tables import cluster_table
from weald.stream.tables.atom_table import AtomTable
from weald.stream.telemetry.novelty import Novelty

from .chain import CoinChain

__all__ = ["SilentMetrics", "cheap_parts"]

Rows = NDArray[np.float64]
Ids = NDArray[np.int64]


def cheap_parts(few_atoms: int) -> list[tuple[Any, str, Any]]:
    """Where, under which name, and by what; so many atoms are few."""
    return [
        (mixture_shard, "FEW_ATOMS", few_atoms),
        (model, "MixtureChain", CoinChain),
        (mixture_shard, "MixtureChain", CoinChain),
        (mixture_shard, "warnings_of", lambda *_: None),
        # Rounds of coins are all alike: two between draws stand for sixty.
        (shard, "MOVED_BETWEEN_DRAWS", 40),
        (cluster_table, "add_rows", _add_rows),
        (cluster_table, "empty_totals", _empty_totals),
        (cluster_table, "log_marginals", lambda _, totals: -0.5 * totals.sum(axis=1)),
        (certainty, "consensus_partition", lambda drawn, *_, **__: drawn[-1]),
        (PublishedGroups, "publish", _each_alone),
        (PublishedGroups, "agreement", lambda *_: None),
        (Novelty, "score", lambda *_: None),
    ]


def _add_rows(rows: Rows, groups: Ids, totals: Rows) -> None:
    np.add.at(totals, groups, rows)


def _empty_totals(family: Any, n_groups: int) -> Rows:
    return np.zeros((n_groups, 2 + 2 * len(family.a)))


def _each_alone(
    groups: PublishedGroups, publication: int, _family: Any, atom_table: AtomTable, *_: object
) -> None:
    known = dict(zip(groups.group.tolist(), groups.born.tolist(), strict=True))
    groups.cluster = np.unique(atom_table.cluster[atom_table.present])
    groups.group = groups.cluster
    born = [known.get(each, publication) for each in groups.group.tolist()]
    groups.born = np.array(born, dtype=np.int64)


class SilentMetrics(Metrics):
    """Numbers that nobody scrapes."""

    def __init__(self) -> None:
        """Keep nothing."""

    def __getattribute__(self, name: str) -> Any:
        return lambda *_, **__: None
