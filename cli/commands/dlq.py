"""``weald dlq``: the records that could not become observations."""

# ruff: noqa: PLR0913 - one parameter for each flag of the command

from __future__ import annotations

import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weald.answers.numbers import iso_time
from weald.cli.errors import NotFoundError, UsageError
from weald.cli.terminal.options import Config, Limit, Output, Set, StreamName, Wide, example
from weald.cli.terminal.output import Column, Form, note, write_record, write_rows

if TYPE_CHECKING:
    from weald.storage.queries.base import DeadLetterRow, Letters
    from weald.storage.writing.store import SqlStore

__all__ = ["add_to"]

DAY_SECONDS = 86_400.0
COLUMNS = (
    Column("number", "number", "right"),
    Column("received_at", "received", gives_way=1),
    Column("topic", "topic", gives_way=2),
    Column("partition", "partition", "right", gives_way=2),
    Column("offset", "offset", "right", gives_way=2),
    Column("reason", "reason"),
    Column("detail", "detail"),
)

group = typer.Typer(rich_markup_mode=None, no_args_is_help=True)

Numbers = Annotated[
    list[int] | None,
    typer.Argument(metavar="[NUMBER...]", help="Their numbers, as `weald dlq list` shows them."),
]
Reason = Annotated[
    str | None,
    typer.Option("--reason", "-r", metavar="CODE", help="Only those with this reason."),
]
Partition = Annotated[
    int | None, typer.Option("--partition", "-p", min=0, help="Only those of this partition.")
]
OlderThan = Annotated[
    float | None,
    typer.Option("--older-than", metavar="DAYS", min=0, help="Only those received before then."),
]
Everything = Annotated[bool, typer.Option("--all", help="All of them.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.add_typer(
        group,
        name="dlq",
        help="Look at dead letters: records that could not become observations.",
        epilog=example("weald dlq list", "weald dlq show 12", "weald dlq replay --reason unfit"),
    )


@group.callback()
def root() -> None:
    """Look at dead letters: records that could not become observations.

    Each keeps its place in the topic, its bytes and the reason. They are also in the topic
    `<topic>.dlq`, unless stream.dead_letter_topic is off. `weald status` counts them by reason.
    """


@group.command(
    "list",
    epilog=example(
        "weald dlq list",
        "weald dlq list --reason wrong_type --limit 5",
        "weald dlq list --output jsonl > dead.jsonl",
    ),
)
def list_(
    *,
    reason: Reason = None,
    partition: Partition = None,
    older_than: OlderThan = None,
    limit: Limit = 50,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
    _wide: Wide = False,
) -> None:
    """List dead letters, newest first, with where each was and what was wrong with it."""
    from weald.cli.terminal.opened import reading

    letters = _letters(None, reason, partition, older_than)
    with reading(config, set_, stream, undivided=False) as state:
        found = state.reader.dead_letters(state.stream, letters, limit=limit)
    write_rows([_row(each) for each in found], COLUMNS, output)
    if len(found) == limit:
        note(f"the newest {limit}; --limit shows more")


@group.command(epilog=example("weald dlq show 12", "weald dlq show 12 --output json"))
def show(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="As `weald dlq list` shows it.")],
    *,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """Show one dead letter with its value; bytes that are no text are shown escaped.

    The first 64 KiB of the value were kept. JSON has them as base64 too.
    """
    from weald.cli.terminal.opened import reading

    with reading(config, set_, stream, undivided=False) as state:
        found = state.reader.dead_letters(state.stream, _letters([number]), limit=1)
    if not found:
        raise NotFoundError(
            f"no dead letter has number {number}",
            next_step="weald dlq list",
        )
    letter = found[0]
    answer = _row(letter) | {
        "key": None if letter.key is None else _text(letter.key),
        "n_bytes": len(letter.value),
        "value": _text(letter.value),
    }
    if output is not Form.table:
        answer["value_base64"] = b64encode(letter.value).decode()
    write_record(answer, output)


@group.command(
    epilog=example(
        "weald dlq replay 12 13",
        "weald dlq replay --reason too_large --set schema.max_bytes=4000000",
        "weald dlq replay --all",
    )
)
def replay(
    numbers: Numbers = None,
    *,
    reason: Reason = None,
    partition: Partition = None,
    older_than: OlderThan = None,
    everything: Everything = False,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
) -> None:
    """Have dead letters decided anew, after the schema's limits or the program have changed.

    The running service takes them up within seconds, a stopped one when it starts again. A letter
    that passes now becomes an observation with its own partition and offset, counted once; one
    that doesn't stays, with the new reason.
    """
    letters = _selected(numbers, (reason, partition, older_than), everything=everything)
    with _writing(config, set_, stream) as (store, name):
        marked, cut = store.request_replay(name, letters)
    if cut:
        note(f"{cut} cannot be replayed: only their first 64 KiB were kept")
    if not marked:
        raise NotFoundError("no dead letter to replay", next_step="weald dlq list")
    note(f"{marked} will be decided anew by the running service; weald dlq list shows what is left")


@group.command(
    epilog=example(
        "weald dlq purge --older-than 30 --yes",
        "weald dlq purge --reason tombstone",
        "weald dlq purge 12",
    )
)
def purge(
    numbers: Numbers = None,
    *,
    reason: Reason = None,
    partition: Partition = None,
    older_than: OlderThan = None,
    everything: Everything = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
) -> None:
    """Forget dead letters for good; the account of their partitions still counts them.

    Those that wait for a replay stay.
    """
    letters = _selected(numbers, (reason, partition, older_than), everything=everything)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("purging is for good: add --yes")
        typer.confirm("Forget them for good?", abort=True, err=True)
    with _writing(config, set_, stream) as (store, name):
        gone = store.purge_dead_letters(name, letters)
    if not gone:
        raise NotFoundError("no dead letter to purge", next_step="weald dlq list")
    note(f"{gone} dead letters are gone")


@contextmanager
def _writing(
    config: Any, set_: list[str] | None, stream: str | None
) -> Iterator[tuple[SqlStore, str]]:
    """Open the same state for the few words that these commands write."""
    from weald.cli.terminal.opened import reading_with_settings
    from weald.storage.writing.store import SqlStore

    opened = reading_with_settings(config, set_, stream, undivided=False)
    with opened as (state, settings):
        store = SqlStore(settings.storage)
        try:
            yield store, state.stream
        finally:
            store.close()


def _selected(
    numbers: list[int] | None,
    conditions: tuple[str | None, int | None, float | None],
    *,
    everything: bool,
) -> Letters:
    chosen = bool(numbers) or any(each is not None for each in conditions)
    if chosen == everything:
        raise UsageError(
            "say which dead letters: their numbers, --reason, --partition, --older-than, or --all"
        )
    return _letters(numbers or None, *conditions)


def _letters(
    numbers: list[int] | None,
    reason: str | None = None,
    partition: int | None = None,
    older_than: float | None = None,
) -> Letters:
    from weald.storage.queries.base import Letters
    from weald.stream.record.record import Reason as Code

    codes = [str(code) for code in Code]
    if reason is not None and reason not in codes:
        raise UsageError(f"no such reason {reason!r}; one of {', '.join(codes)}")
    before = None if older_than is None else time.time() - older_than * DAY_SECONDS
    return Letters(numbers=numbers, reason=reason, partition=partition, received_before=before)


def _row(letter: DeadLetterRow) -> dict[str, Any]:
    return {
        "number": letter.number,
        "received_at": iso_time(letter.received_at),
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "reason": letter.reason,
        "detail": letter.detail,
        "replay_at": iso_time(letter.replay_at),
    }


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
