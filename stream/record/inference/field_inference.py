"""What the values of one field are, as far as a sample shows it, and why."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, time
from math import inf, isfinite
from operator import sub
from typing import Any, Literal, NamedTuple

from weald.stream.record.fields.words import HEAD_TOKENS, line_tokens

__all__ = [
    "MOST_EMPTY",
    "MOST_ODD",
    "FieldProposal",
    "Identifies",
    "as_category",
    "as_codes",
    "is_filled",
    "judged",
    "of_two_numbers",
]

MOST_EMPTY = 0.1
# Of a column of numbers, cells that are none: slips, for which a record is refused.
MOST_ODD = 0.1
LONGEST_SHOWN = 40
# Of texts with at most so many different values, each is a level of its own.
MOST_LEVELS = 50
LEAST_REPEATS = 3
# A line of text has several words; fewer are a name.
LEAST_WORDS = 3
# Fewer texts do not show whether they share templates.
LEAST_PASSAGES = 20
# Share of the beginnings of lines that may differ: modules and users have names of their own.
MOST_OF_TEMPLATES = 0.75
# Where the largest number is so many times the median, its logarithm tells more.
SKEWED = 50.0
# Ratios from here on are told by four digits: further ones say nothing.
MOST_DIGITS = 1e15
# Fewer that follow each other may do so by chance.
LEAST_COUNTED = 10
# Fewer numbers that are 0 or 1 may be small counts, and so may those that are one of them seldom.
LEAST_CODED = 50
LEAST_OF_CODE = 0.05
# Numbers of a run, where they begin anew.
LEAST_RUN = 50
MOSTLY = 0.9
# Of a field that is known to be a category.
MOST_STATED_LEVELS = 1000
# The last letters of nan, inf and infinity, in any case.
_ENDS_OF_NOT_FINITE = frozenset("nfy")
# Raised by `float`: JSON has integers of any length, and those of 309 digits overflow.
_NO_NUMBER = (TypeError, ValueError, OverflowError)
_SAME = "the same in every record"
_SAID_OF_ALL = ("a number", "a flag: yes or no")
_FLAGS = frozenset({"true", "false", "yes", "no"})
_COUNTS = re.compile(r"(^|_)(n|num|count|counts|total|hits|requests|errors|retries|bytes)(_|$)")
_IDENTIFIER = re.compile(r"((^|[._ -])(id|Id|ID|uuid|guid)|[a-z](Id|ID))$")
# What columns are called that number rows or name them, also where they have no name.
_OF_ROWS = re.compile(
    r"(|column \d+|unnamed: ?\d+|index|idx|row|rows?_?names?|row_?(no|num|number)|no|nr|name)\.?",
    re.IGNORECASE,
)
# What texts are called that name what a record is about.
_NAMING = re.compile(r"(^|[._ -])(name|address|street|email|url)$", re.IGNORECASE)
# 13:30, 1:30:15 PM; 31.03.2026, 3/31/26, 2026/3/31, 1 Mar 2026, March 1, 2026, with or without a
# clock after it.
# 1.10.22 may be a version of a program.
_CLOCK = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[ap]\.?m\.?)?"
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAY = "|".join(
    [
        r"\d{1,2}\.\d{1,2}\.\d{4}",
        r"\d{4}[./]\d{1,2}[./]\d{1,2}",
        r"\d{1,2}(?P<part>[/-])\d{1,2}(?P=part)(\d{4}|\d{2})",
        rf"\d{{1,2}}[ /-]{_MONTH},?[ /-](\d{{4}}|\d{{2}})",
        rf"{_MONTH}[ -]\d{{1,2}},?[ -]\d{{4}}",
    ]
)
_MOMENT = re.compile(rf"({_DAY})([ T]+{_CLOCK})?|{_CLOCK}", re.IGNORECASE)


# By its name, as it numbers the records one by one, or as what names them.
Identifies = Literal["by name", "by number", "as a name"]


class FieldProposal(NamedTuple):
    """What is proposed for a field.

    Attributes
    ----------
    settings:
        Of the field, beyond its path; None for one that is left out.
    reason:
        Why, in words.
    identifies:
        How one that is left out says which record it is, where it does.
    """

    settings: dict[str, Any] | None
    reason: str
    identifies: Identifies | None = None


def judged(name: str, values: Sequence[Any], most_empty: float = MOST_EMPTY) -> FieldProposal:
    """Judge one field by its name and its values.

    Parameters
    ----------
    name : str
        Path of the field.
    values : sequence
        One a record; None or an empty text where it has none.
    most_empty : float
        A field that is empty in a larger share is left out.
    """
    filled = _filled(values)
    problem = _problem(filled, len(values), most_empty)
    if problem is not None:
        return FieldProposal(None, f"left out: {problem}")
    return _with_gaps(_judged(name, filled), len(values) - len(filled), len(values))


def of_two_numbers(values: Sequence[Any]) -> FieldProposal | None:
    """Judge a field of numbers that has two of them, neither rare: these are no measurements."""
    counts = Counter(map(str, _filled(values)))
    if len(counts) != 2 or counts.total() < LEAST_CODED:
        return None
    if min(counts.values()) < LEAST_OF_CODE * counts.total():
        return None
    verdict = _levels(counts)._replace(reason="a category: two numbers that repeat")
    return _with_gaps(verdict, len(values) - counts.total(), len(values))


def as_category(values: Sequence[str | None]) -> FieldProposal:
    """Judge a field that is known to be a category, however many levels it has.

    Parameters
    ----------
    values : sequence of (str or None)
        One a record; None where it has none.
    """
    filled = [value for value in values if value is not None]
    counts = Counter(filled)
    if not filled:
        return FieldProposal(None, "left out: empty in every record")
    if len(counts) == len(filled) or len(counts) > MOST_STATED_LEVELS:
        return _names(len(counts), len(values))
    if len(counts) == 1:
        return FieldProposal(None, f"left out: {_SAME}")
    return _with_gaps(_levels(counts), len(values) - len(filled), len(values))


def as_codes(values: Sequence[Any], verdict: FieldProposal) -> FieldProposal:
    """Judge a field of numbers in quotes: whole ones that repeat are codes, which name things.

    Of records that tell texts from numbers, as JSON does; others are as ``judged`` said, by
    ``verdict``.
    """
    filled = _filled(values)
    n_codes = sum(isinstance(value, str) and value.isdecimal() for value in filled)
    if n_codes < len(filled) * (1.0 - MOST_ODD) or not all(isinstance(v, str) for v in filled):
        return verdict
    codes = _codes(filled, "whole numbers in quotes")
    return verdict if codes is None else _with_gaps(codes, len(values) - len(filled), len(values))


def _filled(values: Sequence[Any]) -> Sequence[Any]:
    """The values that are some; each different one is looked at once."""
    try:
        empty = {value for value in set(values) if not is_filled(value)}
    except TypeError:
        # Lists, which are long and seldom the same.
        return [value for value in values if is_filled(value)]
    return [value for value in values if value not in empty] if empty else values


def is_filled(value: Any) -> bool:
    """Whether a record has a value: a number that is none, or not finite, is as good as none."""
    if value is None or value == "":
        return False
    if isinstance(value, str) and value[-1:].lower() not in _ENDS_OF_NOT_FINITE:
        return True
    try:
        return isfinite(value if isinstance(value, int) else float(value))
    except _NO_NUMBER:
        return True


def _judged(name: str, filled: Sequence[Any]) -> FieldProposal:
    if isinstance(filled[0], list):
        size = len(filled[0])
        return FieldProposal({"size": size}, f"a vector of {size} numbers")
    if all(isinstance(value, bool) or str(value).lower() in _FLAGS for value in filled):
        return FieldProposal({"kind": "flag"}, "a flag: yes or no")
    numbers, odd = _numbers(filled)
    if len(odd) <= len(filled) * MOST_ODD:
        verdict = _identifier(name, filled, numbers) or _padded(filled) or _number(name, numbers)
        if not odd or verdict.settings is None:
            return verdict
        slip = f"{str(odd[0])[:LONGEST_SHOWN]!r}"
        told = f"{verdict.reason}; no number in {len(odd)} of {len(filled)} records, as {slip}"
        return verdict._replace(reason=told)
    texts = [str(value) for value in filled]
    return _moment(texts) or _other_moment(texts) or _category(texts) or _text(name, texts)


def _padded(filled: Sequence[Any]) -> FieldProposal | None:
    """Whole numbers of which some begin with 0 are codes where they repeat: no measurement does."""
    texts = [value for value in filled if isinstance(value, str) and value.isdecimal()]
    if len(texts) < len(filled) or not any(text[0] == "0" and len(text) > 1 for text in texts):
        return None
    return _codes(texts, "whole numbers with zeros in front")


def _codes(texts: Sequence[str], why: str) -> FieldProposal | None:
    """Whole numbers as a category, where they repeat."""
    levels = _category(texts)
    return None if levels is None else levels._replace(reason=f"{levels.reason}, {why}")


def _with_gaps(verdict: FieldProposal, n_empty: int, n_records: int) -> FieldProposal:
    """The verdict with how many records have no value, or that all have one."""
    if verdict.settings is None:
        return verdict
    if n_empty:
        gaps = f"; empty in {n_empty} of {n_records} records"
    else:
        gaps = " in every record" if verdict.reason in _SAID_OF_ALL else ""
    return verdict._replace(reason=verdict.reason + gaps)


def _problem(filled: Sequence[Any], n_records: int, most_empty: float) -> str | None:
    """Return why the values can be no feature of any kind, or None if they can."""
    if not filled:
        return "empty in every record"
    empty = n_records - len(filled)
    # Few gaps: such records become dead letters. Many: the field would lose most of the stream.
    if empty > n_records * most_empty:
        return f"empty in {empty} of {n_records} records"
    if not {list, dict}.isdisjoint(map(type, filled)):
        problem = _no_vector(filled)
        if problem is not None:
            return problem
    if any(value != filled[0] for value in filled):
        return None
    return f"the same in the {len(filled)} records that have it" if empty else _SAME


def _no_vector(filled: Sequence[Any]) -> str | None:
    """Return why values, of which some are lists, are no vectors, or None if they are."""
    if not all(isinstance(value, list) for value in filled):
        return "a list in some records, in others not"
    if not all(_is_number(each) for value in filled for each in value):
        return "lists of something else than numbers"
    sizes = sorted({len(value) for value in filled})
    if len(sizes) > 1:
        return f"lists of {sizes[0]} to {sizes[-1]} numbers"
    return None if sizes[0] else "empty lists"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(filled: Sequence[Any]) -> tuple[list[float], list[Any]]:
    """Numbers among the values, and those that are none."""
    if bool not in map(type, filled):
        with suppress(*_NO_NUMBER):
            return list(map(float, filled)), []
    numbers, odd = [], []
    for value in filled:
        try:
            numbers.append(float("" if isinstance(value, bool) else value))
        except _NO_NUMBER:
            odd.append(value)
    return numbers, odd


def _is_whole(numbers: Sequence[float]) -> bool:
    return min(numbers) >= 0.0 and all(map(float.is_integer, numbers))


def _identifier(name: str, filled: Sequence[Any], numbers: Sequence[float]) -> FieldProposal | None:
    """Whole numbers that say which record it is, or which thing it is about: no measurement."""
    if len(numbers) < LEAST_COUNTED or not _is_whole(numbers):
        return None
    if n_runs := _runs(numbers):
        runs = f", in {n_runs} runs" if n_runs > 1 else ""
        return FieldProposal(None, f"left out: numbers the records one by one{runs}", "by number")
    if _OF_ROWS.fullmatch(name) and len(set(numbers)) == len(numbers):
        return FieldProposal(None, "left out: an index, different in every record")
    if not _IDENTIFIER.search(name):
        return None
    n_different = len(set(numbers))
    if n_different < MOSTLY * len(numbers):
        # Of shops or devices, each in many records.
        levels = _category([str(value) for value in filled])
        if levels is not None:
            return levels._replace(reason=f"{levels.reason}, an identifier by its name")
        told = f"{n_different} different in {len(numbers)} records"
    else:
        told = f"different in {'' if n_different == len(numbers) else 'nearly '}every record"
    return FieldProposal(None, f"left out: an identifier, by its name, {told}", "by name")


def _number(name: str, numbers: Sequence[float]) -> FieldProposal:
    # Half the length, sorted: the statistics module would take as long to load as all commands.
    middle, largest = sorted(numbers)[len(numbers) // 2], max(numbers)
    last = name.rpartition(".")[2].lower()
    if min(numbers) >= 0 and largest > SKEWED * max(middle, 1e-300) and largest > SKEWED:
        ratio = largest / middle if middle else inf
        # Of very large ones not all digits: a slip or two in a column may make them.
        digits = ".0f" if ratio < MOST_DIGITS else ".4g"
        times = f"{ratio:{digits}} times" if isfinite(ratio) else "far above"
        return FieldProposal(
            {"scale": "log"}, f"a number, by its logarithm: the largest is {times} the median"
        )
    if _COUNTS.search(last) and _is_whole(numbers):
        return FieldProposal({"kind": "count"}, "a count: whole, from 0, and named like one")
    return FieldProposal({}, "a number")


def _runs(numbers: Sequence[float]) -> int:
    """In how many runs from the same start whole numbers follow each other; 0 where they do not.

    Runs are long: hours and days of the month begin anew, too, and say something.
    """
    steps = list(map(sub, numbers[1:], numbers))
    # A record that cannot be read leaves a step out.
    if steps.count(1.0) < MOSTLY * len(steps):
        return 0
    pairs = list(itertools.pairwise(numbers))
    begun = [later for number, later in pairs if later <= number]
    from_start = set(begun) <= {min(numbers)} and len(begun) * LEAST_RUN <= len(pairs)
    return 1 + len(begun) if from_start else 0


def _moment(texts: Sequence[str]) -> FieldProposal | None:
    try:
        moments = [datetime.fromisoformat(text) for text in texts]
    except ValueError:
        return None
    if all(moment.time() == time() for moment in moments):
        return FieldProposal({"kind": "time", "periods": ["week"]}, "a date: its place in the week")
    return FieldProposal({"kind": "time"}, "a time: its place in the day and in the week")


def _other_moment(texts: Sequence[str]) -> FieldProposal | None:
    """Dates and times of day that nobody can read alike: they are no names, and no categories."""
    if not all(_MOMENT.fullmatch(text.strip()) for text in texts):
        return None
    return FieldProposal(None, "left out: dates or times, not as ISO 8601 has them (2026-03-31)")


def _category(texts: Sequence[str]) -> FieldProposal | None:
    counts = Counter(texts)
    if len(counts) > MOST_LEVELS or len(texts) < LEAST_REPEATS * len(counts):
        return None
    return _levels(counts)


def _levels(counts: Counter[str]) -> FieldProposal:
    levels = [level for level, _ in counts.most_common()]
    return FieldProposal(
        {"kind": "category", "values": levels}, f"a category: {len(levels)} values that repeat"
    )


def _are_passages(texts: Sequence[str]) -> bool:
    """Whether texts are prose, of which few begin alike and are equally long.

    Lines that programs write are of templates, each of which many share.
    """
    tokens = [line_tokens(text) for text in texts]
    begun = Counter((len(each), *each[:HEAD_TOKENS]) for each in tokens)
    return len(texts) >= LEAST_PASSAGES and len(begun) > len(texts) * MOST_OF_TEMPLATES


def _text(name: str, texts: Sequence[str]) -> FieldProposal:
    words = sum(len(text.split()) for text in texts) / len(texts)
    if words >= LEAST_WORDS and not (_OF_ROWS.fullmatch(name) or _NAMING.search(name)):
        if _are_passages(texts):
            return FieldProposal(
                {"kind": "text", "tokens": "words"},
                f"a text: {words:.0f} words a record, as hashed counts of them in any order",
            )
        return FieldProposal(
            {"kind": "text"}, f"a text: {words:.0f} words a record, as hashed counts"
        )
    return _names(len(set(texts)), len(texts))


def _names(n_different: int, n_records: int) -> FieldProposal:
    told = f"left out: names, {n_different} different in {n_records} records"
    return FieldProposal(None, told, "as a name")
