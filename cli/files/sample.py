"""Looks at the first records of a file and proposes a schema, saying why."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weald.cli.errors import NotFoundError, UsageError
from weald.cli.terminal.csv_cells import is_number
from weald.cli.terminal.output import note
from weald.stream.errors import SchemaError
from weald.stream.record.inference.field_inference import (
    MOST_EMPTY,
    MOST_ODD,
    FieldProposal,
    as_codes,
    judged,
)
from weald.stream.record.inference.proposal import SchemaProposal, declared, named, proposed

from .gap_words import NO_NUMBER, is_gap
from .refused_rows import UNREADABLE, RefusedRow, tell_refused
from .table import open_bytes, open_text
from .text_table import LOOKED_AT, SEPARATORS, TextTable, text_table
from .written_numbers import DECIMAL, Writing, plain, tell_writings, writings_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weald.stream.record.formats import Format

__all__ = [
    "Oddities",
    "goes_over_lines",
    "in_quotes",
    "numbered_records",
    "propose",
    "refuse_unlike_a_stream",
    "refuse_without_records",
    "tell_oddities",
]

_NOT_PLAIN = FieldProposal(None, "left out: numbers, but not plain ones, as a stream reads them")
_NOT_NAMED = FieldProposal(None, "left out: it has no name of its own in the file")
_PARTED = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}


@dataclass
class Oddities:
    """What was odd about a file, gathered while its records are read.

    Attributes
    ----------
    refused : list of RefusedRow
        Lines that are no record, which are passed over.
    writings : dict of str to Writing
        How numbers are written, by column, where they are not plain.
    renamed : list of str
        What columns are called that have no name, or that of another.
    begins : int
        Line in which a table begins, 1 where nothing stands before it.
    """

    refused: list[RefusedRow] = field(default_factory=list)
    writings: dict[str, Writing] = field(default_factory=dict)
    renamed: list[str] = field(default_factory=list)
    begins: int = 1


def propose(path: Path) -> SchemaProposal:
    """Propose a schema for the records of a file in any of a stream's formats.

    Raises
    ------
    NotFoundError, UsageError
        If there is no such file, or no record in it that can be read.
    """
    from weald.stream.record.formats import format_of, separator_of
    from weald.stream.settings import StreamSettings

    garbled = refuse_unlike_a_stream(path)
    odd = Oddities()
    form = format_of(StreamSettings(source="file", path=str(path)))
    # As the stream will read it.
    rows = itertools.islice(numbered_records(path, separator_of(path.name), form, odd), LOOKED_AT)
    records = [record for line, record in rows if line not in garbled]
    broken = {each.line for each in odd.refused}
    odd.refused += [RefusedRow(line, "is not UTF-8") for line in sorted(garbled - broken)]
    commas = [name for name, writing in odd.writings.items() if writing.comma == DECIMAL]
    if commas:
        raise UsageError(
            f"{path}: numbers of {', '.join(commas)} seem to have decimal commas, and "
            "a stream reads points",
            next_step="write them with points; `weald look` and `weald fit` without --config read "
            "them as they are",
        )
    refuse_without_records(path, odd, len(records))
    try:
        proposal = proposed(records, str(path), stated=_not_of_a_stream(records, form, odd))
    except SchemaError as error:
        raise UsageError(str(error)) from error
    if form == "csv":
        fields = [each if _is_name(each) else named(each) for each in proposal.fields]
        proposal = replace(proposal, fields=fields)
    _tell_set_aside(path, proposal, odd)
    return proposal


def _tell_set_aside(path: Path, proposal: SchemaProposal, odd: Oddities) -> None:
    """Say which of a file's first records a stream of this schema would set aside."""
    import msgspec

    from weald.stream.settings import SchemaSettings

    from .stream_rows import stream_rows

    fields = declared(proposal.fields)
    settings = {"fields": fields, "key": proposal.key, "time": proposal.time}
    found = stream_rows(path, msgspec.convert(settings, SchemaSettings), LOOKED_AT)
    plain = {each.line: each for each in odd.refused}
    refused = [plain.get(each.line, each) for each in found.refused]
    have = "has" if len(refused) == 1 else "have"
    told = f"{have} a gap or cannot be read: a stream sets such records aside"
    tell_refused(path, refused, len(found.values) + len(refused), told)
    _tell_copies(path, found.values)


def _tell_copies(path: Path, values: NDArray[np.float64]) -> None:
    """Say how many records (n, d) are copies of others, of which a stream makes narrow clusters."""
    from weald.mcmc.offline.copies import are_originals, originals

    n_copies = int((~are_originals(originals(values))).sum())
    if n_copies:
        note(
            f"{path}: {n_copies} of {len(values)} records are exact copies of others: to a stream "
            "each is an observation, and copies of numbers make narrow clusters; leave them out "
            "before it (`weald look` and `weald fit` see them once)"
        )


def _is_name(field: str | Mapping[str, Any]) -> bool:
    """Whether the path of a field is of one part, as all columns of text are."""
    return "." not in (field if isinstance(field, str) else field["path"])


