"""A file as a fit reads it: through a declared schema, through one that is proposed, or as numbers.

What a stream would set aside is refused and told: the rest is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.cli.errors import UsageError
from weald.cli.files.gap_words import without_gaps
from weald.cli.files.refused_rows import RefusedRow, tell_refused
from weald.cli.files.sample import (
    Oddities,
    goes_over_lines,
    in_quotes,
    numbered_records,
    refuse_unlike_a_stream,
    refuse_without_records,
    tell_oddities,
)
from weald.cli.files.table import (
    Table,
    checked,
    load_table,
    open_text,
    selected,
)
from weald.cli.files.text_table import SEPARATORS, text_table
from weald.cli.files.written_numbers import has_comma
from weald.cli.terminal.columns_told import note_columns
from weald.cli.terminal.csv_cells import is_number
from weald.cli.terminal.output import note
from weald.stream.errors import SchemaError
from weald.stream.record.inference.proposal import SchemaProposal, named, proposed

from .columns import Columns, chosen_columns, with_logs
from .fitted_rows import correlated_columns, takes_any_number, whole_rows, without_far

if TYPE_CHECKING:
    from weald.cli.config.settings import Settings
    from weald.mcmc.settings import FitSettings
    from weald.stream.record.formats import Format
    from weald.stream.record.schema import Schema

__all__ = ["Manner", "Reading", "read", "read_again"]

# A column with more gaps than that is left out, as by a look.
MOST_EMPTY = 0.9
# Records by which it is known that a file holds numbers only.
HEAD = 10_000
SPARSE = "multinomial"
# Files whose columns have names.
_NAMED = (
    ".csv",
    ".tsv",
    ".jsonl",
    ".ndjson",
    ".json",
    ".parquet",
    ".arrow",
    ".arrows",
    ".feather",
    ".avro",
)
# What these take is told by the kinds of columns; the others take a matrix as it is.
_OF_NUMBERS = frozenset({"auto", "gaussian", "diagonal"})
_BY_KINDS = frozenset({"auto", "mixed", "categorical"})


class Manner(NamedTuple):
    """How a file was read, so that another may be read alike.

    Attributes
    ----------
    schema:
        As ``[schema]`` has it.
    strict:
        Whether a record with a gap is refused, as by a stream, or has a gap.
    kinds:
        Whether columns are what the schema says, or numbers as they stand.
    """

    schema: dict[str, Any]
    strict: bool
    kinds: bool

    def compiled(self) -> Schema:
        """The schema, compiled."""
        return _compiled(self.schema)


class Reading(NamedTuple):
    """Rows of a file, how they were read, and the family and its parameters that go with that.

    ``columns`` are what the rows' features are called where another file is read alike, ``whole``
    the rows (n) that the family takes where few have gaps in numbers of which it wants all.
    """

    table: Table
    columns: Columns
    manner: Manner | None
    family: str
    params: Mapping[str, Any]
    whole: NDArray[np.bool_]

    @property
    def schema(self) -> Schema | None:
        """The schema, where it says what features are of."""
        by_kinds = self.manner is not None and self.manner.kinds
        return self.manner.compiled() if self.manner is not None and by_kinds else None


def read(
    path: Path, settings: FitSettings, columns: Columns, configured: Settings | None
) -> Reading:
    """Read a file as the configured stream would, or by columns of numbers, or as it suggests.

    Parameters
    ----------
    path : Path
    settings : FitSettings
        Whose family is "auto" where none was asked for.
    columns : Columns
        Those that were asked for, none for all, and those whose logarithm is taken.
    configured : Settings or None

    Raises
    ------
    NotFoundError, UsageError
        If there is no such file, or nothing in it that the family takes.
    """
    family = settings.family
    if configured is not None:
        return _configured(path, configured, settings)
    if columns.names or columns.logs:
        loaded = _numbers(path, columns.names or None, family)
        return _of_numbers(path, loaded, None, settings, columns.logs)
    return _proposed(path, settings)


def _configured(path: Path, configured: Settings, settings: FitSettings) -> Reading:
    import msgspec

    from weald.stream.model.model import chosen_family

    refuse_unlike_a_stream(path)
    manner = Manner(msgspec.to_builtins(configured.schema), strict=True, kinds=True)
    if manner.compiled().network:
        raise UsageError(
            f"the schema is of a network: weald fit {path} --family irm reads its edges"
        )
    table = _near(path, _strictly(path, manner), settings)
    family = settings.family
    params: Mapping[str, Any] = {}
    if family == "auto":
        family, params = chosen_family(configured.model, configured.schema, configured.features)
    return Reading(table, Columns(table.names, []), manner, family, params, _all(table))


def _of_numbers(
    path: Path, table: Table, manner: Manner | None, settings: FitSettings, logs: Sequence[str] = ()
) -> Reading:
    """Columns of numbers that tell something, with logarithms of some."""
    table, columns = chosen_columns(path, table, settings.family, logs)
    table = _near(path, table, settings)
    whole = _all(table)
    if settings.family == "auto" and isinstance(table.values, np.ndarray):
        whole = whole_rows(table.values, range(len(table.names)))
    return Reading(table, columns, manner, settings.family, {}, whole)


def _near(path: Path, table: Table, settings: FitSettings) -> Table:
    """The table without rows that such a fit does not take as a number is too far."""
    return table if takes_any_number(settings) else without_far(path, table)


def _all(table: Table) -> NDArray[np.bool_]:
    return np.ones(table.values.shape[0], dtype=np.bool_)


def _numbers(path: Path, columns: Sequence[str] | None, family: str) -> Table:
    loaded = load_table(
        path, columns, keep_sparse=family == SPARSE, missing=family not in ("gaussian", SPARSE)
    )
    if loaded.left_out:
        note(f"columns without numbers, left out: {', '.join(loaded.left_out)}")
    return loaded


def _proposed(path: Path, settings: FitSettings) -> Reading:
    """Read a file through the schema that its records suggest, and say so.

    Where all columns are numbers, or the family takes nothing else, they are taken as they stand.
    """
    from weald.stream.warm_up.family_choice import family_of_rows

    family = settings.family
    by_kinds = family in _BY_KINDS and not settings.params
    proposal = None
    if (by_kinds or family in _OF_NUMBERS) and not _is_matrix(path):
        head = _records(path, HEAD)
        tell_oddities(path, head.odd)
        proposal = _proposal(path, head.rows)
    if proposal is None:
        return _of_numbers(path, _numbers(path, None, family), None, settings)
    plain = [named(each) for each in proposal.fields if _is_plain(each)]
    if not by_kinds or len(plain) == len(proposal.fields):
        _tell(proposal, plain, family)
        if not plain:
            raise UsageError(f"{path}: no column holds numbers, and family {family} takes no other")
        numbers = [{"name": each["name"]} for each in plain]
        manner = Manner({"fields": numbers}, strict=False, kinds=False)
        table = checked(path, _with_gaps(path, manner), missing=family != "gaussian")
        return _of_numbers(path, table, manner, settings)
    # All of the file: a level may come late.
    records = _records(path)
    proposal = _proposal(path, records.rows) or proposal
    _tell(proposal, None, family)
    fields = [named(each) for each in proposal.fields]
    manner = Manner({"fields": fields}, strict=False, kinds=True)
    table = _near(path, checked(path, _with_gaps(path, manner, records), missing=True), settings)
    schema = manner.compiled()
    whole = _all(table)
    if family in ("auto", "mixed"):
        whole = whole_rows(table.values, correlated_columns(schema))
    family, params = family_of_rows(schema, table.values[whole], family)
    return Reading(table, Columns(table.names, []), manner, family, params, whole)


def read_again(path: Path, manner: Manner | None, columns: Columns, *, missing: bool) -> Table:
    """Read a file in the manner in which one was read: these features, in this order.

    Raises
    ------
    UsageError
        If one of them cannot be had, or a value is missing and must not be.
    """
    if manner is None:
        table = load_table(path, columns.names, missing=missing)
    else:
        whole = _strictly(path, manner) if manner.strict else _with_gaps(path, manner)
        table = checked(path, selected(path, whole, columns.names), missing=missing)
    return with_logs(path, table, columns.logs)


def _compiled(settings: Mapping[str, Any], *, text: bool = True) -> Schema:
    import msgspec

    from weald.stream.record.schema import Schema
    from weald.stream.settings import SchemaSettings

    return Schema.of(msgspec.convert(settings, SchemaSettings), text=text)


def _is_plain(field: str | Mapping[str, Any]) -> bool:
    """Whether a field is a single number, be it a count or one that has a logarithm."""
    if isinstance(field, str):
        return True
    return field.get("kind", "number") in ("number", "count") and "size" not in field


def _tell(proposal: SchemaProposal, plain: Sequence[Mapping[str, Any]] | None, family: str) -> None:
    """Say what columns are taken for; ``plain`` are those that are taken as they stand."""
    as_they_stand = {each["name"]: len(each) > 1 for each in plain or ()}
    declared = {each if isinstance(each, str) else each["path"] for each in proposal.fields}
    told = dict(proposal.reasons)
    for name, why in proposal.reasons.items():
        if as_they_stand.get(name):
            told[name] = f"a number as it stands; for a stream {why}"
        elif plain is not None and name in declared and name not in as_they_stand:
            takes = "gaussian" if family == "auto" else family
            told[name] = f"left out: family {takes} takes numbers; it is {why}"
    note_columns(told)


def _proposal(path: Path, rows: Sequence[Row]) -> SchemaProposal | None:
    """What records suggest, or None where nothing can be had from them."""
    try:
        records = [record for _, record in rows]
        stated = {} if _format_of(path) == "csv" else in_quotes(records, MOST_EMPTY)
        return proposed(records, str(path), most_empty=MOST_EMPTY, stated=stated)
    except SchemaError:
        return None


def _is_matrix(path: Path) -> bool:
    """Whether a file is a matrix: an array, lists, or a table of numbers without a header."""
    name = path.name.lower().removesuffix(".gz")
    if not name.endswith(_NAMED) or not path.is_file():
        return True
    if not name.endswith((".csv", ".tsv", ".jsonl", ".json")) or goes_over_lines(path):
        return False
    with open_text(path) as lines:
        if name.endswith((".jsonl", ".json")):
            # A line that is broken says nothing of the others.
            return next((line for line in lines if line.lstrip()[:1] in ("{", "[")), "[")[0] == "["
        table = text_table(lines, SEPARATORS)
        _, first = next(table.rows, (0, []))
    return not table.named and all(is_number(cell) or has_comma(cell) for cell in first)


def _format_of(path: Path) -> Format:
    from weald.stream.record.formats import format_of
    from weald.stream.settings import StreamSettings

    return format_of(StreamSettings(source="file", path=str(path)))


Row = tuple[int, Mapping[str, Any]]


class _Records(NamedTuple):
    """Records with their lines, and what is odd about the file.

    No record is also a row of a table that has fewer cells than its header.
    """

    rows: list[Row]
    odd: Oddities


def _records(path: Path, n_records: int | None = None) -> _Records:
    """The first records of a file, all by default."""
    form = _format_of(path)
    rows: list[Row] = []
    odd = Oddities()
    for line, record in islice(numbered_records(path, SEPARATORS, form, odd), n_records):
        if form == "csv" and None in record.values():
            odd.refused.append(RefusedRow(line, "fewer cells than the header"))
        else:
            rows.append((line, without_gaps(record)))
    if form == "jsonl":
        refuse_without_records(path, odd, len(rows))
    return _Records(rows, odd)


def _with_gaps(path: Path, manner: Manner, records: _Records | None = None) -> Table:
    """Rows with gaps where nothing stands; those with something that cannot be read are refused.

    ``records`` are those of the file, where it has been read.
    """
    from weald.stream.record.fields.gaps import Odd, rows_with_gaps

    rows, odd_file = _records(path) if records is None else records
    refused = odd_file.refused
    schema = manner.compiled()
    odd: Odd = []
    values = rows_with_gaps(schema, [record for _, record in rows], odd)
    first = dict(reversed(odd))
    told = [*refused, *(RefusedRow(rows[at][0], detail) for at, detail in first.items())]
    tell_refused(path, sorted(told), len(rows) + len(refused))
    lines = np.array([line for line, _ in rows], dtype=np.int64)
    kept = np.ones(len(rows), dtype=bool)
    kept[list(first)] = False
    # Among all rows of the file, those that have other cells than the header included.
    every = np.sort(np.concatenate([lines, [each.line for each in refused]]).astype(np.int64))
    places = np.searchsorted(every, lines[kept])
    return Table(values[kept], list(schema.features), [], rows=places)


def _strictly(path: Path, manner: Manner) -> Table:
    """Rows as a stream decodes them; what it would set aside is refused."""
    import msgspec

    from weald.cli.files.stream_rows import stream_rows
    from weald.stream.settings import SchemaSettings

    found = stream_rows(path, msgspec.convert(manner.schema, SchemaSettings))
    tell_refused(path, found.refused, len(found.values) + len(found.refused))
    if len(found.values) == 0:
        raise UsageError(
            f"{path}: no record is as the schema of the configuration says",
            next_step=f"weald init --from-sample {path}    proposes one",
        )
    return Table(found.values, list(found.features), [], rows=found.places)
