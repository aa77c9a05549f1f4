"""What speaks against a publication, found from its clusters' sizes and a few observations."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.estimate.evidence import Gain, gain_in_density, left_out_densities_of_rows
from weald.mcmc.estimate.verdict import Grouped, verdict_of
from weald.stream.tables.atom_table import AtomTable
from weald.stream.tables.contingency import numbered

__all__ = ["ASKED", "reasons_against", "say_more_than_one", "warnings_of"]

Ids = NDArray[np.int64]
Rows = NDArray[np.float64]

# Observations that are asked how well their clusters predict them.
ASKED = 200


def warnings_of(
    family: Any,
    atom_table: AtomTable,
    rows_of: Callable[[Ids], Rows],
    totals_of: Callable[[Ids], Rows],
    groups_agree: float | None = None,
) -> list[str]:
    """Reasons not to believe the partition that is shown, each with what to try.

    Parameters
    ----------
    family : NamedTuple
    atom_table : AtomTable
    rows_of, totals_of : callable
        Statistics of atoms (n, m), and of clusters (k, m), by their ids.
    groups_agree : float, optional
        How far the groups of recent draws agree with those that are shown (adjusted Rand index).
    """
    if len(atom_table.present) == 0:
        return []
    return reasons_against(family, *_asked(atom_table, rows_of, totals_of), groups_agree)


def say_more_than_one(
    family: Any,
    atom_table: AtomTable,
    rows_of: Callable[[Ids], Rows],
    totals_of: Callable[[Ids], Rows],
) -> bool:
    """Whether the clusters that are shown predict observations better than one of all does.

    Arguments are those of `warnings_of`; there have to be observations.
    """
    sizes, (single, own), totals = _asked(atom_table, rows_of, totals_of)
    return len(sizes) > 1 and _gain_over_one(family, single, own, totals).is_clear


def _asked(
    atom_table: AtomTable, rows_of: Callable[[Ids], Rows], totals_of: Callable[[Ids], Rows]
) -> tuple[Ids, tuple[Rows, Ids], Rows]:
    """Sizes of the clusters, some observations with the place of each one's, and totals."""
    atoms = atom_table.present
    ids, place = numbered(atom_table.cluster[atoms])
    sizes = np.bincount(place, weights=atom_table.size[atoms]).astype(np.int64)
    asked = np.linspace(0, len(atoms) - 1, min(len(atoms), ASKED)).astype(np.int64)
    asked = asked[atom_table.size[atoms[asked]] == 1]
    return sizes, (rows_of(atoms[asked]), place[asked]), totals_of(ids)


def reasons_against(
    family: Any,
    sizes: Ids,
    asked: tuple[Rows, Ids],
    totals: Rows,
    groups_agree: float | None,
) -> list[str]:
    """As `warnings_of`, of clusters (k) of these sizes and totals (k, m).

    ``asked`` are the statistics (a, m) of some observations, and the place of each one's cluster.
    """
    single, own = asked
    gain = None
    if len(sizes) > 1 and len(own):
        gain = _gain_over_one(family, single, own, totals)
    return verdict_of(sizes, gain, grouped=Grouped(groups_agree)).reasons


def _gain_over_one(family: Any, single: Rows, own: Ids, totals: Rows) -> Gain:
    whole = totals.sum(axis=0, keepdims=True)
    many = left_out_densities_of_rows(family, single, own, totals)
    return gain_in_density(many, left_out_densities_of_rows(family, single, 0 * own, whole))
