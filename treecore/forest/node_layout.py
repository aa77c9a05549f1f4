"""How a forest's nodes, and what is compared of its roots, lie in memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.treecore.statistics.room import has_room, longer

__all__ = ["LANES", "longer_nodes", "node_entries", "outline_entries"]

Entries = dict[str, NDArray[Any]]

# What an insertion reads and writes of a node lies together, in one record a node: in arrays apart
# each number would be a line of the processor's cache to wait for. Where an arrival is deferred,
# the way down and back up is by the first line alone, whose last word holds three small numbers.
_FIRST_LINE = "left right parent n_leaves size weighed log_dissimilarity small"
_SECOND_LINE = "atom log_marginal log_potential"
_FLOATS = ("log_marginal", "log_potential", "log_dissimilarity")
_SMALL = {"height": (np.int32, 0), "stale": (np.int16, 2), "table_age": (np.int16, 3)}
_RECORD = 16
_CACHE_LINE = 64

# Outlines of so many roots lie side by side, to be compared with an arrival by one instruction for
# several of them.
LANES = 64
# So many roots have an outline at most; there are seldom more trees than that.
_OUTLINED = 1024


def node_entries(capacity: int) -> Entries:
    """Zeros: each of a node's entries as an array of its own, views of one block."""
    return _entries(np.zeros(_n_words(capacity), dtype=np.int64))


def longer_nodes(parent: NDArray[np.int64], capacity: int, used: int) -> Entries:
    """The entries of the first ``used`` nodes with room for more, given their ``parent``.

    The given ones must not be used any more (:func:`weald.treecore.statistics.room.longer`).
    """
    words = parent.base
    if words is None:
        raise ValueError("this is no entry of nodes")
    room = has_room(words, _n_words(capacity))
    grown = longer(words, _n_words(capacity), slice(0))
    if not room:
        # Its cache lines may begin elsewhere.
        _block(grown)[:used] = _block(words)[:used]
    return _entries(grown)


def _n_words(capacity: int) -> int:
    return capacity * _RECORD + _CACHE_LINE // 8


def _entries(words: NDArray[np.int64]) -> Entries:
    block = _block(words)
    floats = block.view(np.float64)
    names = f"{_FIRST_LINE} {_SECOND_LINE}".split()
    entries: Entries = {
        name: (floats if name in _FLOATS else block)[:, at] for at, name in enumerate(names)
    }
    word = names.index("small")
    small = entries.pop("small")
    for name, (kind, place) in _SMALL.items():
        parts = block.view(kind)
        entries[name] = parts[:, word * (small.itemsize // parts.itemsize) + place]
    return entries


def _block(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """The records (n, 16) among these words, each on cache lines of its own."""
    skipped = -words.ctypes.data % _CACHE_LINE // words.itemsize
    return words[skipped : skipped + len(words) - _CACHE_LINE // 8].reshape(-1, _RECORD)


def outline_entries(width: int) -> Entries:
    """Room for the outlines of roots, ``width`` numbers each, none of which is there yet."""
    return {
        "outlines": np.zeros((_OUTLINED // LANES, width, LANES)),
        "outlined": np.full(_OUTLINED, -1, dtype=np.int64),
        "gains": np.zeros(_OUTLINED),
    }
