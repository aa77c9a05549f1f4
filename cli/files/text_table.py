"""Text tables as people have them: what parts cells, where the header is, and which rows are none.

Titles before the header are passed over, also those that a spreadsheet fills up with separators.
Where rows have one cell more than the header, the first one has no name, as R writes row names.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from weald.cli.terminal.csv_cells import is_number

from .refused_rows import RefusedRow
from .written_numbers import has_comma

__all__ = ["LOOKED_AT", "SEPARATORS", "TextTable", "is_table", "text_table"]

# What may part the cells of a text table; blanks may where none of them does.
SEPARATORS = ",|;\t"
_BLANK = " "
# First lines, by which it is known how a table is written.
LOOKED_AT = 1000
# A title has one cell, a header more.
_LEAST_CELLS = 2
# Fewer lines of a log may be alike.
_FEW_ROWS = 2
# Of a cell; a message has more.
_MOST_WORDS = 2
_MOSTLY = 0.9
_TOTALS = frozenset(
    {"total", "totals", "grand total", "sum", "average", "mean", "gesamt", "summe", "somme"}
)

Row = tuple[int, list[str]]


class TextTable(NamedTuple):
    """A text table, read as far as its header.

    Attributes
    ----------
    names:
        Of columns, all different: of those without one their places, "name (2)" where it is that
        of a later one, ``x1``, ``x2``, ... where there is no header.
    renamed:
        Those of these that the header does not have.
    named:
        Whether there is a header.
    line:
        Of the header or else the first row, from 1.
    rows:
        Cells of each row, blanks around them left out, after the line that it ends on: as many as
        there are names, or fewer.
    refused:
        Rows that are none, gathered while others are read.
    separator:
        What parts cells.
    """

    names: list[str]
    renamed: list[str]
    named: bool
    line: int
    rows: Iterator[Row]
    refused: list[RefusedRow]
    separator: str


def text_table(lines: Iterable[str], separators: str) -> TextTable:
    """Read a text table whose cells are parted by one of these separators.

    With one separator it is read as a stream reads it: from the header on its first line.
    """
    lines = iter(lines)
    beginning = list(itertools.islice(lines, LOOKED_AT))
    layout = _Layout(separators[0], [], 0, unnamed=False)
    if len(separators) > 1:
        layout = _layout(beginning, separators)
    separator = layout.separator
    rows = _rows(itertools.chain(beginning, lines), separator)
    skipped = list(itertools.islice(rows, layout.at + 1))
    if not skipped:
        return TextTable([], [], named=True, line=1, rows=iter(()), refused=[], separator=separator)
    line, first = skipped[-1]
    named = len(separators) == 1 or _names_columns(first, layout.rows[layout.at + 1 :])
    header = [""] * layout.unnamed + first
    names = _names_of_their_own(header) if named else [f"x{n + 1}" for n in range(len(first))]
    renamed = [own for own, name in zip(names, header, strict=True) if named and own != name]
    if not named:
        rows = itertools.chain([(line, first)], rows)
    refused: list[RefusedRow] = []
    told = _told(rows, len(names), header if named else [], refused)
    if len(separators) > 1:
        told = _without_total(told, refused)
    return TextTable(names, renamed, named, line, told, refused, separator)


def is_table(beginning: Sequence[str], separators: str) -> bool:
    """Whether lines are rows of a table rather than of a log: cells of a word or two, equally many.

    A log may have one comma on each line, as Python writes fractions of seconds.
    """
    layout = _layout(beginning, separators)
    rows = layout.rows[layout.at :]
    width, n = _width(rows)
    words = [len(cell.split()) for row in rows for cell in row]
    short = sum(each <= _MOST_WORDS for each in words)
    several = len(rows) > _FEW_ROWS and width > 0
    return several and n >= _MOSTLY * len(rows) and 4 * short >= 3 * len(words)


def _rows(lines: Iterable[str], separator: str) -> Iterator[Row]:
    """Rows with the lines that they end on; those without a cell are none."""
    if separator == _BLANK:
        lines = (_BLANK.join(line.split()) for line in lines)
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=separator != _BLANK)
    return ((reader.line_num, [cell.strip() for cell in row]) for row in reader if row)


def _cells(lines: Iterable[str], separator: str) -> list[list[str]]:
    """Cells of rows, as far as they can be read."""
    rows = []
    with contextlib.suppress(csv.Error):
        for _, row in _rows(lines, separator):
            rows.append(row)
    return rows


class _Layout(NamedTuple):
    """What parts cells, the first rows, which is the header, and whether a first name lacks."""

    separator: str
    rows: list[list[str]]
    at: int
    unnamed: bool


def _layout(beginning: Sequence[str], separators: str) -> _Layout:
    found = []
    for separator in separators:
        rows = _cells(beginning, separator)
        width, n = _width(rows)
        if width >= _LEAST_CELLS and 2 * n >= len(rows):
            at = _first_with(rows, width)
            # A comma may be in each number; no name of a column is one.
            found.append((not _has_number(rows[at]), n, separators.find(separator), rows, at))
    if found:
        *_, place, rows, at = max(found, key=lambda each: each[:3])
        separator = separators[place]
    else:
        rows = _cells(beginning, _BLANK)
        first = next(iter(beginning), "")
        if not _is_parted_by_blanks(rows, first):
            separator = max(separators, key=first.count)
            return _Layout(separator, _cells(beginning, separator), 0, unnamed=False)
        separator, at = _BLANK, _first_with(rows, _width(rows)[0])
    width = _width(rows)[0]
    filled = any(row[-1] for row in rows[at + 1 :] if len(row) == width)
    return _Layout(separator, rows, at, unnamed=len(rows[at]) == width - 1 and filled)


def _width(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Most frequent number of cells, and how many rows have it."""
    counts = Counter(len(row) for row in rows if len(row) >= _LEAST_CELLS)
    return counts.most_common(1)[0] if counts else (0, 0)


