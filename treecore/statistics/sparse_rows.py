"""Statistics rows by their non-zeros: bags of words over vocabularies of 10^5 and more.

All rows share one pool. A row is a segment of it: entries (word, observations, weight) side by
side, and an open-addressed index from words to entries, at most half full. Adding, taking out and
looking up cost what the smaller row has non-zeros. A row that outgrows its segment moves to the
end of the pool; when the pool has become mostly holes, the segments slide together in place.
Nothing is ever allocated, so kernels can work on these rows as they do on dense ones.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled, implements

from .log_gamma import log_rising
from .rows import (
    add_row,
    clear_row,
    copy_row,
    fade_row,
    is_single,
    rows_like,
    subtract_row,
    sum_rows,
)

__all__ = ["SparseRows", "dense_row", "find_word", "make_sparse_rows", "put_word", "seek"]

_NONE, _UNLINKED = -1, -2
_COUNT, _WEIGHT, _TOKENS, _SCORE = 0, 1, 2, 3
_TOP, _LIVE, _FIRST, _LAST = 0, 1, 2, 3
# Below this many slots a pool is never worth compacting.
_SLACK = 64
# A row that moves has two segments, the new one twice its entries.
_SLOTS = 3


class SparseRows(NamedTuple):
    """Rows of a shared pool; their order in the pool is a linked list.

    Attributes
    ----------
    head:
        Count, weight, tokens and score of each row, float64 (capacity, 4). The score is the sum of
        the log rising factorials of the words' weights, kept up to date word by word.
    start, room, used:
        Segment of each row in the pool: first slot, slots, entries; int64 (capacity).
    before, after:
        Neighbours in the pool of a row that has a segment, int64 (capacity): -1 at the ends of
        the list, -2 in ``before`` for a row without a segment, whose room is 0.
    word, seen, weight:
        Entries: the word, in how many of the row's observations it occurs, its weight (pool).
    lookup:
        Twice the pool; ``lookup[2 * start : 2 * (start + room)]`` maps a row's words to 1 + entry,
        0 where there is none.
    state:
        End of the used pool, entries in all rows, first and last row in the pool; int64 (4).
    from_word:
        Log rising factorials from the prior weight of a word, one row.
    """

    head: NDArray[np.float64]
    start: NDArray[np.int64]
    room: NDArray[np.int64]
    used: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    word: NDArray[np.int32]
    seen: NDArray[np.int32]
    weight: NDArray[np.float64]
    lookup: NDArray[np.int32]
    state: NDArray[np.int64]
    from_word: NDArray[np.float64]


def make_sparse_rows(capacity: int, n_entries: int, from_word: NDArray[np.float64]) -> SparseRows:
    """Empty rows that can hold ``n_entries`` entries at any one time, however they are spread."""
    # Untouched pages are free.
    pool = _SLOTS * n_entries + _SLACK
    return SparseRows(
        head=np.zeros((capacity, 4)),
        start=np.zeros(capacity, dtype=np.int64),
        room=np.zeros(capacity, dtype=np.int64),
        used=np.zeros(capacity, dtype=np.int64),
        before=np.full(capacity, _UNLINKED, dtype=np.int64),
        after=np.full(capacity, _NONE, dtype=np.int64),
        word=np.zeros(pool, dtype=np.int32),
        seen=np.zeros(pool, dtype=np.int32),
        weight=np.zeros(pool),
        lookup=np.zeros(2 * pool, dtype=np.int32),
        state=np.array([0, 0, _NONE, _NONE], dtype=np.int64),
        from_word=from_word,
    )


def dense_row(rows: SparseRows, i: int, vocabulary: int) -> NDArray[np.float64]:
    """Row i with a column for each of ``vocabulary`` words: [count, weight, tokens, weights...]."""
    row = np.zeros(3 + vocabulary)
    row[:3] = rows.head[i, :3]
    entries = slice(int(rows.start[i]), int(rows.start[i] + rows.used[i]))
    row[3 + rows.word[entries]] = rows.weight[entries]
    return row


@compiled
def _home(word: int, size: int) -> int:
    """Where in an index of this size a word belongs: Fibonacci hashing, scaled to the size."""
    return (((int(word) * 2654435769) & 0xFFFFFFFF) * size) >> 32


@compiled
def seek(
    lookup: NDArray[np.int32], words: NDArray[np.int32], start: int, room: int, word: int
) -> int:
    """Place of a word in the index of a row with a segment, or the free place where it would go.

    Takes arrays, not rows: a loop that looks many words up takes them out of the rows once.
    """
    size = 2 * room
    place = _home(word, size)
    while True:
        entry = lookup[2 * start + place]
        if entry == 0 or words[start + entry - 1] == word:
            return place
        place += 1
        if place == size:
            place = 0


@compiled
def _index_place(rows: SparseRows, i: int, word: int) -> int:
    return seek(rows.lookup, rows.word, rows.start[i], rows.room[i], word)


@compiled
def find_word(rows: SparseRows, i: int, word: int) -> int:
    """Slot of a word's entry in the pool, -1 where row i does not have it."""
    if rows.room[i] == 0:
        return _NONE
    entry = rows.lookup[2 * rows.start[i] + _index_place(rows, i, word)]
    return _NONE if entry == 0 else rows.start[i] + entry - 1


