"""What rows' texts have more often than all others, in sentences.

Passages are told by their words, "says refund: 41 %, elsewhere 2 %", and lines, as programs log
them, by what they have in common: "Failed password for <*> from <*>: 43 %, elsewhere 0 %". Texts
have no columns to be told by; a word that is in a text or not is such a column, and so is whether
a line has the words of a template in their order. Both are judged as a rule on a column is
(`weald.answers.description.sentences`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weald.stream.record.fields.words import MASK, line_tokens, template, words_of

from .sentences import Sentence, entropy_of, explain, nats_told

if TYPE_CHECKING:
    from weald.stream.record.fields.originals import Original
    from weald.stream.record.schema import Schema

__all__ = ["Templates", "Vocabulary", "explain_rows", "teller_of"]

# A word in fewer texts says nothing of many rows.
_FEWEST = 3
# Shares of the rows, and times the share elsewhere, from which a word is worth saying.
_LEAST_INSIDE, _TIMES = 0.1, 2.0
# Shares of lines from which a token is fixed in a template: the looser of two may tell more.
_FIXED = (0.5, 0.9)

Mask = NDArray[np.bool_]


def teller_of(texts: Sequence[str], schema: Schema | None) -> Templates | Vocabulary | None:
    """Return what tells of rows' texts, which are lines or passages; None where there are none."""
    if not any(texts):
        return None
    fields = [] if schema is None else [schema.fields[at] for at in schema.texts]
    lines = bool(fields) and fields[0].settings.tokens == "line"
    return Templates(texts) if lines else Vocabulary(texts)


def explain_rows(
    columns: Sequence[Original],
    teller: Templates | Vocabulary | None,
    inside: Mask,
    *,
    share: float | None = None,
) -> list[Sentence]:
    """Return what sets rows apart, by their columns and their texts; lines lead.

    Parameters are those of `weald.answers.description.sentences.explain`.
    """
    of_columns = explain(columns, inside, share=share)
    of_texts = [] if teller is None else teller.telling(inside)
    lead = isinstance(teller, Templates)
    return [*of_texts, *of_columns] if lead else [*of_columns, *of_texts]


class Templates:
    """Which line is of which template: has its words in their order, whatever is in between.

    Parameters
    ----------
    lines : sequence of str, length n
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._tokens = list(map(_tokens, lines))

    def telling(self, inside: Mask, most: int = 3) -> list[Sentence]:
        """Return templates of what is ``inside`` (n): each of a tenth or more that others leave."""
        weight = float(inside.mean())
        chosen: list[Sentence] = []
        left = inside
        while 0.0 < weight < 1.0 and len(chosen) < most and left.any():
            tokens = [self._tokens[at] for at in np.flatnonzero(left).tolist()]
            found = [self._sentence(template(tokens, share), inside) for share in _FIXED]
            best, holds = max(found, key=lambda each: each[0].information)
            added = (left & holds).sum() / inside.sum()
            if added < _LEAST_INSIDE or best.inside < _TIMES * best.elsewhere:
                break
            chosen.append(best)
            left = left & ~holds
        return chosen

    def _sentence(self, common: str, inside: Mask) -> tuple[Sentence, Mask]:
        words = [word for word in common.split() if word != MASK]
        of = {tokens: _in_order(words, tokens) for tokens in set(self._tokens)}
        holds = np.array([of[tokens] for tokens in self._tokens], dtype=bool)
        share, rest = holds[inside].mean(), holds[~inside].mean()
        weight = inside.mean()
        nats = nats_told(share, rest, weight)
        told = Sentence("line", common, float(share), float(rest), float(nats / entropy_of(weight)))
        return told, holds


@lru_cache(maxsize=1 << 16)
def _tokens(line: str) -> tuple[str, ...]:
    # A stream's clusters are told among the same lines, one after the other.
    return tuple(line_tokens(line))


def _in_order(words: Sequence[str], tokens: Sequence[str]) -> bool:
    rest = iter(tokens)
    return all(word in rest for word in words)


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

    def telling(self, inside: Mask, most: int = 3) -> list[Sentence]:
        """Return the words that tell most of who is ``inside`` (n), the most telling first."""
        n, n_inside = len(inside), int(inside.sum())
        if not 0 < n_inside < n or not self._words:
            return []
        own = self._has.T @ inside.astype(np.float64)
        share, rest = own / n_inside, (self._in_all - own) / (n - n_inside)
        weight = n_inside / n
        limit = float(entropy_of(np.array(weight)))
        nats = nats_told(share, rest, weight)
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
