"""Statistics rows of atoms on their way to workers: pages in Redis that change only when rows do.

Each round deals out all atoms, and few of their rows are others than in the round before. So rows
do not travel with leases: the writer keeps them in a hash in Redis, a page for some successive ids,
and sends the pages that have changed. A lease names its pages by checksum, and a worker fetches
those that it has not seen. If Redis has another page than the one that is named, or none (it was
flushed, has failed over to an older copy, or the round is over and a later one has begun), the
worker drops the lease, and the writer offers it again, pages and all, if it is still wanted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.leases.leases import Lease
from weald.mcmc.leases.outstanding import Lent
from weald.storage.encoding.snapshot import decode, encode
from weald.storage.errors import SnapshotCorrupt
from weald.storage.redis.lease_queue import PAGES_A_CALL, Key, LeaseItem, LeaseQueue

__all__ = ["CHECKSUM_BYTES", "RowsKept", "RowsSent", "pages_named"]

Arrays = dict[str, NDArray[Any]]

# A page is about so large, whatever the width of a row: few calls for many small rows, and little
# to send for one that has changed.
_PAGE_BYTES = 1 << 16
CHECKSUM_BYTES = 16


class _Page(NamedTuple):
    """Atoms (u, ascending) whose ids lie in one page, and their rows (u, m)."""

    atoms: NDArray[np.int64]
    rows: NDArray[np.float64]

    def arrays(self) -> Arrays:
        return {"atoms": self.atoms, "rows": self.rows}

    def checksum(self) -> bytes:
        digest = hashlib.blake2b(self.atoms.tobytes(), digest_size=CHECKSUM_BYTES)
        digest.update(np.ascontiguousarray(self.rows).data)
        return digest.digest()


class RowsSent:
    """The writer's side: what Redis has, as far as the writer knows."""

    def __init__(self) -> None:
        self._checksums: dict[int, bytes] = {}

    def forget(self) -> None:
        """Redis may have lost something: all pages go with the next offer."""
        self._checksums.clear()

    def offer(self, queue: LeaseQueue, leases: Mapping[Key, Lent], roles: Mapping[Key, str]) -> int:
        """Put leases up, after the pages that they rest on.

        Parameters
        ----------
        queue : LeaseQueue
        leases : mapping
            All of the round, for pages hold atoms of any of them.
        roles : mapping
            Those to be put up, with the roles of the workers that may take them.

        Returns
        -------
        int
            Bytes that went to Redis.

        Raises
        ------
        StorageUnavailable
            When Redis does not answer.
        """
        checksums: dict[int, bytes] = {}
        sent = 0
        changed: dict[int, bytes] = {}
        for number, page in _pages(leases.values()):
            checksums[number] = checksum = page.checksum()
            if self._checksums.get(number) != checksum:
                changed[number] = checksum + encode(page.arrays(), compress=False)
                sent += len(changed[number])
            if len(changed) == PAGES_A_CALL:
                queue.put_pages(changed)
                changed = {}
        if changed:
            queue.put_pages(changed)
        queue.drop_pages(self._checksums.keys() - checksums.keys())
        self._checksums = checksums
        named: Arrays = {
            "pages": np.array(list(checksums), dtype=np.int64),
            "checksums": np.frombuffer(b"".join(checksums.values()), dtype=np.uint8),
        }
        items = [
            LeaseItem(key, encode(_without_rows(leases[key]) | named), role)
            for key, role in roles.items()
        ]
        queue.offer(items)
        return sent + sum(len(item.payload) for item in items)


class RowsKept:
    """A worker's side: the pages that it has seen last."""

    def __init__(self) -> None:
        self._pages: dict[int, tuple[bytes, _Page]] = {}

    def lease(self, queue: LeaseQueue, payload: bytes) -> Lease | None:
        """Return the whole lease, or None if Redis has not the rows that it names.

        Raises
        ------
        StorageUnavailable
            When Redis does not answer.
        SnapshotCorrupt, KeyError, ValueError
            When the payload is none that a writer made.
        """
        arrays = decode(payload)
        named = pages_named(arrays)
        if not self._fetch(queue, named):
            return None
        pages = [self._pages[number][1] for number in named]
        ids = np.concatenate([page.atoms for page in pages])
        rows = np.concatenate([page.rows for page in pages])
        arrays["rows"] = rows[np.searchsorted(ids, arrays.pop("atoms"))]
        return Lease.from_arrays(arrays)

    def _fetch(self, queue: LeaseQueue, named: Mapping[int, bytes]) -> bool:
        """Get the pages that are not here as they are named; return whether all of them are now."""
        kept = {number: page for number, page in self._pages.items() if number in named}
        wanted = [n for n, checksum in named.items() if n not in kept or kept[n][0] != checksum]
        for number, found in queue.pages(wanted):
            if found is None or found[:CHECKSUM_BYTES] != named[number]:
                return False
            try:
                kept[number] = named[number], _Page(**decode(found[CHECKSUM_BYTES:]))
            except (SnapshotCorrupt, TypeError):
                return False
        self._pages = kept
        return True


def pages_named(arrays: Arrays) -> dict[int, bytes]:
    """Take the numbers and checksums of the pages that a lease rests on out of its arrays."""
    every = arrays.pop("checksums").tobytes()
    checksums = [every[at : at + CHECKSUM_BYTES] for at in range(0, len(every), CHECKSUM_BYTES)]
    return dict(zip(arrays.pop("pages").tolist(), checksums, strict=True))


def _without_rows(lent: Lent) -> Arrays:
    arrays = lent.lease.arrays()
    del arrays["rows"]
    return arrays | {"atoms": lent.atoms}


def _pages(lents: Collection[Lent]) -> Iterator[tuple[int, _Page]]:
    """All atoms of a round in pages, in the order of their ids."""
    every = np.concatenate([lent.atoms for lent in lents])
    rows = np.concatenate([lent.lease.rows for lent in lents])
    atoms, where = np.unique(every, return_index=True)
    numbers = atoms // max(1, _PAGE_BYTES // (rows.itemsize * rows.shape[1]))
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(atoms)], strict=True):
        yield int(numbers[start]), _Page(atoms[start:end], rows[where[start:end]])
