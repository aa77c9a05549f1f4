"""From words to the blocks that have them: the density of one bag under all blocks at once.

With hundreds of blocks, most of them small, most words of a bag are in few blocks. One by one, each
block would be asked for every word; by the index, each word names its blocks. A word has room for
as many blocks as there are atoms that have it, so the index is as large as the atoms' non-zeros.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.compiled.compile import compiled
from weald.treecore.statistics.log_gamma import log_rising
from weald.treecore.statistics.sparse_rows import SparseRows

from .dirichlet_multinomial import DirichletMultinomial

__all__ = ["WordIndex", "enter_row", "log_joins", "make_index", "withdraw_row"]

_TOKENS, _SCORE = 2, 3


class WordIndex(NamedTuple):
    """The blocks of word w are at ``start[w]`` and on, ``used[w]`` of them, in no order.

    Attributes
    ----------
    start, used:
        Of each word, int64 (vocabulary + 1), (vocabulary).
    block, n_atoms, weight:
        A block, how many of its atoms have the word, and the word's weight in it: int64, int64,
        float64 (non-zeros).
    shared:
        Scratch, float64 (slots).
    """

    start: NDArray[np.int64]
    used: NDArray[np.int64]
    block: NDArray[np.int64]
    n_atoms: NDArray[np.int64]
    weight: NDArray[np.float64]
    shared: NDArray[np.float64]


@compiled
def make_index(
    rows: SparseRows, label: NDArray[np.int64], n_slots: int, vocabulary: int
) -> WordIndex:
    """Index of the blocks of atoms, ``label`` (n) below n_slots, -1 for none; of sparse rows."""
    n = label.shape[0]
    start = np.zeros(vocabulary + 1, dtype=np.int64)
    for i in range(n):
        for slot in range(rows.start[i], rows.start[i] + rows.used[i]):
            start[rows.word[slot] + 1] += 1
    for word in range(vocabulary):
        start[word + 1] += start[word]
    room = start[vocabulary]
    index = WordIndex(
        start,
        np.zeros(vocabulary, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.zeros(room),
        np.zeros(n_slots),
    )
    for i in range(n):
        if label[i] >= 0:
            enter_row(index, label[i], rows, i)
    return index


@compiled
def _place_of(index: WordIndex, word: int, k: int) -> int:
    """Place of block k among those of a word; behind the last where it is not there."""
    place, end = index.start[word], index.start[word] + index.used[word]
    while place < end and index.block[place] != k:
        place += 1
    return place


@compiled
def enter_row(index: WordIndex, k: int, rows: SparseRows, i: int) -> None:
    """Note that atom i came into block k."""
    for slot in range(rows.start[i], rows.start[i] + rows.used[i]):
        word = rows.word[slot]
        place = _place_of(index, word, k)
        if place == index.start[word] + index.used[word]:
            index.used[word] += 1
            index.block[place], index.n_atoms[place], index.weight[place] = k, 0, 0.0
        index.n_atoms[place] += 1
        index.weight[place] += rows.weight[slot]


@compiled
def withdraw_row(index: WordIndex, k: int, rows: SparseRows, i: int) -> None:
    """Note that atom i left block k."""
    for slot in range(rows.start[i], rows.start[i] + rows.used[i]):
        word = rows.word[slot]
        place = _place_of(index, word, k)
        index.n_atoms[place] -= 1
        index.weight[place] -= rows.weight[slot]
        if index.n_atoms[place] == 0:
            index.used[word] -= 1
            last = index.start[word] + index.used[word]
            index.block[place] = index.block[last]
            index.n_atoms[place] = index.n_atoms[last]
            index.weight[place] = index.weight[last]


@compiled
def log_joins(  # noqa: PLR0913 - an index, a family, and places in two kinds of rows
    index: WordIndex,
    family: DirichletMultinomial,
    blocks: Any,
    slots: NDArray[np.int64],
    rows: Any,
    i: int,
    out: NDArray[np.float64],
) -> None:
    """Log predictive likelihood of atom i, which is in no block, given each of the blocks.

    These are the rows ``slots`` of ``blocks``. Written to ``out[:len(slots)]``.
    """
    from_word, from_all = family.from_word, family.from_all
    block, weights, shared = index.block, index.weight, index.shared
    # Of a word that a block lacks the ratio is that of a bag alone, which the atom's own score has
    # for all its words. So only words that both have are looked at (spec section 2.3).
    for at in range(slots.shape[0]):
        shared[slots[at]] = 0.0
    for slot in range(rows.start[i], rows.start[i] + rows.used[i]):
        word, weight = rows.word[slot], rows.weight[slot]
        alone = log_rising(from_word, 0, weight)
        first = index.start[word]
        for place in range(first, first + index.used[word]):
            there = weights[place]
            together = log_rising(from_word, 0, there + weight)
            shared[block[place]] += together - log_rising(from_word, 0, there) - alone
    # The normalising terms know nothing but the numbers of words.
    tokens, score = rows.head[i, _TOKENS], rows.head[i, _SCORE]
    for at in range(slots.shape[0]):
        before = blocks.head[slots[at], _TOKENS]
        all_words = log_rising(from_all, 0, before) - log_rising(from_all, 0, before + tokens)
        out[at] = score + shared[slots[at]] + all_words
