"""How a forest's nodes lie in memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["node_entries"]

# What an insertion reads and writes of a node lies together, in one record a node: in arrays apart
# each number would be a line of the processor's cache to wait for. The way down reads the first
# line alone.
_FIRST_LINE = "left right parent n_leaves size height stale log_dissimilarity"
_SECOND_LINE = "weighed table_age atom log_marginal log_potential"
_FLOATS = ("log_marginal", "log_potential", "log_dissimilarity")
_RECORD = 16
_CACHE_LINE = 64


def node_entries(capacity: int) -> dict[str, NDArray[Any]]:
    """Zeros: each of a node's entries as an array of its own, views of one block."""
    words = np.zeros(capacity * _RECORD + _CACHE_LINE // 8, dtype=np.int64)
    skipped = -words.ctypes.data % _CACHE_LINE // words.itemsize
    block = words[skipped : skipped + capacity * _RECORD].reshape(capacity, _RECORD)
    floats = block.view(np.float64)
    names = f"{_FIRST_LINE} {_SECOND_LINE}".split()
    return {name: (floats if name in _FLOATS else block)[:, at] for at, name in enumerate(names)}
