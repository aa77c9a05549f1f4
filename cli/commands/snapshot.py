"""``weald snapshot``: the images from which a stream goes on, and the way back to one."""

# ruff: noqa: PLR0913 - one parameter for each flag of the command

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weald.answers.numbers import iso_time
from weald.cli.errors import CommandError, NotFoundError, UsageError
from weald.cli.terminal.options import Config, Output, Set, StreamName, example
from weald.cli.terminal.output import Column, Form, write_record, write_rows

if TYPE_CHECKING:
    from weald.answers.stored_stream import StoredStream
    from weald.cli.config.settings import Settings
    from weald.storage.writing.store import SqlStore

__all__ = ["add_to"]

group = typer.Typer(rich_markup_mode=None, no_args_is_help=True)

Number = Annotated[
    int, typer.Argument(metavar="NUMBER", min=1, help="As `weald snapshot list` shows it.")
]

COLUMNS = [
    Column("number", "number", "right"),
    Column("observations", "observations", "right", str),
    Column("created", "created"),
    Column("bytes", "bytes", "right", str),
    Column("label", "label"),
]
FLOWS = [
    Column("from_cluster", "from", "right"),
    Column("to_cluster", "to", "right"),
    Column("n_observations", "observations", "right"),
]


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.add_typer(
        group,
        name="snapshot",
        help="List, make, check and compare snapshots; go back to one.",
        epilog=example(
            "weald snapshot list",
            'weald snapshot create --label "before the new sensor"',
            "weald snapshot revert 12 --drop-later",
        ),
    )


