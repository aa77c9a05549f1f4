"""``weald export``: everything of one kind, for other programs."""

# ruff: noqa: PLR0913 - one parameter for each flag of the command

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from weald.answers.numbers import iso_time
from weald.cli.errors import ConflictError, UsageError, writing
from weald.cli.terminal.csv_cells import safe_cell
from weald.cli.terminal.options import Config, Set, StreamName, example
from weald.cli.terminal.output import note

if TYPE_CHECKING:
    from weald.answers.stored_stream import StoredStream
    from weald.storage.queries.answers import MembershipCertainty

__all__ = ["add_to"]

BLOCK = 5000

Rows = list[dict[str, Any]]
# Writes rows, whose columns are those of the one that is given with them.
Write = Callable[[Rows, Mapping[str, Any]], None]


class What(StrEnum):
    """What can be exported."""

    assignments = "assignments"
    clusters = "clusters"
    lineage = "lineage"


class ExportForm(StrEnum):
    """How it is written."""

    csv = "csv"
    jsonl = "jsonl"
    parquet = "parquet"


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald export assignments --to assignments.parquet",
            "weald export clusters --output jsonl | head -1",
            "weald export lineage > lineage.csv",
        )
    )(export)


def export(
    what: Annotated[What, typer.Argument(help="What to write out.")],
    *,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="Write this file; standard output otherwise."),
    ] = None,
    output: Annotated[
        ExportForm | None,
        typer.Option("--output", "-o", help="Format; by the file's name, else csv."),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw", help="Write CSV cells as they came, formulas and control characters included."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
) -> None:
    """Write all assignments, all clusters or the whole lineage of a stream.

    Assignments carry the record's place, key, times, values and text, its cluster, and how sure
    that is. A file appears whole or not at all; rows are read block by block.

    Records may come from anybody: in CSV control characters are escaped, and a cell that a
    spreadsheet would take for a formula begins with an apostrophe, unless --raw is given. JSON and
    Parquet have every value as it came.
    """
    from weald.cli.terminal.opened import reading

    form = _form(to, output)
    if to is not None and to.exists() and not force:
        raise ConflictError(f"{to} exists already", next_step=f"weald export {what} --force ...")
    with (
        writing(to),
        reading(config, set_, stream, undivided=False) as state,
        ExitStack() as done,
    ):
        total = _total(state, what)
        write, finish = _opened(to, form, done, raw=raw)
        written = 0
        from weald.cli.terminal.progress import counting

        with counting(f"exporting {what}", total) as advance:
            for rows in filter(None, _SOURCES[what](state)):
                write(rows, rows[0])
                written += len(rows)
                advance(written, "")
        if not written and (like := _like(state, what)) is not None:
            write([], like)
        finish()
    if to is not None:
        note(f"wrote {written} rows to {to}")


def _form(to: Path | None, output: ExportForm | None) -> ExportForm:
    suffix = "" if to is None else to.suffix.removeprefix(".")
    if output is None:
        output = ExportForm(suffix) if suffix in list(ExportForm) else ExportForm.csv
    if output is ExportForm.parquet and to is None:
        raise UsageError(
            "Parquet needs a file to be written to",
            next_step="weald export assignments --to assignments.parquet",
        )
    return output


def _total(state: StoredStream, what: What) -> int | None:
    return state.reader.status(state.stream).n_inserted if what is What.assignments else None


def _assignments(state: StoredStream) -> Iterator[Rows]:
    reader, stream = state.reader, state.stream
    after = 0
    while (block := reader.observations(stream, after, BLOCK)) is not None:
        seqs = block.seq.tolist()
        sure = reader.certainty(stream, seqs)
        columns = zip(
            seqs,
            block.partition.tolist(),
            block.offset.tolist(),
            block.key,
            block.event_time.tolist(),
            block.cluster.tolist(),
            block.text or [None] * len(seqs),
            state.values(block.values),
            strict=True,
        )
        rows = [
            _assignment(state, block.topic, sure.get(row[0]), row)
            for row in columns
            # Without a key it is an edge of a network: vertices are in clusters.
            if not (state.network and row[3] is None)
        ]
        yield rows
        after = seqs[-1]


def _assignment(
    state: StoredStream, topic: str, known: MembershipCertainty | None, columns: tuple[Any, ...]
) -> dict[str, Any]:
    from weald.storage.encoding.row_bytes import offset_of_record

    seq, partition, offset, key, event_time, cluster, text, values = columns
    row: dict[str, Any] = {
        "seq": seq,
        "key": key,
        "cluster": cluster,
        "group": state.groups.get(cluster),
        "probability": known.probability if known else None,
        "stability": known.stability if known else None,
        "event_time": iso_time(event_time),
        "topic": topic,
        "partition": partition,
        "offset": offset_of_record(offset),
    }
    if state.schema.has_text:
        row["text"] = text
    row.update(values)
    return row


