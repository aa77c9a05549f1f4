"""Answers on standard output, in the form that was asked for; everything else on standard error.

``json``, ``jsonl`` and ``csv`` hold full values under stable names; tables are ``table``'s affair.
What a spreadsheet or a terminal would obey is escaped in ``csv``, as it is in tables.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from weald.answers.numbers import number

from .csv_cells import safe_cell
from .table import Column, folded, printable, write_table

__all__ = [
    "Column",
    "Form",
    "note",
    "printable",
    "scrub_notes",
    "speak_through",
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


# What a message goes through before it is shown; settings put their secrets' eraser here.
_scrubbing: list[Callable[[str], str]] = []
# Who says it; nobody but standard error by itself.
_voice: list[Callable[[str], None]] = []


def scrub_notes(scrub: Callable[[str], str]) -> None:
    """Have every later note go through `scrub`, and no longer through an earlier one."""
    _scrubbing[:] = [scrub]


def speak_through(voice: Callable[[str], None]) -> None:
    """Have `voice` say every later note, in place of standard error."""
    _voice[:] = [voice]


def note(message: str) -> None:
    """Say something to the person at the terminal: standard error, never part of the answer.

    Where nobody reads it any more, as after ``2>&1 | head``, what the command does goes on.
    """
    for scrub in _scrubbing:
        message = scrub(message)
    if _voice:
        _voice[0](message)
        return
    try:
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        # What is left in the buffer has to go somewhere, or it fails again at the end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)


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
        _tell_hidden(write_table(rows, columns))


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
    facts = {_called(key): value for key, value in record.items() if key not in inner}
    width = max((len(name) for name in facts), default=0)
    for name, value in facts.items():
        for at, line in enumerate(folded(printable(number(value)), width + 2)):
            sys.stdout.write(f"{'' if at else name:<{width}}  {line}".rstrip() + "\n")
    hidden: dict[str, None] = {}
    for key, rows in inner.items():
        sys.stdout.write(f"\n{key.replace('_', ' ')}\n")
        columns = tables.get(key) or [Column(name, name.replace("_", " ")) for name in rows[0]]
        hidden |= dict.fromkeys(write_table(rows, columns))
    _tell_hidden(list(hidden))


def _called(key: str) -> str:
    """What a fact is called: that a number is a count is seen."""
    return key.removeprefix("n_").replace("_", " ")


def _tell_hidden(titles: Sequence[str]) -> None:
    if titles:
        sys.stdout.flush()
        note(f"left out for want of width: {', '.join(titles)}; --wide shows all")


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
            safe_cell(
                msgspec.json.encode(v).decode() if isinstance(v, list | tuple | Mapping) else v
            )
            for v in values
        )