def _not_of_a_stream(
    records: list[dict[str, Any]], form: Format, odd: Oddities
) -> dict[str, FieldProposal]:
    """Columns that a stream cannot read: in a table every number is a text, elsewhere none is."""
    quoted: dict[str, FieldProposal] = {}
    if form != "csv":
        quoted = {
            name: _NOT_PLAIN if _is_number(verdict) else verdict
            for name, verdict in in_quotes(records).items()
        }
    named_otherwise = dict.fromkeys(odd.renamed, _NOT_NAMED)
    return {**quoted, **dict.fromkeys(odd.writings, _NOT_PLAIN), **named_otherwise}


def in_quotes(
    records: Sequence[Mapping[str, Any]], most_empty: float = MOST_EMPTY
) -> dict[str, FieldProposal]:
    """What columns are of which many values are texts, and that are numbers or codes.

    Of records that tell texts from numbers, as those of JSON do.
    """
    found = {}
    for name in dict.fromkeys(name for record in records for name in record):
        values = [record.get(name) for record in records]
        n_texts = sum(isinstance(value, str) and value != "" for value in values)
        if n_texts <= MOST_ODD * len(values):
            continue
        verdict = judged(name, values, most_empty)
        coded = as_codes(values, verdict)
        if _is_number(verdict) or (coded is not verdict and verdict.settings is not None):
            found[name] = coded
    return found


def _is_number(verdict: FieldProposal) -> bool:
    return verdict.settings is not None and not {"kind", "size"} & verdict.settings.keys()


def tell_oddities(path: Path, odd: Oddities) -> None:
    """Say how a file is read, where that is not plain to see."""
    if odd.begins > 1:
        note(f"{path}: what stands before line {odd.begins} is no row of the table")
    tell_writings(path, odd.writings)


def refuse_without_records(path: Path, odd: Oddities, n_records: int) -> None:
    """Raise UsageError for a file of which no line is a record."""
    if odd.refused and not n_records:
        first = odd.refused[0]
        raise UsageError(f"{path}: no line is a record: line {first.line} {first.detail}")


def refuse_unlike_a_stream(path: Path) -> set[int]:
    """Raise UsageError for a file that a look reads and no stream.

    Its text is not UTF-8, its cells are parted otherwise than by commas (tabs in ``.tsv``), or it
    holds JSON whose records are not each on a line.

    Returns
    -------
    set of int
        Those of the first lines that are not UTF-8, where others are: a stream sets them aside.
    """
    from weald.stream.record.formats import format_of
    from weald.stream.settings import StreamSettings

    form = format_of(StreamSettings(source="file", path=str(path)))
    if form not in ("csv", "jsonl", "lines") or not path.is_file():
        return set()
    with open_text(path) as lines:
        is_utf_16 = lines.encoding == "utf-16"
        table = text_table(lines, SEPARATORS) if form == "csv" else None
    read = _are_utf_8(path)
    garbled = {line for line, is_read in enumerate(read, start=1) if not is_read}
    problem = next_step = ""
    if is_utf_16 or len(garbled) > MOST_ODD * len(read) or (form == "csv" and 1 in garbled):
        problem = f"its text is {'UTF-16' if is_utf_16 else 'not UTF-8'}"
        next_step = "write it as UTF-8"
    elif form == "jsonl" and goes_over_lines(path):
        problem, next_step = "its records are not each on a line", "write one on each line"
    elif table is not None:
        problem = _unlike_a_stream_s(table, path)
        next_step = "write a header in its first line, commas between cells, points in numbers"
    if problem:
        raise UsageError(
            f"{path}: {problem}, and a stream reads UTF-8: tables with commas between cells (tabs "
            "in .tsv), JSON with a record on each line",
            next_step=f"{next_step}; `weald look` and `weald fit` without --config read it as it "
            "is",
        )
    return garbled


def _unlike_a_stream_s(table: TextTable, path: Path) -> str:
    """What a stream cannot read of a text table; "" where it reads it."""
    from weald.stream.record.formats import separator_of

    if table.separator != separator_of(path.name) and len(table.names) > 1:
        return f"its cells seem to be parted by {_PARTED[table.separator]}"
    if not table.named:
        return "its first line is a row, and no names of columns"
    return f"its header is in line {table.line}" if table.line > 1 else ""


def _are_utf_8(path: Path) -> list[bool]:
    """Whether each of a file's first lines is, as a stream reads it."""
    with open_bytes(path) as file:
        return [_is_utf_8(line) for line in itertools.islice(file, LOOKED_AT)]


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def goes_over_lines(path: Path) -> bool:
    """Whether a file of JSON goes over lines: an array of records, or an object with one in it.

    A line of an array of numbers is a record by itself, and so is an object alone on its line.
    """
    with open_text(path) as lines:
        filled = (line.strip() for line in lines if line.strip())
        first, second = next(filled, ""), next(filled, None)
    if first in ("[", "{") or (first[:1] == "[" and first[1:].lstrip()[:1] == "{"):
        return True
    if second is not None or first[:1] != "{":
        return False
    try:
        return bool(_arrays_in(json.loads(first)))
    except UNREADABLE:
        return False


