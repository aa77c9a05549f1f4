"""Looks at the first records of a file and proposes a schema, saying why."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weald.cli.errors import NotFoundError, UsageError
from weald.stream.errors import SchemaError
from weald.stream.record.inference.proposal import SchemaProposal, proposed

from .decimal_commas import comma_columns, with_points
from .refused_rows import RefusedRow, tell_refused
from .table import open_text

if TYPE_CHECKING:
    from weald.stream.record.formats import Format

__all__ = ["Oddities", "numbered_records", "propose", "refuse_semicolons", "refuse_without_records"]

LOOKED_AT = 1000


@dataclass
class Oddities:
    """What was odd about a file, gathered while its records are read.

    Attributes
    ----------
    passes_over : bool
        Whether lines that are no record are passed over.
    refused : list of RefusedRow
        These.
    decimal_commas : list of str
        Columns whose numbers have decimal commas.
    """

    passes_over: bool = True
    refused: list[RefusedRow] = field(default_factory=list)
    decimal_commas: list[str] = field(default_factory=list)


def propose(path: Path) -> SchemaProposal:
    """Propose a schema for the records of a file in any of a stream's formats.

    Raises
    ------
    NotFoundError, UsageError
        If there is no such file, or no record in it that can be read.
    """
    from weald.stream.record.formats import format_of
    from weald.stream.settings import StreamSettings

    refuse_semicolons(path)
    odd = Oddities()
    # As the stream will read it.
    separator = "\t" if path.name.removesuffix(".gz").lower().endswith(".tsv") else ","
    form = format_of(StreamSettings(source="file", path=str(path)))
    rows = itertools.islice(numbered_records(path, separator, form, odd), LOOKED_AT)
    records = [record for _, record in rows]
    if odd.decimal_commas:
        raise UsageError(
            f"{path}: numbers of {', '.join(odd.decimal_commas)} seem to have decimal commas, and "
            "a stream reads points",
            next_step="write them with points; `weald look` and `weald fit` without --config read "
            "them as they are",
        )
    refuse_without_records(path, odd, len(records))
    told = "cannot be read: a stream sets such records aside"
    tell_refused(path, odd.refused, len(records) + len(odd.refused), told)
    try:
        return proposed(records, str(path))
    except SchemaError as error:
        raise UsageError(str(error)) from error


def refuse_without_records(path: Path, odd: Oddities, n_records: int) -> None:
    """Raise UsageError for a file of which no line is a record."""
    if odd.refused and not n_records:
        first = odd.refused[0]
        raise UsageError(f"{path}: no line is a record: line {first.line} {first.detail}")


def refuse_semicolons(path: Path) -> None:
    """Raise UsageError for a CSV file whose cells are parted by semicolons: no stream reads it."""
    if not path.name.removesuffix(".gz").lower().endswith(".csv") or not path.is_file():
        return
    with open_text(path) as lines:
        header = next(lines, "")
    if ";" in header and "," not in header:
        raise UsageError(
            f"{path}: its cells seem to be parted by semicolons, and a stream reads commas (tabs "
            "in .tsv)",
            next_step="write it with commas between cells and points in numbers; `weald look` and "
            "`weald fit` without --config read it as it is",
        )


def numbered_records(
    path: Path, separators: str, form: Format, oddities: Oddities | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the records of a file in any of a stream's formats, nested fields by dotted paths.

    Each comes after the line it ends on (of columnar files: its row).

    Parameters
    ----------
    path : Path
    separators : str
        Those that a text table may have; the one that its header has most of is.
    form : str
        As `weald.stream.record.formats.format_of` has it.
    oddities : Oddities, optional
        What is told of decimal commas, and of lines of JSON that are no record, which are then
        passed over.

    Raises
    ------
    NotFoundError, UsageError
        If there is no such file, or a record in it that cannot be read.
    """
    oddities = oddities or Oddities(passes_over=False)
    if not path.is_file():
        raise NotFoundError(f"{path}: no such file")
    if form == "packed":
        raise UsageError(
            f"{path}: packed numbers have no names", next_step="weald init --fields A,B"
        )
    if form in ("parquet", "arrow", "avro"):
        yield from enumerate(_rows(path, form), start=1)
        return
    # A log may hold bytes of any program; a table that does is not read on.
    with open_text(path, "replace" if form == "lines" else "strict") as lines:
        if form == "csv":
            header = next(lines, "")
            separator = max(separators, key=header.count)
            yield from _cells(itertools.chain([header], lines), separator, oddities)
            return
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                whole = {"line": line} if form == "lines" else _object(path, number, line)
            except UsageError as error:
                if not oddities.passes_over:
                    raise
                detail = str(error).partition(f"line {number} ")[2]
                oddities.refused.append(RefusedRow(number, detail))
                continue
            yield number, dict(_flattened(whole))


def _cells(
    lines: Iterable[str], separator: str, oddities: Oddities
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line and record of each row of a table, decimal commas as points."""
    reader = csv.DictReader(lines, delimiter=separator)
    numbered = ((reader.line_num, record) for record in reader)
    head = list(itertools.islice(numbered, LOOKED_AT))
    commas = comma_columns([record for _, record in head], separator)
    oddities.decimal_commas += commas
    for line, record in itertools.chain(head, numbered):
        yield line, with_points(record, commas) if commas else record


def _rows(path: Path, form: Any) -> Iterator[dict[str, Any]]:
    from weald.stream.source.table_reader import open_rows

    reader = open_rows(str(path), form, record_bytes=8)
    try:
        while rows := reader.take(LOOKED_AT, 0.0):
            for row in rows:
                yield dict(_flattened(json.loads(row)))
    finally:
        reader.close()


def _object(path: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}: line {number} is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise UsageError(f"{path}: line {number} is not an object")
    return record


def _flattened(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