@compiled
def _index_entries(rows: SparseRows, i: int) -> None:
    base = 2 * rows.start[i]
    for place in range(2 * rows.room[i]):
        rows.lookup[base + place] = 0
    for entry in range(rows.used[i]):
        place = _index_place(rows, i, rows.word[rows.start[i] + entry])
        rows.lookup[base + place] = entry + 1


@compiled
def _unlink(rows: SparseRows, i: int) -> None:
    before, after = rows.before[i], rows.after[i]
    if before == _NONE:
        rows.state[_FIRST] = after
    else:
        rows.after[before] = after
    if after == _NONE:
        rows.state[_LAST] = before
    else:
        rows.before[after] = before
    rows.before[i] = _UNLINKED
    rows.room[i] = 0


@compiled
def _link_last(rows: SparseRows, i: int) -> None:
    last = rows.state[_LAST]
    rows.before[i], rows.after[i] = last, _NONE
    if last == _NONE:
        rows.state[_FIRST] = i
    else:
        rows.after[last] = i
    rows.state[_LAST] = i


@compiled
def _move_entries(rows: SparseRows, source: int, target: int, n: int) -> None:
    for entry in range(n):
        rows.word[target + entry] = rows.word[source + entry]
        rows.seen[target + entry] = rows.seen[source + entry]
        rows.weight[target + entry] = rows.weight[source + entry]


@compiled
def _compact(rows: SparseRows) -> None:
    """Slide all segments to the front, each as narrow as its entries."""
    top = 0
    i = rows.state[_FIRST]
    while i != _NONE:
        _move_entries(rows, rows.start[i], top, rows.used[i])
        rows.start[i], rows.room[i] = top, rows.used[i]
        _index_entries(rows, i)
        top += rows.used[i]
        following = rows.after[i]
        if rows.used[i] == 0:
            _unlink(rows, i)
        i = following
    rows.state[_TOP] = top


@compiled
def _give_room(rows: SparseRows, i: int, needed: int, spare: int) -> None:
    """Move row i to a new segment of ``needed`` slots and as many spare ones as there are."""
    used = rows.used[i]
    wanted = needed + spare
    pool = rows.word.shape[0]
    if rows.state[_TOP] + wanted > min(pool, 4 * rows.state[_LIVE] + _SLACK + wanted):
        _compact(rows)
    wanted = min(wanted, pool - rows.state[_TOP])
    if wanted < needed:
        raise MemoryError("sparse rows hold more entries than they were made for")
    source = rows.start[i]
    if rows.before[i] != _UNLINKED:
        _unlink(rows, i)
    rows.start[i], rows.room[i] = rows.state[_TOP], wanted
    rows.state[_TOP] += wanted
    _move_entries(rows, source, rows.start[i], used)
    _index_entries(rows, i)
    _link_last(rows, i)


@compiled
def put_word(rows: SparseRows, i: int, word: int, seen: int, weight: float) -> None:
    """Add weight to a word of row i, which ``seen`` more observations have now."""
    slot = find_word(rows, i, word)
    if slot == _NONE:
        if rows.used[i] == rows.room[i]:
            _give_room(rows, i, rows.used[i] + 1, rows.used[i] + 3)
        slot = rows.start[i] + rows.used[i]
        rows.word[slot], rows.seen[slot], rows.weight[slot] = word, 0, 0.0
        rows.used[i] += 1
        rows.lookup[2 * rows.start[i] + _index_place(rows, i, word)] = rows.used[i]
        rows.state[_LIVE] += 1
    before = log_rising(rows.from_word, 0, rows.weight[slot])
    rows.seen[slot] += seen
    rows.weight[slot] += weight
    rows.head[i, _SCORE] += log_rising(rows.from_word, 0, rows.weight[slot]) - before


