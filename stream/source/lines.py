"""Lines of a file, a compressed file or standard input, without ever blocking past a timeout."""

import gzip
import os
import select
import sys
import zlib
from codecs import BOM_UTF8
from pathlib import Path
from typing import BinaryIO

from weald.stream.errors import SourceError

__all__ = ["LineReader"]

CHUNK = 262_144


class LineReader:
    """Complete lines of a byte stream, numbered by the caller.

    A byte order mark before the first one is no part of it.

    A line longer than `longest` is cut to ``longest + 1`` bytes, so that one endless line cannot
    fill the memory and is still seen to be too long.

    Parameters
    ----------
    path : str or None
        File to read, ``.gz`` decompressed; None is standard input.
    longest : int
        Longest line kept whole, in bytes.
    """

    def __init__(self, path: str | None, longest: int) -> None:
        self.name = "standard input" if path is None else path
        self._stream = _opened(path)
        self._interactive = path is None
        self._longest = longest
        self._tail = b""
        self._lines: list[bytes] = []
        self._begun = self._ended = False

    @property
    def ended(self) -> bool:
        """Whether every line has been taken."""
        return self._ended and not self._lines

    def take(self, n_lines: int, timeout_s: float) -> list[bytes]:
        """Return up to `n_lines` lines, without their ends; wait for the first at most so long."""
        while len(self._lines) < n_lines and not self._ended:
            wait = 0.0 if self._lines else timeout_s
            if self._interactive and not select.select([self._stream], [], [], wait)[0]:
                break
            self._read()
        taken, self._lines = self._lines[:n_lines], self._lines[n_lines:]
        return taken

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if not self._interactive:
            self._stream.close()

    def _read(self) -> None:
        try:
            if self._interactive:
                chunk = os.read(self._stream.fileno(), CHUNK)
            else:
                chunk = self._stream.read(CHUNK)
        except (OSError, EOFError, zlib.error) as error:
            raise SourceError(f"{self.name} cannot be read: {error}") from error
        self._ended = not chunk
        if not self._begun:
            chunk = chunk.removeprefix(BOM_UTF8)
        self._begun = True
        *whole, tail = (self._tail + chunk).split(b"\n")
        if self._ended and tail:
            whole, tail = [*whole, tail], b""
        self._tail = tail[: self._longest + 1]
        self._lines += [line[: self._longest + 1].removesuffix(b"\r") for line in whole]


def _opened(path: str | None) -> BinaryIO | gzip.GzipFile:
    if path is None:
        return sys.stdin.buffer
    try:
        if path.endswith(".gz"):
            return gzip.open(path, "rb")
        return Path(path).open("rb")
    except OSError as error:
        raise SourceError(f"{path} cannot be opened: {error.strerror}") from error
