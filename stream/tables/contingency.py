"""Counting who is where: dense numbering of ids, and overlaps of two partitions, in linear time."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Overlaps", "cells_of", "numbered", "overlaps", "places_in"]

Ids = NDArray[np.int64]

# Sorting is slower than counting unless the numbers are spread wider than this many times n.
SPREAD = 8


class Overlaps(NamedTuple):
    """The cells of a contingency table that are not zero, ordered by row, then by column."""

    row: Ids
    column: Ids
    n: Ids
    row_size: Ids
    column_size: Ids


def numbered(ids: NDArray[np.integer]) -> tuple[Ids, Ids]:
    """Distinct ids in order, and for each id its place among them.

    Parameters
    ----------
    ids : ndarray of int, shape (n,)
        Not negative.

    Returns
    -------
    ndarray of int64, shape (k,)
    ndarray of int64, shape (n,)
    """
    if len(ids) == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    if int(ids.max()) > SPREAD * len(ids):
        distinct, places = np.unique(ids, return_inverse=True)
        return distinct.astype(np.int64), places.astype(np.int64)
    present = np.bincount(ids) > 0
    place = np.cumsum(present) - 1
    return np.flatnonzero(present), place[ids]


def places_in(ids: Ids, asked: Ids) -> Ids:
    """Place (n) among rising ids of each one that is asked for (n); -1 where it is not there."""
    at = np.searchsorted(ids, asked)
    at[at == len(ids)] = -1
    there = np.flatnonzero(at >= 0)
    at[there[ids[at[there]] != asked[there]]] = -1
    return at


def overlaps(rows: Ids, columns: Ids, sizes: Ids | None = None) -> Overlaps:
    """Count the observations in each pair of a row and a column, both numbered densely.

    Parameters
    ----------
    rows, columns : ndarray of int64, shape (n,)
    sizes : ndarray of int64, shape (n,), optional
        Observations that each stands for, one by default.
    """
    row_size, column_size = _counted(rows, sizes), _counted(columns, sizes)
    width = max(len(column_size), 1)
    cells, place = cells_of(rows * width + columns, len(row_size) * width)
    n = _counted(place, sizes)
    there = np.flatnonzero(n)
    row, column = np.divmod(cells[there], width)
    return Overlaps(row, column, n[there], row_size, column_size)


def cells_of(cell: Ids, end: int) -> tuple[Ids, Ids]:
    """Rising cells below ``end`` that have all these (n) among them, and the place of each there.

    They are all cells, unless that were many more than n.
    """
    if end <= SPREAD * len(cell):
        return np.arange(end), cell
    return np.unique(cell, return_inverse=True)


def _counted(numbers: Ids, sizes: Ids | None) -> Ids:
    # Sums of float64 are exact for as many observations as there could ever be.
    return np.bincount(numbers, weights=sizes).astype(np.int64)