@group.command("list", epilog=example("weald snapshot list", "weald snapshot list -o json"))
def list_(
    *,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """List the stored snapshots, newest first.

    The writer makes one after `stream.snapshot_records` observations, and when it stops; it keeps
    the newest `storage.snapshots_kept`, and those with a label.
    """
    from weald.cli.terminal.opened import reading

    with reading(config, set_, stream) as state:
        found = state.reader.snapshots(state.stream)
    write_rows([_row(info) for info in found], COLUMNS, output)


@group.command(
    epilog=example("weald snapshot create", 'weald snapshot create --label "before the sale"')
)
def create(
    *,
    label: Annotated[
        str | None,
        typer.Option("--label", "-l", help="Name it, so that it stays until it is deleted."),
    ] = None,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """Make a snapshot of the stream as it is now, also while it runs.

    Without a label it goes, as the writer's own do, when newer ones have come.
    """
    from weald.cli.terminal.progress import replaying
    from weald.stream.recovery import snapshots

    with _writing(config, set_, stream) as (state, _, store):
        position = store.position(state.stream)
        newest = store.snapshots(state.stream)
        total = position.next_seq - 1 - (newest[0].seq if newest else 0)
        with replaying(total) as progress:
            number = snapshots.create(store, state.stream, label, progress)
        info = next(each for each in store.snapshots(state.stream) if each.number == number)
    write_record(_row(info), output)


@group.command(epilog=example("weald snapshot verify", "weald snapshot verify 12"))
def verify(
    number: Annotated[
        int | None, typer.Argument(metavar="[NUMBER]", help="One snapshot; all when left out.")
    ] = None,
    *,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """Check snapshots: their bytes, their parts, and their partition against SQL.

    Leaves with 1 if any cannot be used. A writer that starts passes such a one over by itself.
    """
    from weald.cli.terminal.opened import reading
    from weald.storage.errors import SnapshotCorrupt
    from weald.stream.recovery import snapshots

    rows: list[dict[str, Any]] = []
    with reading(config, set_, stream) as state:
        for info in _chosen(state, number):
            try:
                snapshots.verify(state.reader, state.stream, info.number)
                rows.append(_row(info) | {"verdict": "good"})
            except SnapshotCorrupt as error:
                rows.append(_row(info) | {"verdict": str(error)})
    write_rows(rows, [*COLUMNS, Column("verdict", "verdict")], output)
    bad = [str(row["number"]) for row in rows if row["verdict"] != "good"]
    if bad:
        raise CommandError(
            f"of {len(rows)} snapshots, {len(bad)} cannot be used: {', '.join(bad)}",
            next_step="weald snapshot create    makes a good one from the one before",
        )


@group.command(
    epilog=example(
        "weald snapshot revert 12 --drop-later", "weald snapshot revert 12 --keep-later --yes"
    )
)
def revert(
    number: Number,
    *,
    keep: Annotated[
        bool | None,
        typer.Option(
            "--keep-later/--drop-later",
            help="Keep later observations and what is shown of them, or take them out and read "
            "the topic again from there.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """Go back to a snapshot. The service may run; it drops its state and goes on from there.

    With --keep-later the model forgets what refinement has done since, and every later
    observation is inserted anew. Nothing that is shown changes until the next publication.

    With --drop-later everything after the snapshot leaves the tables: observations, history, dead
    letters, later snapshots. Records that the topic still has are read again, those that it has
    expired are gone, and numbers of clusters that were born since are given again.
    """
    from weald.cli.terminal.progress import replaying
    from weald.stream.recovery import snapshots

    if keep is None:
        raise UsageError("say what becomes of later results: --keep-later or --drop-later")
    with _writing(config, set_, stream) as (state, settings, store):
        (info,) = _chosen(state, number)
        total = store.position(state.stream).next_seq - 1 - info.seq
        if not yes:
            what = "insert anew" if keep else "take out"
            typer.confirm(
                f"{state.stream}: go back to observation {info.seq} and {what} the {total} after "
                "it?",
                abort=True,
                err=True,
            )
        answer: dict[str, Any] = {"stream": state.stream, "reverted_to": number, "at": info.seq}
        if keep:
            cadence = settings.refinement
            with replaying(total) as progress:
                made = snapshots.revert_keeping(store, state.stream, number, cadence, progress)
            answer |= {"inserted_anew": total, "goes_on_from": made}
        else:
            taken = snapshots.revert_dropping(store, state.stream, number)
            answer |= {"taken_out": taken, "goes_on_from": number}
    write_record(answer, output)


@group.command(epilog=example("weald snapshot diff 11 12", "weald snapshot diff 11 12 -o json"))
def diff(
    earlier: Number,
    later: Number,
    *,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """Compare what two snapshots show of the observations that both know.

    `moved` counts those that are in another cluster; `variation of information` is 0 when the
    partitions are the same under whatever names.
    """
    from dataclasses import asdict

    from weald.cli.terminal.opened import reading
    from weald.stream.recovery import snapshots

    with reading(config, set_, stream) as state:
        for number in (earlier, later):
            _chosen(state, number)
        found = asdict(snapshots.compare(state.reader, state.stream, earlier, later))
    renamed = {name.removeprefix("n_"): value for name, value in found.items()}
    write_record({"earlier": earlier, "later": later, **renamed}, output, tables={"flows": FLOWS})


def _row(info: Any) -> dict[str, Any]:
    return {
        "number": info.number,
        "observations": info.seq,
        "created": iso_time(info.created_at),
        "bytes": info.n_bytes,
        "label": info.label,
    }


def _chosen(state: StoredStream, number: int | None) -> list[Any]:
    found = state.reader.snapshots(state.stream)
    if number is None:
        return found
    chosen = [info for info in found if info.number == number]
    if not chosen:
        known = ", ".join(str(info.number) for info in found) or "none"
        raise NotFoundError(
            f"stream {state.stream} has no snapshot {number}; it has {known}",
            next_step="weald snapshot list",
        )
    return chosen


@contextmanager
def _writing(
    config: Path | None, set_: list[str] | None, stream: str | None
) -> Iterator[tuple[StoredStream, Settings, SqlStore]]:
    """Open the state for questions and for changes."""
    from weald.cli.terminal.opened import reading_with_settings
    from weald.storage.writing.store import SqlStore

    with (
        reading_with_settings(config, set_, stream) as (state, settings),
        SqlStore(settings.storage) as store,
    ):
        yield state, settings, store