@compiled
def _forget_place(rows: SparseRows, i: int, place: int) -> None:
    """Free a place of the index and close the gap in the words that were pushed beyond it."""
    base, size = 2 * rows.start[i], 2 * rows.room[i]
    gap, at = place, place
    while True:
        at = at + 1 if at + 1 < size else 0
        entry = rows.lookup[base + at]
        if entry == 0:
            break
        home = _home(rows.word[rows.start[i] + entry - 1], size)
        # An entry may fill the gap unless its home lies cyclically between the gap and itself.
        if (at - home) % size >= (at - gap) % size:
            rows.lookup[base + gap] = entry
            gap = at
    rows.lookup[base + gap] = 0


@compiled
def _take_word(rows: SparseRows, i: int, word: int, seen: int, weight: float) -> None:
    slot = find_word(rows, i, word)
    before = log_rising(rows.from_word, 0, rows.weight[slot])
    if rows.seen[slot] > seen:
        rows.seen[slot] -= seen
        rows.weight[slot] -= weight
        rows.head[i, _SCORE] += log_rising(rows.from_word, 0, rows.weight[slot]) - before
        return
    rows.head[i, _SCORE] -= before
    start, last = rows.start[i], rows.start[i] + rows.used[i] - 1
    _forget_place(rows, i, _index_place(rows, i, word))
    if slot != last:
        rows.lookup[2 * start + _index_place(rows, i, rows.word[last])] = slot - start + 1
        _move_entries(rows, last, slot, 1)
    rows.used[i] -= 1
    rows.state[_LIVE] -= 1


@implements(rows_like, SparseRows)
def _rows_like(rows: SparseRows, capacity: int, copies: int) -> SparseRows:
    n_entries = (rows.word.shape[0] - _SLACK) // _SLOTS
    return make_sparse_rows(capacity, copies * n_entries, rows.from_word)


@implements(clear_row, SparseRows)
def _clear_row(rows: SparseRows, i: int) -> None:
    for c in range(4):
        rows.head[i, c] = 0.0
    rows.state[_LIVE] -= rows.used[i]
    rows.used[i] = 0
    if rows.before[i] != _UNLINKED:
        _unlink(rows, i)


@implements(copy_row, SparseRows)
def _copy_row(rows: SparseRows, i: int, other: SparseRows, j: int) -> None:
    clear_row(rows, i)
    if other.used[j] > 0:
        _give_room(rows, i, other.used[j], 0)
    for entry in range(other.used[j]):
        source, target = other.start[j] + entry, rows.start[i] + entry
        rows.word[target] = other.word[source]
        rows.seen[target] = other.seen[source]
        rows.weight[target] = other.weight[source]
    rows.used[i] = other.used[j]
    rows.state[_LIVE] += rows.used[i]
    _index_entries(rows, i)
    for c in range(4):
        rows.head[i, c] = other.head[j, c]


@implements(add_row, SparseRows)
def _add_row(rows: SparseRows, i: int, other: SparseRows, j: int) -> None:
    if rows.head[i, _COUNT] == 0.0:
        copy_row(rows, i, other, j)
        return
    for c in range(3):
        rows.head[i, c] += other.head[j, c]
    for entry in range(other.used[j]):
        # Where row j starts is read every time: making room for row i may move it.
        source = other.start[j] + entry
        put_word(rows, i, other.word[source], other.seen[source], other.weight[source])


@implements(subtract_row, SparseRows)
def _subtract_row(rows: SparseRows, i: int, other: SparseRows, j: int) -> None:
    if rows.head[i, _COUNT] <= other.head[j, _COUNT]:
        clear_row(rows, i)
        return
    for c in range(3):
        rows.head[i, c] -= other.head[j, c]
    for entry in range(other.used[j]):
        source = other.start[j] + entry
        _take_word(rows, i, other.word[source], other.seen[source], other.weight[source])


@implements(sum_rows, SparseRows)
def _sum_rows(rows: SparseRows, i: int, j: int, k: int) -> None:
    larger, smaller = (j, k) if rows.used[j] >= rows.used[k] else (k, j)
    copy_row(rows, i, rows, larger)
    add_row(rows, i, rows, smaller)


@implements(fade_row, SparseRows)
def _fade_row(rows: SparseRows, i: int, factor: float) -> None:
    rows.head[i, _WEIGHT] *= factor
    rows.head[i, _TOKENS] *= factor
    rows.head[i, _SCORE] = 0.0
    for entry in range(rows.used[i]):
        slot = rows.start[i] + entry
        rows.weight[slot] *= factor
        rows.head[i, _SCORE] += log_rising(rows.from_word, 0, rows.weight[slot])


@implements(is_single, SparseRows)
def _is_single(rows: SparseRows, i: int) -> bool:
    return rows.head[i, _COUNT] == 1.0 and rows.head[i, _WEIGHT] == 1.0
