"""Tables: drawn to the width of a terminal, and as plain aligned text everywhere else.

What is piped has no width and no escape codes, so that ``less``, ``awk`` and a log file see all of
it. On a terminal too narrow for a table, columns give way, the least important first.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from weald.answers.numbers import number

__all__ = ["Column", "folded", "printable", "show_all_columns", "write_table"]

# Text is folded down to so many characters before any column gives way, and to so many where
# those that stay find no room.
FOLDED, NARROWEST = 24, 10
GAP = 2


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    key : str
        Of the row.
    title : str
        What stands above it.
    align : {"left", "right"}
        Texts and numbers.
    show : callable
        How a value reads.
    gives_way : int
        On a terminal that is too narrow columns leave from the highest down, of equals the
        rightmost first; those of 0 stay.
    """

    key: str
    title: str
    align: Literal["left", "right"] = "left"
    show: Callable[[Any], str] = number
    gives_way: int = 0


# Whether all columns are shown, however narrow the terminal is; --wide says so.
_all_columns = [False]


def show_all_columns(wide: bool) -> None:  # noqa: FBT001  # the shape that typer calls
    """Have every later table show all of its columns, or those that fit."""
    _all_columns[:] = [wide]


def printable(text: str) -> str:
    """Return the text with every control character escaped.

    A terminal obeys what it is sent, and a record's key may come from anybody.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def folded(text: str, indent: int) -> list[str]:
    """Return the lines of a text that stands beside others on a terminal; elsewhere it is one."""
    room = shutil.get_terminal_size().columns - indent
    if not sys.stdout.isatty() or room < NARROWEST:
        return [text]
    return textwrap.wrap(text, room, break_on_hyphens=False) or [text]


def write_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> list[str]:
    """Write rows on standard output, and return the titles of the columns that found no room."""
    cells = [[printable(column.show(row.get(column.key))) for column in columns] for row in rows]
    if sys.stdout.isatty():
        return _write_rich(cells, columns)
    widths = [max(map(len, texts)) for texts in _by_column(cells, columns)]
    for line in [[column.title for column in columns], *cells]:
        texts = [
            text.rjust(width) if column.align == "right" else text.ljust(width)
            for text, width, column in zip(line, widths, columns, strict=True)
        ]
        sys.stdout.write((" " * GAP).join(texts).rstrip() + "\n")
    return []


def _by_column(cells: Sequence[Sequence[str]], columns: Sequence[Column]) -> list[tuple[str, ...]]:
    return list(zip([column.title for column in columns], *cells, strict=True))


def _write_rich(cells: Sequence[Sequence[str]], columns: Sequence[Column]) -> list[str]:
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    widths = [max(map(cell_len, texts)) for texts in _by_column(cells, columns)]
    if _all_columns[0]:
        console.width = max(console.width, sum(widths) + GAP * len(widths))
    least = [
        width if column.align == "right" else min(width, FOLDED)
        for width, column in zip(widths, columns, strict=True)
    ]
    shown = _fitting(least, columns, console.width)
    texts = [at for at in shown if columns[at].align == "left"]
    while texts and sum(least[at] + GAP for at in shown) > console.width:
        widest = max(texts, key=lambda at: least[at])
        if least[widest] <= NARROWEST:
            break
        least[widest] -= 1
    # Where those that stay find no room the terminal wraps their lines, and cuts no number.
    console.width = max(console.width, sum(least[at] + GAP for at in shown))
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="bold")
    for at in shown:
        # Numbers are never cut short: a truncated number is a wrong number.
        right = columns[at].align == "right"
        table.add_column(
            escape(columns[at].title),
            justify=columns[at].align,
            no_wrap=right,
            min_width=least[at],
            overflow="fold",
        )
    for line in cells:
        table.add_row(*(escape(line[at]) for at in shown))
    console.print(table)
    return [column.title for at, column in enumerate(columns) if at not in shown]


def _fitting(widths: Sequence[int], columns: Sequence[Column], room: int) -> list[int]:
    """Places of the columns that stay where there is so much room."""
    shown = list(range(len(columns)))
    while sum(widths[at] + GAP for at in shown) > room:
        leaving = max(shown, key=lambda at: (columns[at].gives_way, at))
        if columns[leaving].gives_way == 0:
            break
        shown.remove(leaving)
    return shown
