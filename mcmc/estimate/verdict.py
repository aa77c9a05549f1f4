"""Whether a partition is fit to be believed: ok, or a warning with its reasons and what to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from .agreement import adjusted_rand_index
from .evidence import Gain

__all__ = ["Grouped", "Verdict", "told_by_groups", "verdict_of"]

# Elastic's categorization_status warns by five criteria of this kind.
_ALMOST_ALL = 0.9
_FEW = 5
_HALF = 0.5
_CHAINS_AGREE = 0.5
# From here on two partitions agree well (Steinley, Psychological Methods 9, 2004); real tables on
# which draws agree less have no kinds that groups find, see ``benchmarks/real.py``.
_GROUPS_AGREE = 0.8
_TOLD = 0.9
_FEWEST_ROWS = 20
# What an adjusted Rand index of two partitions is a number of.
_OF = "where 1 is the same and 0 is chance"


@dataclass(frozen=True)
class Verdict:
    """Reasons to doubt a partition, each with what to try; none where all is well."""

    reasons: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        """``ok`` or ``warn``."""
        return "warn" if self.reasons else "ok"


@dataclass(frozen=True)
class Grouped:
    """What is known of the groups that join clusters.

    Attributes
    ----------
    agree:
        How far the groups of other draws agree with those that are shown (adjusted Rand index);
        None where there are no draws.
    largest, gain:
        Share of the rows that the largest holds, and what clusters gain in density over groups;
        None where it was not asked.
    parted_by:
        Names of columns of which one value alone tells groups apart.
    settled:
        Whether each of several runs alone makes the same groups.
    """

    agree: float | None
    largest: float = 0.0
    gain: Gain | None = None
    parted_by: Sequence[str] = ()
    settled: bool = False


def verdict_of(
    sizes: NDArray[np.int64],
    gain_over_one: Gain | None = None,
    chains: list[NDArray[np.int64]] | None = None,
    grouped: Grouped | None = None,
) -> Verdict:
    """Judge a partition by the sizes of its clusters (k) and what else is known.

    ``gain_over_one`` is what its clusters gain in density over all being one; ``chains`` are the
    last partitions (n) of chains that ran independently.
    """
    n = int(sizes.sum())
    found: list[str] = []
    if n < _FEWEST_ROWS:
        return Verdict(found)
    largest = float(sizes.max()) / n
    in_small = float(sizes[sizes < _FEW].sum()) / n
    if largest > _ALMOST_ALL and sizes.size > 1:
        found.append(
            f"one cluster holds {largest:.0%} of the rows: leave out columns that say nothing, or "
            "try another family"
        )
    if in_small > _HALF:
        found.append(
            f"{in_small:.0%} of the rows are in clusters of fewer than {_FEW}: use fewer columns, "
            "or a family with fewer parameters (diagonal)"
        )
    if sizes.size > 1 and gain_over_one is not None and not gain_over_one.is_clear:
        found.append(
            "the clusters predict rows no better than one cluster does (they make a row "
            f"{gain_over_one}): there may be no clusters in these columns"
        )
    if chains is not None and len(chains) > 1 and not _same_groups(chains, grouped):
        worst = min(
            adjusted_rand_index(one, other)
            for at, one in enumerate(chains)
            for other in chains[:at]
        )
        if worst < _CHAINS_AGREE:
            found.append(
                f"independent runs disagree (two of them agree to {worst:.2f}, {_OF}): let them "
                "run longer"
            )
    return Verdict(found if grouped is None else found + _of_groups(grouped))


def _same_groups(chains: list[NDArray[np.int64]], grouped: Grouped | None) -> bool:
    """Whether clusters that runs part in other ways are of no account, as all make the same groups.

    One group of all only says so where each run has nearly all rows in one cluster.
    """
    if grouped is None or not grouped.settled:
        return False
    return grouped.largest < 1.0 or all(map(_is_almost_one, chains))


def _is_almost_one(labels: NDArray[np.int64]) -> bool:
    _, sizes = np.unique(labels, return_counts=True)
    return bool(sizes.max() > _ALMOST_ALL * labels.size)


def _of_groups(grouped: Grouped) -> list[str]:
    found = []
    if grouped.agree is not None and grouped.agree < _GROUPS_AGREE:
        found.append(
            f"groups differ each time that they are told (they agree to {grouped.agree:.2f}, "
            f"{_OF}): there are no clear gaps between kinds; give more rows, or columns that tell "
            "kinds apart"
        )
    if grouped.largest > _ALMOST_ALL and grouped.gain is not None and grouped.gain.is_clear:
        found.append(
            f"one group holds {grouped.largest:.0%} of the rows, though its clusters make each "
            f"{grouped.gain}: either kinds have no gap between them, and clusters tell them, or "
            "there is one kind that takes several clusters"
        )
    if grouped.parted_by:
        found.append(
            "groups are told by one value that no other comes near, in "
            f"{', '.join(grouped.parted_by)}: if it says that nothing is known, empty these cells"
        )
    return found


def told_by_groups(marked: NDArray[np.bool_], groups: NDArray[np.int64]) -> bool:
    """Whether groups (n) all but say which rows are ``marked`` (n).

    They do if they take nine tenths of the entropy from it.
    """
    sizes = np.bincount(groups)
    shares = np.bincount(groups, weights=marked) / np.maximum(sizes, 1)
    left = float(sizes @ _entropy(shares)) / groups.size
    return bool(left <= (1.0 - _TOLD) * float(_entropy(np.array(marked.mean()))))


def _entropy(share: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(entr(share) + entr(1.0 - share))
