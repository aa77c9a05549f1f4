"""From records of edges to the rows that SQL keeps and replay takes in again.

A record becomes one row, the edge, and right behind it one more for each of its ends that the model
does not hold yet: that row is the vertex, its key the vertex's name. Edges name vertices by the
numbers of their rows, so that the rows alone say what the network is. Only vertices are in
clusters; the cluster of an edge is `NO_CLUSTER`.
"""

from collections.abc import Mapping

import numpy as np

from weald.storage.encoding.row_bytes import offset_of_end

from .record import Batch

__all__ = ["NO_CLUSTER", "rows_of"]

NO_CLUSTER = 0


def rows_of(
    batch: Batch, start: int, known: Mapping[str, int], numbers: tuple[int, int]
) -> tuple[Batch, int]:
    """Spread records out.

    Parameters
    ----------
    batch : Batch
        Of edges.
    start : int
        The first record to take.
    known : mapping of str to int
        Number of the row of each vertex that is in the model.
    numbers : int, int
        Number of the first row, and how many rows are enough: one record may bring up to two more.

    Returns
    -------
    Batch
        The rows. A vertex has an offset that tells the record that brought it, and as which end.
    int
        The first record that was not taken.
    """
    seq, room = numbers
    ends_of = batch.ends or []
    new: dict[str, int] = {}
    record: list[int] = []
    offset: list[int] = []
    key: list[str | None] = []
    ends: list[tuple[int, int]] = []
    at = start
    while at < len(batch) and len(record) < room:
        place, edge = int(batch.offset[at]), len(record)
        record.append(at)
        offset.append(place)
        key.append(None)
        ends.append((0, 0))
        pair = []
        for side, name in enumerate(ends_of[at]):
            number = new.get(name) or known.get(name)
            if number is None:
                number = new[name] = seq + len(record)
                record.append(at)
                offset.append(offset_of_end(place, side))
                key.append(name)
                ends.append((0, 0))
            pair.append(number)
        ends[edge] = (pair[0], pair[1])
        at += 1
    taken = np.array(record, dtype=np.int64)
    values = batch.values[taken].copy()
    values[:, :2] = ends
    values[[name is not None for name in key]] = 0.0
    rows = Batch(
        topic=batch.topic,
        partition=batch.partition[taken],
        offset=np.array(offset, dtype=np.int64),
        key=key,
        event_time=batch.event_time[taken],
        values=values,
    )
    return rows, at