def _clusters(state: StoredStream) -> Iterator[Rows]:
    from weald.answers.records import cluster_record
    from weald.cli.terminal.describe import flattened
    from weald.cli.terminal.output import Form

    n_total = state.n_clustered
    born = state.reader.births(state.stream)
    found = state.reader.clusters(state.stream, include_retired=True)
    rows = [
        cluster_record(state, each, n_total) | {"born": iso_time(born.get(each.cluster))}
        for each in found
    ]
    yield flattened(rows, Form.csv)


def _lineage(state: StoredStream) -> Iterator[Rows]:
    from weald.answers.records import lineage_record

    yield [lineage_record(event) for event in state.reader.lineage(state.stream)]


def _like(state: StoredStream, what: What) -> dict[str, Any] | None:
    """Return a row such as there would be, of what retention may have left nothing of."""
    import numpy as np

    from weald.answers.records import lineage_record
    from weald.storage.queries.base import LineageRow

    if what is What.lineage:
        return lineage_record(LineageRow("birth", 0, 0, 0.0, 0, (), 0, 0))
    if what is What.assignments:
        values = state.values(np.full((1, state.schema.dimension), np.nan))[0]
        return _assignment(state, "", None, (0, 0, 0, None, 0.0, 0, None, values))
    return None


_SOURCES: Mapping[What, Callable[[Any], Iterator[Rows]]] = {
    What.assignments: _assignments,
    What.clusters: _clusters,
    What.lineage: _lineage,
}


def _opened(
    to: Path | None, form: ExportForm, done: ExitStack, *, raw: bool
) -> tuple[Write, Callable[[], None]]:
    """Return how rows are written, and what is to be done after the last."""
    if to is None:
        return _to_text(sys.stdout, form, raw=raw), lambda: None
    part = to.with_name(to.name + ".part")
    done.callback(lambda: part.unlink(missing_ok=True))

    if form is ExportForm.parquet:
        write, close = _to_parquet(part)
    else:
        file = done.enter_context(part.open("w", encoding="utf-8", newline=""))
        write, close = _to_text(file, form, raw=raw), file.close

    def finish() -> None:
        close()
        if part.exists():
            part.replace(to)

    return write, finish


def _to_text(file: TextIO, form: ExportForm, *, raw: bool) -> Write:
    if form is ExportForm.jsonl:
        import msgspec

        encode = msgspec.json.encode

        def write_lines(rows: Rows, _like: Mapping[str, Any]) -> None:
            file.writelines(encode(row).decode() + "\n" for row in rows)

        return write_lines
    writer = csv.writer(file, lineterminator="\n")
    cell = (lambda value: value) if raw else safe_cell
    headed: list[Sequence[str]] = []

    def write(rows: Rows, like: Mapping[str, Any]) -> None:
        if not headed:
            headed.append(list(like))
            writer.writerow(headed[0])
        writer.writerows([cell(_flat(value)) for value in row.values()] for row in rows)

    return write


def _flat(value: object) -> object:
    import msgspec

    return msgspec.json.encode(value).decode() if isinstance(value, list | dict) else value


def _to_parquet(path: Path) -> tuple[Write, Callable[[], None]]:
    from weald.stream.optional import optional_library

    pyarrow, parquet = (
        optional_library(name, "writing Parquet", "parquet")
        for name in ("pyarrow", "pyarrow.parquet")
    )
    opened: list[Any] = []

    def write(rows: Rows, like: Mapping[str, Any]) -> None:
        if not opened:
            opened.append(parquet.ParquetWriter(path, _parquet_schema(pyarrow, like)))
        opened[0].write_table(pyarrow.Table.from_pylist(rows, schema=opened[0].schema))

    def close() -> None:
        for writer in opened:
            writer.close()

    return write, close


def _parquet_schema(pyarrow: Any, row: Mapping[str, Any]) -> Any:
    """Types by name where a first row may have nothing, by value elsewhere."""
    named = {
        "key": pyarrow.string(),
        "text": pyarrow.string(),
        "event_time": pyarrow.string(),
        "born": pyarrow.string(),
        "time": pyarrow.string(),
        "group": pyarrow.int64(),
        "probability": pyarrow.float64(),
        "stability": pyarrow.float64(),
        "retired_publication": pyarrow.int64(),
        "parents": pyarrow.list_(pyarrow.int64()),
    }
    return pyarrow.schema([(name, named.get(name) or _type(pyarrow, row[name])) for name in row])


def _type(pyarrow: Any, value: object) -> Any:
    if isinstance(value, bool):
        return pyarrow.bool_()
    if isinstance(value, int):
        return pyarrow.int64()
    return pyarrow.string() if isinstance(value, str) else pyarrow.float64()
