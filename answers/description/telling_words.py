"""Words that rows' texts have more often than all others: "says refund: 41 %, elsewhere 2 %".

Texts that a vector stands for (an embedding) have no columns to be told by; a word that is in a
text or not is such a column, and is judged as a rule on one
(`weald.answers.description.sentences`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from weald.stream.record.fields.words import words_of

from .sentences import Sentence

__all__ = ["Vocabulary"]

# A word in fewer texts says nothing of many rows.
_FEWEST = 3
# Shares of the rows, and times the share elsewhere, from which a word is worth saying.
_LEAST_INSIDE, _TIMES = 0.1, 2.0


class Vocabulary:
    """Which text has which word.

    Parameters
    ----------
    texts : sequence of str, length n
    """

    def __init__(self, texts: Sequence[str]) -> None:
        from scipy.sparse import csr_array

        code: dict[str, int] = {}
        rows = [
            sorted({code.setdefault(word, len(code)) for word in words_of(text)}) for text in texts
        ]
        ends = np.cumsum([0, *map(len, rows)])
        columns = np.concatenate([np.array(row, dtype=np.int64) for row in rows])
        shape = (len(texts), max(len(code), 1))
        self._has = csr_array((np.ones(len(columns)), columns, ends), shape=shape)
        self._in_all = self._has.sum(axis=0)
        self._words = list(code)

    def telling(self, inside: NDArray[np.bool_], most: int = 3) -> list[Sentence]:
        """Return the words that tell most of who is ``inside`` (n), the most telling first."""
        n, n_inside = len(inside), int(inside.sum())
        if not 0 < n_inside < n or not self._words:
            return []
        own = self._has.T @ inside.astype(np.float64)
        share, rest = own / n_inside, (self._in_all - own) / (n - n_inside)
        weight = n_inside / n
        limit = float(_entropy(np.array(weight)))
        nats = _entropy(self._in_all / n) - weight * _entropy(share) - (1 - weight) * _entropy(rest)
        needed = (log(n) + log(len(self._words)) + 2.0) / n
        good = (self._in_all >= _FEWEST) & (share >= _LEAST_INSIDE) & (share >= _TIMES * rest)
        chosen = np.flatnonzero(good & (nats >= needed))
        chosen = chosen[np.argsort(-nats[chosen], kind="stable")][:most]
        return [
            Sentence(
                column="text",
                what=f"says {self._words[at]}",
                inside=float(share[at]),
                elsewhere=float(rest[at]),
                information=float(nats[at]) / limit,
            )
            for at in chosen.tolist()
        ]


def _entropy(share: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import entr

    found: NDArray[np.float64] = entr(share) + entr(np.maximum(1.0 - share, 0.0))
    return found
