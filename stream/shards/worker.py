"""A shard behind bytes: what runs where the rows are.

    python -m weald.stream.shards.worker        a shard on standard input and output

Each message is its length (8 bytes, little-endian) and so many bytes: a command with its arguments,
and back either what came of it or why it was refused.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from weald.mcmc.sharded.shard import COMMANDS, RowShard, RowsPlace
from weald.treecore.errors import ObservationError, ParameterError
from weald.treecore.family import FAMILIES

from .label_files import LabelFiles
from .row_files import RowFiles, rows_of
from .wire import decoded, encoded

__all__ = ["ShardWorker", "read_message", "write_message"]

_LENGTH = 8


def write_message(stream: BinaryIO, data: bytes) -> None:
    """Write one message, whole."""
    stream.write(len(data).to_bytes(_LENGTH, "little"))
    stream.write(data)
    stream.flush()


def read_message(stream: BinaryIO) -> bytes | None:
    """The next message; None where the other side is gone."""
    head = stream.read(_LENGTH)
    if len(head) < _LENGTH:
        return None
    size = int.from_bytes(head, "little")
    data = stream.read(size)
    return data if len(data) == size else None


class ShardWorker:
    """Answers messages for the rows from ``start`` to ``stop``, whose files are in a folder."""

    def __init__(self) -> None:
        self._rows: NDArray[np.float64] | None = None
        self._place = RowsPlace(0, 0, 1)
        self._folder = Path()
        self._shard: RowShard | None = None

    def answer(self, message: bytes) -> bytes:
        """What comes of a command, or why it was refused."""
        command, arguments = decoded(message)
        try:
            return encoded((True, self._do(command, arguments)))
        except (ObservationError, ParameterError, OSError, ValueError) as error:
            return encoded((False, f"{command}: {error}"))

    def _do(self, command: str, arguments: list[Any]) -> Any:
        if command == "open":
            return self._open(*arguments)
        if command == "sample":
            return self._sample(*arguments)
        if command == "model":
            return self._model(*arguments)
        if command not in COMMANDS or self._shard is None:
            raise ValueError("not a command, or not yet")
        return getattr(self._shard, command)(*arguments)

    def _open(self, files: dict[str, Any], start: int, stop: int, chunk: int, folder: str) -> int:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        table = msgspec.convert(files, RowFiles)
        self._place = RowsPlace(start, table.n, chunk)
        self._rows = rows_of(table, start, stop, self._folder)
        return len(self._rows)

    def _sample(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Those of the rows that are here: where they stand in ``rows``, and their values."""
        if self._rows is None:
            raise ValueError("not yet")
        at = rows - self._place.first
        inside = np.flatnonzero((at >= 0) & (at < len(self._rows)))
        return inside, np.asarray(self._rows[at[inside]], np.float64)

    def _model(self, family: str, parameters: dict[str, Any]) -> None:
        if self._rows is None:
            raise ValueError("not yet")
        built = FAMILIES[family].build(parameters, np.zeros((2, self._rows.shape[1])))
        keeper = LabelFiles(self._folder)
        self._shard = RowShard(built, self._rows, self._place, keeper)


def main() -> None:
    """Answer until the other side is gone."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever else is printed must not be taken for an answer.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    worker = ShardWorker()
    # An interrupt is meant for who asks; a broken pipe says that nobody does.
    with suppress(KeyboardInterrupt, BrokenPipeError):
        while (message := read_message(sys.stdin.buffer)) is not None:
            write_message(answers, worker.answer(message))


if __name__ == "__main__":
    main()