def _first_with(rows: Sequence[Sequence[str]], width: int) -> int:
    """The first row that has so many cells, not only the first filled, or one that names these."""
    fits = (len(row) >= width and (any(row[1:-1]) or all(row[1:])) for row in rows)
    at = next((at for at, is_it in enumerate(fits) if is_it), 0)
    before = rows[at - 1] if at else []
    if len(before) != width - 1 or not all(before):
        return at
    # One cell may be a title.
    alone = width == _LEAST_CELLS and _names_columns(rows[at], rows[at + 1 :])
    return at if alone else at - 1


def _is_parted_by_blanks(rows: Sequence[Sequence[str]], first: str) -> bool:
    """Whether cells between blanks are equally many, and half of them numbers.

    R puts all names in quotes; then the cells may be words.
    """
    width, n = _width(rows)
    cells = [cell for row in rows[1:] for cell in row]
    filled = 2 * sum(map(is_number, cells)) >= len(cells)
    names = len(rows[0]) if rows else 0
    in_quotes = names >= _LEAST_CELLS and first.count('"') == 2 * names and first.startswith('"')
    return n >= _MOSTLY * len(rows) and width > 0 and (filled or in_quotes)


def _has_number(row: Iterable[str]) -> bool:
    return any(is_number(cell) or has_comma(cell) for cell in row)


def _names_columns(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a row is a header: no fraction is in it, and not all of it is as in the rows below.

    Years may be names of columns beside others, and so may numbers that count.
    """
    if len(first) > _LEAST_CELLS and all(map(str.isdigit, first)):
        counted = [int(cell) for cell in first]
        if counted == list(range(counted[0], counted[0] + len(first))):
            return True
    if any(not cell.lstrip("+-").isdigit() and _has_number([cell]) for cell in first):
        return False
    # A header may come again.
    columns = list(itertools.zip_longest(*(row for row in rows if row != first)))
    if not columns:
        return not _has_number(first)
    if not first[0] and any(columns[0]):
        # Names of rows have none of their own; what it names may be years.
        return True
    return not all(
        _has_number([cell]) or cell in column
        for cell, column in zip(first, columns, strict=False)
        if cell
    )


def _names_of_their_own(header: Sequence[str]) -> list[str]:
    """Names of columns, all different. The last of a name has it, as in a stream."""
    names: list[str] = []
    for at in range(len(header), 0, -1):
        name = header[at - 1]
        own, n = name or f"column {at}", 1
        while own in names:
            n += 1
            own = f"{name} ({n})"
        names.append(own)
    return names[::-1]


def _told(
    rows: Iterable[Row], width: int, header: Sequence[str], refused: list[RefusedRow]
) -> Iterator[Row]:
    """Rows of so many cells; those that are none are refused."""
    for line, row in rows:
        while len(row) > width and not row[-1]:
            row.pop()
        if not any(row):
            problem = "is empty"
        elif row == header:
            problem = "is the header again"
        elif len(row) > width:
            problem = "more cells than the header"
        else:
            yield line, row
            continue
        refused.append(RefusedRow(line, problem))


def _without_total(rows: Iterable[Row], refused: list[RefusedRow]) -> Iterator[Row]:
    """Rows but for a last one that sums up the others."""
    held: Row | None = None
    for row in rows:
        if held is not None:
            yield held
        held = row
    if held is None:
        return
    line, cells = held
    label = next(filter(None, cells), "").rstrip(": ")
    if label.lower() in _TOTALS:
        refused.append(RefusedRow(line, f"is the {label} of the others"))
    else:
        yield held