def numbered_records(
    path: Path, separators: str, form: Format, oddities: Oddities
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the records of a file in any of a stream's formats, nested fields by dotted paths.

    Each comes after the line it ends on (of columnar files: its row).

    Parameters
    ----------
    path : Path
    separators : str
        Those that a text table may have.
    form : str
        As `weald.stream.record.formats.format_of` has it.
    oddities : Oddities
        To which is added what is odd.

    Raises
    ------
    NotFoundError, UsageError
        If there is no such file, or it cannot be read.
    """
    if not path.is_file():
        raise NotFoundError(f"{path}: no such file")
    if form == "packed":
        raise UsageError(
            f"{path}: packed numbers have no names", next_step="weald init --fields A,B"
        )
    if form in ("parquet", "arrow", "avro"):
        yield from enumerate(_rows(path, form), start=1)
        return
    with open_text(path) as lines:
        if form == "csv":
            try:
                table = text_table(lines, separators)
                yield from _plain(_records(table, oddities), table.separator, oddities)
            except csv.Error as error:
                raise UsageError(f"{path}: a cell has no end: {error}") from error
        elif form == "lines":
            numbered = enumerate(lines, start=1)
            yield from ((number, {"line": line}) for number, line in numbered if line.strip())
        elif goes_over_lines(path):
            elements = enumerate(_elements(path, lines.read()), start=1)
            yield from _plain(elements, ",", oddities)
        else:
            yield from _plain(_objects(lines, oddities), ",", oddities)


def _objects(lines: Iterable[str], oddities: Oddities) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line and record of each line of JSON."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            whole = json.loads(line)
        except UNREADABLE as error:
            oddities.refused.append(RefusedRow(number, f"is not JSON: {error}"))
            continue
        if isinstance(whole, dict):
            yield number, _flat(whole)
        else:
            oddities.refused.append(RefusedRow(number, "is not an object"))


def _records(table: TextTable, oddities: Oddities) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line and record of each row of a table; None for cells that lack."""
    oddities.refused = table.refused
    oddities.renamed = table.renamed
    oddities.begins = table.line
    return ((line, dict(itertools.zip_longest(table.names, cells))) for line, cells in table.rows)


def _plain(
    records: Iterator[tuple[int, dict[str, Any]]], separator: str, oddities: Oddities
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Records whose numbers are plain, and gaps where one is called none."""
    head = list(itertools.islice(records, LOOKED_AT))
    writings = writings_of([record for _, record in head], separator)
    oddities.writings = writings
    beginning = [plain(record, writings) for _, record in head]
    names = dict.fromkeys(name for record in beginning for name in record)
    numbers = [name for name in names if _are_numbers(each.get(name) for each in beginning)]
    for line, record in itertools.chain(head, records):
        told = plain(record, writings) if writings else record
        if any(word in told.values() for word in NO_NUMBER):
            told |= {name: "" for name in numbers if told.get(name) in NO_NUMBER}
        yield line, told


def _are_numbers(cells: Iterable[object]) -> bool:
    filled = [str(cell) for cell in cells if cell and not is_gap(cell, number=True)]
    return sum(map(is_number, filled)) >= (1 - MOST_ODD) * max(len(filled), 1)


def _rows(path: Path, form: Any) -> Iterator[dict[str, Any]]:
    from weald.stream.source.table_reader import open_rows

    reader = open_rows(str(path), form, record_bytes=8)
    try:
        while rows := reader.take(LOOKED_AT, 0.0):
            for row in rows:
                yield _flat(json.loads(row))
    finally:
        reader.close()


def _elements(path: Path, text: str) -> Iterator[dict[str, Any]]:
    """Records of JSON that goes over lines: objects, or the array of them that a value holds."""
    try:
        values = list(_values(text))
    except UNREADABLE as error:
        raise UsageError(f"{path}: not JSON: {error}") from error
    if len(values) > 1 and _are_objects(values):
        return (_flat(record) for record in values)
    arrays = [array for value in values for array in _arrays_in(value)]
    if len(arrays) != 1:
        found = f"{len(arrays)} arrays of objects" if arrays else "no array of objects"
        raise UsageError(f"{path}: holds {found}; expected one, or an object on each line")
    return (_flat(record) for record in arrays[0])


def _values(text: str) -> Iterator[Any]:
    """JSON values one after another, as jq prints them."""
    decoder = json.JSONDecoder()
    text = text.strip()
    at = 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield value
        while text[at : at + 1].isspace():
            at += 1


def _arrays_in(value: Any) -> list[list[dict[str, Any]]]:
    """Arrays of objects: the value itself, or those that it holds at any depth."""
    if isinstance(value, list):
        return [value] if _are_objects(value) else []
    held = value.values() if isinstance(value, dict) else ()
    return [array for each in held for array in _arrays_in(each)]


def _are_objects(elements: list[Any]) -> bool:
    return bool(elements) and all(isinstance(each, dict) for each in elements)


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """A record of JSON with its nested fields by dotted paths: most have none."""
    return dict(_flattened(record)) if dict in map(type, record.values()) else record


def _flattened(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
