"""Answers on standard output, in the form that was asked for; everything else on standard error.

A table is drawn with rich on a terminal and with plain spaces when piped, so that ``less``,
``awk`` and a log file see no escape codes. ``json``, ``jsonl`` and ``csv`` hold full values under
stable names.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TextIO

from weald.answers.numbers import number

__all__ = [
    "Column",
    "Form",
    "note",
    "printable",
    "scrub_notes",
    "write_record",
    "write_rows",
]

Row = Mapping[str, Any]


class Form(StrEnum):
    """How an answer is written."""

    table = "table"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"


@dataclass(frozen=True)
class Column:
    """One column of a table: the key of the row, the title above it, and how a value reads."""

    key: str
    title: str
    align: Literal["left", "right"] = "left"
    show: Callable[[Any], str] = number


def printable(text: str) -> str:
    """Return the text with every control character escaped.

    A terminal obeys what it is sent, and a record's key may come from anybody.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


# What a message goes through before it is shown; settings put their secrets' eraser here.
_scrubbing: list[Callable[[str], str]] = []


def scrub_notes(scrub: Callable[[str], str]) -> None:
    """Have every later note go through `scrub`, and no longer through an earlier one."""
    _scrubbing[:] = [scrub]


def note(message: str) -> None:
    """Say something to the person at the terminal: standard error, never part of the answer."""
    for scrub in _scrubbing:
        message = scrub(message)
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


def write_rows(rows: Sequence[Row], columns: Sequence[Column], form: Form) -> None:
    """Write a list of rows.

    Parameters
    ----------
    rows : sequence of mappings
        Full values; ``json``, ``jsonl`` and ``csv`` write every key of a row.
    columns : sequence of Column
        What a table shows, in order; ``csv`` takes its header from the first row, or from these.
    form : Form
        ``json`` is one array; ``jsonl`` one object a line.
    """
    if form is Form.json:
        _write_json(list(rows))
    elif form is Form.jsonl:
        for row in rows:
            _write_json(row, indent=0)
    elif form is Form.csv:
        _write_csv(rows, [column.key for column in columns])
    else:
        _write_table(rows, columns, sys.stdout)


def write_record(
    record: Row, form: Form, *, tables: Mapping[str, Sequence[Column]] | None = None
) -> None:
    """Write one answer that is not a list.

    Parameters
    ----------
    record : mapping
        Values by name. A list of rows inside it is drawn as a table of its own.
    form : Form
        ``csv`` writes two columns, ``name`` and ``value``; inner tables are left as JSON text.
    tables : mapping of str to sequence of Column, optional
        The columns of each inner list of rows; without them the keys of its first row.
    """
    if form in (Form.json, Form.jsonl):
        _write_json(record, indent=2 if form is Form.json else 0)
    elif form is Form.csv:
        _write_csv([{"name": k, "value": v} for k, v in record.items()], ["name", "value"])
    else:
        _write_facts(record, tables or {})


def _write_facts(record: Row, tables: Mapping[str, Sequence[Column]]) -> None:
    inner = {key: value for key, value in record.items() if _is_rows(value)}
    facts = {key: value for key, value in record.items() if key not in inner}
    width = max((len(key) for key in facts), default=0)
    for key, value in facts.items():
        sys.stdout.write(
            f"{key.replace('_', ' '):<{width}}  {printable(number(value))}".rstrip() + "\n"
        )
    for key, rows in inner.items():
        sys.stdout.write(f"\n{key.replace('_', ' ')}\n")
        columns = tables.get(key) or [Column(name, name.replace("_", " ")) for name in rows[0]]
        _write_table(rows, columns, sys.stdout)


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _write_json(value: object, indent: int = 2) -> None:
    import msgspec

    encoded = msgspec.json.encode(value)
    sys.stdout.write((msgspec.json.format(encoded, indent=indent) if indent else encoded).decode())
    sys.stdout.write("\n")


def _write_csv(rows: Sequence[Row], names: Sequence[str]) -> None:
    import msgspec

    writer = csv.writer(sys.stdout, lineterminator="\n")
    keys = list(rows[0]) if rows else list(names)
    writer.writerow(keys)
    for row in rows:
        values = (row.get(key) for key in keys)
        writer.writerow(
            msgspec.json.encode(v).decode() if isinstance(v, list | tuple | Mapping) else v
            for v in values
        )


def _write_table(rows: Sequence[Row], columns: Sequence[Column], stream: TextIO) -> None:
    cells = [[printable(column.show(row.get(column.key))) for column in columns] for row in rows]
    if stream.isatty():
        _write_rich(cells, columns)
        return
    titles = [column.title for column in columns]
    widths = [max(map(len, texts)) for texts in zip(titles, *cells, strict=True)]
    for line in [titles, *cells]:
        texts = [
            text.rjust(width) if column.align == "right" else text.ljust(width)
            for text, width, column in zip(line, widths, columns, strict=True)
        ]
        stream.write("  ".join(texts).rstrip() + "\n")


def _write_rich(cells: Sequence[Sequence[str]], columns: Sequence[Column]) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        # Numbers are never cut short: a truncated number is a wrong number.
        right = column.align == "right"
        table.add_column(column.title, justify=column.align, no_wrap=right, overflow="fold")
    for line in cells:
        table.add_row(*(escape(text) for text in line))
    Console().print(table)
