"""Random numbers by counter: a function of seed, sweep, stage and row, and of nothing else.

Philox 4x32 with ten rounds (Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy
as 1, 2, 3"). Whoever has a row draws the same number for it, in any order, as often as it likes.
"""

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, inner

__all__ = ["RowKey", "row_key", "uniform_of_row", "uniforms"]

# Seed (low and high half), sweep and stage, as the cipher takes them.
RowKey = NDArray[np.uint64]

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_ROUNDS = 10


def row_key(seed: int, sweep: int, stage: int) -> RowKey:
    """The key of one drawing of all rows."""
    words = (seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF, sweep & 0xFFFFFFFF, stage & 0xFFFFFFFF)
    return np.array(words, dtype=np.uint64)


@inner
def uniform_of_row(key: RowKey, row: int) -> float:
    """A number of [0, 1), with 53 bits, for this row under this key."""
    at = np.uint64(row)
    c0, c1, c2, c3 = at & _LOW, at >> _HALF, key[2], key[3]
    k0, k1 = key[0], key[1]
    for _ in range(_ROUNDS):
        one = _FACTORS[0] * c0
        other = _FACTORS[1] * c2
        c0 = (other >> _HALF) ^ c1 ^ k0
        c1 = other & _LOW
        c2 = (one >> _HALF) ^ c3 ^ k1
        c3 = one & _LOW
        k0 = (k0 + _STEPS[0]) & _LOW
        k1 = (k1 + _STEPS[1]) & _LOW
    return ((c0 >> np.uint64(5)) * 67108864.0 + (c1 >> np.uint64(6))) * (1.0 / 9007199254740992.0)


@compiled
def uniforms(key: RowKey, rows: NDArray[np.int64], out: NDArray[np.float64]) -> None:
    """The numbers of some rows."""
    for r in range(out.shape[0]):
        out[r] = uniform_of_row(key, rows[r])
