"""Numbers as people write them: "3,5", "1,234.50", "$12", "70.1 kg", "12 %".

A column has them if nearly all of its cells are numbers of one kind: with decimal commas or with
commas between thousands, all with the same sign of a currency before them or the same unit after
them, any word after a blank, without one a sign or a unit that is known. Between cells that commas
part, "1,234" is a thousand, as a comma that is decimal would have parted the cells; elsewhere it is
decimal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from weald.cli.terminal.output import note
from weald.stream.record.inference.field_inference import MOST_ODD

from .gap_words import is_gap

__all__ = ["Writing", "has_comma", "plain", "tell_writings", "writings_of"]

_SIGNS = r"[$€£¥₹]"
_CURRENCIES = (
    "USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|TRY|BRL|MXN|ZAR|KRW|SGD"
)
# After a number without a blank these are units. 10A, 3D, 4xx are names.
_UNITS = (
    "[nµμm]?g|kg|lbs?|oz|[nµμmck]?m|km/h|m/s|mi|ft|in|yd|[mc]?l|mL|[nµμm]?s|min|h|hrs?"
    "|[kMG]?Hz|[kM]?W|[kM]?Wh|[mk]V|mA|h?Pa|kPa|[kM]?J|k?cal|[kKMGT]i?B|mph|rpm|bpm|dB|px|k|K|M"
)
_CELL = re.compile(
    rf"(?P<before>[A-Z]{{0,2}}{_SIGNS}|(?:{_CURRENCIES})(?=\s)|)\s*"
    r"(?P<number>[+-]?[\d.,'\u00a0\u202f]*\d(?:[eE][+-]?\d+)?)"
    rf"\s*(?P<after>[%‰]|°\s?[CF]?|{_SIGNS}|(?:{_UNITS})[23²³]?"
    r"|(?<=\s)[^\W\d_][^\d,;()]{0,11}[23]?|)"
)
_SIGNED = re.compile(rf"([+-])\s*([A-Z]{{0,2}}{_SIGNS})")
_GROUPS = re.compile(r"(?<=\d)['\u00a0\u202f](?=\d{3}(?:\D|$))")
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_PLAIN = re.compile(rf"[+-]?\d*\.?\d+{_EXPONENT}")
_WHOLE = re.compile(r"[+-]?\d+")
_POINT = re.compile(rf"[+-]?\d*\.\d+{_EXPONENT}")
_COMMA = re.compile(rf"[+-]?\d*,\d+{_EXPONENT}")
_COMMA_AFTER_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+,\d+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")


class Writing(NamedTuple):
    """How the numbers of a column are written.

    Attributes
    ----------
    comma:
        What commas are: "" where there are none.
    before, after:
        What stands around nearly every number.
    parted:
        Whether apostrophes, or blanks that do not break, are between thousands.
    """

    comma: str
    before: str
    after: str
    parted: bool

    def plain(self, cell: str) -> str:
        """The number of a cell as Python reads it; the cell where it is written otherwise."""
        found = _CELL.fullmatch(_with_sign_inside(cell))
        if found is None or {found["before"], found["after"].strip()} - {
            self.before,
            self.after,
            "",
        }:
            return cell
        number = _GROUPS.sub("", found["number"])
        if self.comma == DECIMAL and not _POINT.fullmatch(number):
            return number.replace(".", "").replace(",", ".")
        return number.replace(",", "") if self.comma == BETWEEN_THOUSANDS else number


DECIMAL, BETWEEN_THOUSANDS = "decimal points", "between thousands"


def writings_of(records: Sequence[Mapping[Any, Any]], separator: str) -> dict[Any, Writing]:
    """How numbers are written in those columns of a table where they are not plain.

    Parameters
    ----------
    records : sequence of mapping
        Some hundred rows, from the column's name or place to the cell's text.
    separator : str
        What parts the cells.
    """
    names = dict.fromkeys(name for record in records for name in record)
    found = {name: _writing(_cells(records, name), separator) for name in names}
    return {name: writing for name, writing in found.items() if writing is not None}


def _cells(records: Sequence[Mapping[Any, Any]], name: Any) -> Sequence[str]:
    cells = (record.get(name) for record in records)
    return [cell for cell in cells if isinstance(cell, str) and not is_gap(cell)]


def _writing(cells: Sequence[str], separator: str) -> Writing | None:
    if all(map(_PLAIN.fullmatch, cells)):
        return None
    most_odd = MOST_ODD * len(cells)
    matches = [found for cell in cells if (found := _CELL.fullmatch(_with_sign_inside(cell)))]
    if not matches or len(cells) - len(matches) > most_odd:
        return None
    around: list[str] = []
    for side in ("before", "after"):
        texts = [found[side].strip() for found in matches]
        said = set(texts) - {""}
        if len(said) > 1 or (said and texts.count("") > most_odd):
            return None
        around.append(said.pop() if said else "")
    numbers = [found["number"] for found in matches]
    together = [_GROUPS.sub("", number) for number in numbers]
    comma = _commas(together, separator, most_odd)
    before, after = around
    writing = Writing(comma, before, after, parted=numbers != together)
    return writing if any(writing) else None


def _commas(numbers: Sequence[str], separator: str, most_odd: float) -> str:
    """What commas are in numbers, of which so many may be written otherwise; "" if nothing."""
    with_comma = [number for number in numbers if "," in number]
    n_plain = sum(map(bool, map(_WHOLE.fullmatch, numbers)))
    n_points = sum(map(bool, map(_POINT.fullmatch, numbers)))
    n_thousands = sum(map(bool, map(_THOUSANDS.fullmatch, with_comma)))
    n_decimal = sum(
        bool(_COMMA.fullmatch(each) or _COMMA_AFTER_GROUPS.fullmatch(each)) for each in with_comma
    )
    certain = separator != "," or n_thousands < len(with_comma)
    if n_decimal and certain and not n_points and len(numbers) - n_plain - n_decimal <= most_odd:
        return DECIMAL
    if n_thousands and len(numbers) - n_plain - n_points - n_thousands <= most_odd:
        return BETWEEN_THOUSANDS
    return ""


def _with_sign_inside(cell: str) -> str:
    return _SIGNED.sub(r"\2\1", cell.strip())


def has_comma(cell: str) -> bool:
    """Whether a cell is a number with a decimal comma, if commas are that."""
    return _COMMA.fullmatch(cell.strip()) is not None


def plain(record: Mapping[Any, Any], writings: Mapping[Any, Writing]) -> dict[Any, Any]:
    """The record with the numbers of these columns as Python reads them; what is none stays."""
    found = dict(record)
    for name, writing in writings.items():
        cell = found.get(name)
        if isinstance(cell, str):
            found[name] = writing.plain(cell)
    return found


def tell_writings(path: Path, writings: Mapping[str, Writing]) -> None:
    """Say how numbers are read."""
    for comma in (DECIMAL, BETWEEN_THOUSANDS):
        if names := [name for name, writing in writings.items() if writing.comma == comma]:
            note(f"{path}: commas are {comma} in {', '.join(names)}")
    if names := [name for name, writing in writings.items() if writing.parted]:
        note(f"{path}: apostrophes or blanks part thousands in {', '.join(names)}")
    for side in ("before", "after"):
        said = {name: getattr(writing, side) for name, writing in writings.items()}
        if told := [f"{text} in {name}" for name, text in said.items() if text]:
            note(f"{path}: {side} numbers, left out: {', '.join(told)}")
