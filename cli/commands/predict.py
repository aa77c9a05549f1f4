"""``weald predict``: where new records would go. Query only: nothing is stored or learned."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from weald.answers.numbers import share_text
from weald.cli.errors import CommandError, NotFoundError
from weald.cli.terminal.options import Config, Output, Set, StreamName, Wide, example
from weald.cli.terminal.output import Column, Form, note, write_rows

if TYPE_CHECKING:
    from weald.answers.stored_stream import StoredStream
    from weald.stream.record.record import Batch, DeadLetter

__all__ = ["add_to"]


class _Unknown(NamedTuple):
    """A row that names a vertex which is not there."""

    offset: int
    reason: str
    detail: str


Decoded = tuple["Batch", list[str | None], list["DeadLetter"]]

COLUMNS = (
    Column("row", "row", "right"),
    Column("key", "key"),
    Column("cluster", "cluster", "right", lambda value: "new" if value is None else str(value)),
    Column("probability", "probability", "right", share_text),
    Column("new_probability", "of a new one", "right", share_text, gives_way=1),
    Column("log_density", "log density", "right", gives_way=2),
)


EDGE_COLUMNS = (
    Column("row", "row", "right"),
    Column("source", "source"),
    Column("target", "target"),
    Column("source_cluster", "its cluster", "right", gives_way=1),
    Column("target_cluster", "its cluster", "right", gives_way=1),
    Column("edge", "expected edge", "right"),
)


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald predict new.jsonl",
            "weald predict new.csv --output csv > predicted.csv",
            'echo \'{"longitude":-118,"latitude":34,"depth_km":8,"magnitude":2}\' '
            "| weald predict -",
        )
    )(predict)


def predict(
    data: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            help="A file in any format that a stream may have; - reads JSONL from stdin.",
        ),
    ],
    *,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
    _wide: Wide = False,
) -> None:
    """Say which cluster records would join; change nothing.

    The records are decoded by the stream's own schema. An empty cluster means that a new one is
    more probable than any that exists; `log_density` is the log predictive density of the record,
    which is low for one unlike anything seen. Rows count from 0, as offsets do.

    Where the stream is a network, a record names two vertices, and the answer is the edge to expect
    between them by their clusters: its probability, or the mean count.
    """
    from weald.cli.terminal.opened import reading

    if data != "-" and not Path(data).is_file():
        raise NotFoundError(f"{data}: no such file")
    with reading(config, set_, stream, undivided=False) as state:
        network = state.network
        rows, refused = _predict_edges(state, data) if network else _predict(state, data)
    write_rows(rows, EDGE_COLUMNS if network else COLUMNS, output)
    for letter in refused[:10]:
        note(f"row {letter.offset} refused: {letter.reason}: {letter.detail}")
    if refused:
        raise CommandError(f"{len(refused)} of {len(rows) + len(refused)} rows were refused")


def _predict(state: StoredStream, data: str) -> tuple[list[dict[str, Any]], list[DeadLetter]]:
    from weald.answers.prediction import PublishedPredictive

    predictive = PublishedPredictive.of(state)
    rows: list[dict[str, Any]] = []
    refused: list[DeadLetter] = []
    for batch, keys, letters in _batches(state, data):
        refused += letters
        answers = predictive(batch.values)
        for offset, key, answer in zip(batch.offset.tolist(), keys, answers, strict=True):
            rows.append({"row": offset, "key": key, **answer})
    return rows, refused


def _predict_edges(
    state: StoredStream, data: str
) -> tuple[list[dict[str, Any]], list[DeadLetter | _Unknown]]:
    from weald.stream.recovery.snapshots import shown_network
    from weald.treecore.relational.edges import edge_mean

    shard = shown_network(state.reader, state.stream)
    likelihood = shard.chain.family.edges

    @cache
    def expected(first: int, second: int) -> float:
        # The totals of a pair of clusters take a pass over all edges.
        return float(edge_mean(likelihood, *shard.edge_totals(first, second)))

    rows: list[dict[str, Any]] = []
    refused: list[DeadLetter | _Unknown] = []
    for batch, _, letters in _batches(state, data):
        refused += letters
        for offset, (source, target) in zip(batch.offset.tolist(), batch.ends or (), strict=True):
            first, second = shard.cluster_of(source), shard.cluster_of(target)
            if first is None or second is None:
                name = source if first is None else target
                refused.append(_Unknown(offset, "unknown", f"no vertex {name!r} in the model"))
                continue
            rows.append(
                {
                    "row": offset,
                    "source": source,
                    "target": target,
                    "source_cluster": first,
                    "target_cluster": second,
                    "edge": expected(first, second),
                }
            )
    return rows, refused


def _batches(state: StoredStream, data: str) -> Iterator[Decoded]:
    """Yield batches, the keys of their records where they have any, and what was refused."""
    import msgspec

    from weald.stream.record.decode import NUMBER_BYTES, decode
    from weald.stream.record.formats import schema_for
    from weald.stream.settings import SchemaSettings, StreamSettings
    from weald.stream.source.file_source import FileSource

    settings = (
        StreamSettings(source="stdin", format="jsonl")
        if data == "-"
        else StreamSettings(source="file", path=data)
    )
    declared = msgspec.convert(state.spec.schema, SchemaSettings)
    # A question needs neither key nor time, but a key that is there makes the answer readable.
    numbers = schema_for(settings, msgspec.structs.replace(declared, key=None, time=None))
    named = numbers
    if not numbers.packed:
        named = schema_for(settings, msgspec.structs.replace(declared, time=None))
    source = FileSource(settings, declared.max_bytes, NUMBER_BYTES * numbers.dimension)
    source.seek({})
    try:
        while not source.exhausted:
            messages = source.poll(1.0)
            if messages:
                batch, refused = decode(messages, numbers)
                keyed, _ = decode(messages, named)
                keys = dict(zip(keyed.offset.tolist(), keyed.key, strict=True))
                yield batch, [keys.get(offset) for offset in batch.offset.tolist()], refused
    finally:
        source.close()
