"""Shards in this process, for tests of the law: no pipe, no file."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.sharded.fixed_order import shares_of_rows
from weald.mcmc.sharded.shard import COMMANDS, RowShard, RowsPlace


class Kept:
    """Labels by sweep, in memory."""

    def __init__(self) -> None:
        self.labels: dict[int, NDArray[np.int32]] = {}

    def save(self, sweep: int, labels: NDArray[np.int32]) -> None:
        self.labels[sweep] = labels.copy()

    def load(self, sweep: int) -> NDArray[np.int32]:
        return self.labels[sweep]

    def drop(self, sweep: int) -> None:
        self.labels.pop(sweep, None)

    def scratch(self, n: int, dtype: type[np.generic]) -> NDArray[Any]:
        return np.zeros(n, dtype)


class InProcess:
    """Shards of ``values`` (n, d); ``dies_at`` is the command, counted from 1, that loses one.

    The one that was lost knows only what it kept.
    """

    def __init__(self, family: Any, values: NDArray[np.float64], n_shards: int, chunk: int) -> None:
        self._family, self._values, self._chunk = family, values, chunk
        self.shares = shares_of_rows(values.shape[0], n_shards, chunk)
        self.kept = [Kept() for _ in self.shares]
        self._shards = [self._made(at) for at in range(len(self.shares))]
        self.dies_at = 0
        self.n_asked = 0

    def _made(self, at: int) -> RowShard:
        start, end = self.shares[at]
        place = RowsPlace(start, len(self._values), self._chunk)
        return RowShard(self._family, self._values[start:end], place, self.kept[at])

    def ask(self, command: str, *arguments: Any) -> list[Any]:
        assert command in COMMANDS
        self.n_asked += 1
        if self.n_asked == self.dies_at:
            # Half of the shards have done it, the last one is gone with all it had in memory.
            for shard in self._shards[:-1]:
                getattr(shard, command)(*arguments)
            self._shards[-1] = self._made(len(self._shards) - 1)
            raise ConnectionError("a shard died")
        return [getattr(shard, command)(*arguments) for shard in self._shards]

    def labels(self, sweep: int) -> NDArray[np.int64]:
        return np.concatenate([each.load(sweep) for each in self.kept]).astype(np.int64)
