"""Rows as a look sees them: columns to cluster by, and columns to tell of."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.cli.errors import UsageError
from weald.cli.files.folder import files_of, form_of, records_in
from weald.cli.files.gap_words import without_gaps
from weald.cli.files.sample import in_quotes
from weald.cli.files.text_table import SEPARATORS
from weald.cli.terminal.columns_told import note_columns
from weald.cli.terminal.output import note
from weald.stream.errors import SchemaError
from weald.stream.record.inference.field_inference import judged
from weald.stream.record.inference.proposal import SchemaProposal, named, proposed

from .called import names_of

if TYPE_CHECKING:
    from weald.stream.record.fields.originals import Original
    from weald.stream.record.schema import Schema

__all__ = ["FileRows", "read_rows"]

# Rows that are read, and of these those that are fitted.
MOST_READ, MOST_FITTED = 1_000_000, 10_000
FEWEST = 3
# First rows, by which columns are known that number them.
HEAD = 1000
MOST_EMPTY = 0.9

Record = Mapping[str, Any]


class FileRows(NamedTuple):
    """Rows of a file, or of all files of a folder.

    Attributes
    ----------
    name:
        Of the file.
    n_read:
        Rows of the file; more than these where they are a sample.
    keys:
        What each row (n) is called: by a column that says which record it is, else its place in
        the file, or file and line.
    called:
        The column that these are from, or "row".
    schema:
        What rows are clustered by.
    values:
        Its features (n, d), NaN where there is a gap.
    columns:
        What is told of rows: also times, by which they are not clustered, and the file.
    texts:
        Of each row, where there is a column of texts; else empty.
    """

    name: str
    n_read: int
    keys: list[str]
    called: str
    schema: Schema
    values: NDArray[np.float64]
    columns: list[Original]
    texts: list[str]


class _Drawn(NamedTuple):
    """Rows drawn at random (file, line, record), in order, the first of more, and the total."""

    rows: list[tuple[str, int, Record]]
    head: list[Record]
    n_read: int


def read_rows(data: str, seed: int) -> FileRows:
    """Read a file, a folder, or standard input for ``-``, infer its schema, and say so.

    Raises
    ------
    NotFoundError, UsageError
        If there is no such file, or nothing in it to cluster by.
    """
    if data == "-":
        with tempfile.TemporaryDirectory() as folder:
            return _rows(_spooled(Path(folder)), "standard input", seed)
    return _rows(Path(data), Path(data).resolve().name, seed)


def _spooled(folder: Path) -> Path:
    """Standard input as a file whose name tells what it looks like."""
    content = sys.stdin.buffer.read()
    # Past the byte order mark, and of each two bytes of UTF-16 the one that says something.
    begins = bytes(byte for byte in content[:1000] if 0 < byte < 0x80).split()
    suffix = ".csv"
    if content.startswith(b"PAR1"):
        suffix = ".parquet"
    elif b"".join(begins).startswith((b"{", b"[{")):
        suffix = ".jsonl"
    path = folder / f"stdin{suffix}"
    path.write_bytes(content)
    return path


def _rows(path: Path, name: str, seed: int) -> FileRows:
    from weald.stream.record.fields.gaps import rows_with_gaps
    from weald.stream.record.fields.originals import Original, originals_of

    drawn = _drawn(path, seed)
    if drawn.n_read < FEWEST:
        rows = "1 row" if drawn.n_read == 1 else f"{drawn.n_read} rows"
        raise UsageError(f"{name}: {rows}; a look takes {FEWEST} at least")
    if drawn.n_read > len(drawn.rows):
        note(f"{drawn.n_read} rows, of which {len(drawn.rows)} drawn at random are looked at")
    records = [record for _, _, record in drawn.rows]
    proposal = _proposal(drawn, records, name, texts=form_of(files_of(path)[0]) == "csv")
    fields = [named(each) for each in proposal.fields]
    times = [each for each in fields if each.get("kind") == "time"]
    if proposal.time is not None:
        # Dates have a place in the week only.
        own = judged(proposal.time, [each.get(proposal.time) for each in records]).settings or {}
        periods = {key: each for key, each in own.items() if key == "periods"}
        times.append(named({"path": proposal.time, "kind": "time", **periods}))
    vectors = any(each.is_long for each in _schema(fields).fields)
    # A long vector stands for the text beside it, which would count twice.
    texts = [each for each in fields if vectors and each.get("kind") == "text"]
    told = [*times, *texts]
    clustered = [each for each in fields if each not in told] or times
    schema = _schema(clustered)
    values = rows_with_gaps(schema, records)
    columns = originals_of(schema, values)
    # The numbers of a long vector say nothing one by one.
    long = {name for field in schema.fields if field.is_long for name in field.columns}
    columns = [each for each in columns if each.name not in long]
    if told and clustered is not times:
        note(f"  not clustered by, only told: {', '.join(each['name'] for each in told)}")
    if clustered is times:
        columns = []
    columns += [each for time in times for each in _moments(time, records)]
    files, whole = [file for file, _, _ in drawn.rows], path.is_dir()
    if whole and len(set(files)) > 1:
        columns.append(Original("file", "category", np.array(files, dtype=object)))
    called, keys = _called(drawn, proposal, whole=whole)
    return FileRows(
        name,
        drawn.n_read,
        keys,
        called,
        schema,
        _without_far(values, schema),
        columns,
        _texts(proposal, records, vectors=vectors),
    )


def _without_far(values: NDArray[np.float64], schema: Schema) -> NDArray[np.float64]:
    """Values with gaps for numbers so far from the others that no family takes both, which is said.

    Of what is told of rows they stay a part.
    """
    from weald.mcmc.offline.preparation import FARTHEST, too_far

    far = too_far(values)
    for at in np.flatnonzero(far.any(axis=0)):
        n_far = int(far[:, at].sum())
        numbers = "1 number" if n_far == 1 else f"{n_far} numbers"
        note(
            f"  {schema.features[at]}: {numbers} over {FARTHEST:,.0f} spreads from the others, "
            "taken for gaps"
        )
    return np.where(far, np.nan, values) if far.any() else values


def _called(drawn: _Drawn, proposal: SchemaProposal, *, whole: bool) -> tuple[str, list[str]]:
    """What rows are called by, and what each is called; of a whole folder else by file and line."""
    found = names_of(proposal, [record for _, _, record in drawn.rows])
    if found is not None:
        note(f"  rows are called by {found[0]}")
        return found
    return "row", [f"{file}:{line}" if whole else f"row {line}" for file, line, _ in drawn.rows]


def _moments(time: Mapping[str, Any], records: Sequence[Record]) -> list[Original]:
    """A time as the records tell it, and its places in periods."""
    from weald.stream.record.fields.gaps import rows_with_gaps
    from weald.stream.record.fields.originals import moments_of, originals_of

    schema = _schema([time])
    (field,) = schema.fields
    path = ".".join(field.path)
    whole = moments_of(field.name, [record.get(path) for record in records])
    places = originals_of(schema, rows_with_gaps(schema, records))
    return [whole, *(replace(each, name=f"{field.name} ({each.kind})") for each in places)]


def _drawn(path: Path, seed: int) -> _Drawn:
    """Read rows, and keep as many as are fitted, each with the same chance.

    Algorithm R (J. Vitter, Random sampling with a reservoir, ACM TOMS 11, 1985), a batch at a time.
    """
    rng = np.random.default_rng(seed)
    kept: list[tuple[int, tuple[str, int, Record]]] = []
    head: list[Record] = []
    n_read = 0
    rows = iter(_read(path))
    while batch := list(islice(rows, MOST_FITTED)):
        places = rng.integers(0, np.arange(n_read, n_read + len(batch)) + 1).tolist()
        for place, row in zip(places, batch, strict=True):
            n_read += 1
            if n_read <= HEAD:
                head.append(row[2])
            if n_read <= MOST_FITTED:
                kept.append((n_read, row))
            elif place < MOST_FITTED:
                kept[place] = (n_read, row)
    drawn = [row for _, row in sorted(kept, key=itemgetter(0))]
    # Of many rows only those are gone through that are kept.
    return _Drawn(
        [(file, line, without_gaps(record)) for file, line, record in drawn],
        list(map(without_gaps, head)) if n_read > len(drawn) else [],
        n_read,
    )


def _read(path: Path) -> Iterable[tuple[str, int, Record]]:
    """File, number and record of each row; of a file alone its row, not its line."""
    alone = not path.is_dir()
    for at, (file, line, row, record) in enumerate(records_in(path, SEPARATORS)):
        if at == MOST_READ:
            note(f"only the first {MOST_READ} rows are read")
            return
        yield file, row if alone else line, record


def _proposal(
    drawn: _Drawn, records: Sequence[Record], name: str, *, texts: bool
) -> SchemaProposal:
    """What records suggest, whose numbers are ``texts`` all of them, or only where in quotes."""
    stated = {} if texts else in_quotes(records, MOST_EMPTY)
    try:
        proposal = proposed(records, name, most_empty=MOST_EMPTY, moments="told", stated=stated)
    except SchemaError as error:
        raise UsageError(str(error)) from error
    if drawn.n_read > len(records):
        # Numbers that follow each other do so in the file's order only.
        head = proposed(drawn.head, name, most_empty=MOST_EMPTY, needed=False, moments="told")
        counted = {path for path, how in head.identifiers.items() if how == "by number"}
        proposal = replace(
            proposal,
            fields=[each for each in proposal.fields if named(each)["name"] not in counted],
            reasons={**proposal.reasons, **{path: head.reasons[path] for path in counted}},
            identifiers={**proposal.identifiers, **dict.fromkeys(counted, "by number")},
        )
    proposal = _counts_as_numbers(proposal)
    note_columns(proposal.reasons)
    return proposal


def _counts_as_numbers(proposal: SchemaProposal) -> SchemaProposal:
    """Counts by their logarithm: within a kind they seldom vary by chance alone, as Poisson's do.

    A kind that varies more is several clusters of Poisson counts.
    """
    fields: list[str | dict[str, Any]] = []
    reasons = dict(proposal.reasons)
    for field in proposal.fields:
        if isinstance(field, str) or field.get("kind") != "count":
            fields.append(field)
            continue
        settings = {key: each for key, each in field.items() if key != "kind"}
        fields.append({**settings, "scale": "log"})
        reasons[field.get("path") or field["name"]] += ", by its logarithm"
    return replace(proposal, fields=fields, reasons=reasons)


def _schema(fields: Sequence[Mapping[str, Any]]) -> Schema:
    import msgspec

    from weald.stream.record.schema import Schema
    from weald.stream.settings import SchemaSettings

    return Schema.of(msgspec.convert({"fields": list(fields)}, SchemaSettings), text=True)


def _texts(proposal: SchemaProposal, records: Sequence[Record], *, vectors: bool) -> list[str]:
    """Texts of the rows; beside a long vector also names, which are nothing to cluster by."""
    fields = [named(each) for each in proposal.fields]
    paths = [each["name"] for each in fields if each.get("kind") == "text"]
    if vectors and not paths:
        taken = {*(each["name"] for each in fields), proposal.key, proposal.time}
        paths = [
            path
            for path, value in records[0].items()
            if path not in taken and isinstance(value, str)
        ]
    return [str(record.get(paths[0]) or "") for record in records] if paths else []
