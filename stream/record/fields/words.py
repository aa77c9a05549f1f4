"""Text to counts: a line or a passage becomes how often each of a fixed number of buckets was hit.

A token is hashed to its bucket, so no vocabulary is kept, and the same text gives the same counts
on every machine and in every version.

*Lines*, as programs log them, come from templates: fixed words with values in between. What looks
like a value is masked, and a token counts at its place. The first tokens, which say what kind of
line it is, count many times, and so does the length, since lines of one template are equally long:
a multinomial cluster that has not seen them all but forbids them. The other tokens count once, so
that one that varies by itself never splits a cluster; several that vary together do.

*Words* are a plain bag, for passages in which order says little.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal
from zlib import crc32

__all__ = ["MASK", "TextKind", "counts_of", "line_tokens", "template", "words_of"]

TextKind = Literal["line", "words"]

MASK = "<*>"
# How often a line counts its length, each of its first tokens, and each of the others.
LENGTH_COUNT = 40
HEAD_COUNT = 30
TOKEN_COUNT = 1
HEAD_TOKENS = 2
LONGEST_LINE = 40

_BETWEEN = re.compile(r"[\s=:,()\[\]{}\"';|<>]+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_DIGIT = re.compile(r"\d")
_HOST = re.compile(
    r"[a-z-]+(?:\.[a-z-]+)*\.(?:[a-z]{2}|com|net|org|edu|gov|mil|info|local)", re.IGNORECASE
)
# "May" is missing: it is a verb, too.
_CALENDAR = re.compile(
    r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
    r"|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?",
    re.IGNORECASE,
)


def counts_of(text: str, size: int, kind: TextKind) -> list[float]:
    """Return how often each of ``size`` buckets is hit.

    Parameters
    ----------
    text : str
    size : int
    kind : {"line", "words"}
    """
    counts = [0.0] * size
    if kind == "words":
        for word in words_of(text):
            counts[crc32(word.encode()) % size] += 1.0
        return counts
    tokens = line_tokens(text)
    for place, token in enumerate(tokens[:LONGEST_LINE]):
        bucket = crc32(f"{place} {token}".encode("utf-8", "replace")) % size
        counts[bucket] += HEAD_COUNT if place < HEAD_TOKENS else TOKEN_COUNT
    length = min(len(tokens), LONGEST_LINE)
    counts[crc32(f"length {length}".encode()) % size] += LENGTH_COUNT
    return counts


def words_of(text: str) -> list[str]:
    """Return the words of a text, of two letters or more, in small letters."""
    return _WORD.findall(text.lower())


def line_tokens(text: str) -> list[str]:
    """Return the tokens of a line, values masked, and several values in a row as one."""
    tokens: list[str] = []
    for piece in _BETWEEN.split(text):
        token = piece.strip(".!?")
        if not token:
            continue
        if _is_value(token):
            if tokens[-1:] == [MASK]:
                continue
            token = MASK
        tokens.append(token)
    return tokens


def _is_value(token: str) -> bool:
    """Numbers and whatever has digits, paths, hosts, names of days and months."""
    if _DIGIT.search(token) or "/" in token:
        return True
    return bool(_CALENDAR.fullmatch(token) or _HOST.fullmatch(token))


def template(lines: Sequence[Sequence[str]], fixed: float = 0.5) -> str:
    """Return what lines have in common, which are told by their tokens.

    It is of the lines of the most usual length, masked where no token is in more than the share
    ``fixed`` of them.
    """
    lengths = Counter(map(len, lines))
    usual = max(sorted(lengths), key=lengths.__getitem__, default=0)
    alike = [tokens for tokens in lines if len(tokens) == usual]
    common: list[str] = []
    for column in zip(*alike, strict=True):
        counts = Counter(column)
        token = max(sorted(counts), key=counts.__getitem__)
        shown = token if counts[token] > fixed * len(column) else MASK
        if not (shown == MASK and common[-1:] == [MASK]):
            common.append(shown)
    return " ".join(common)
