"""``weald run``: the service itself."""

# ruff: noqa: PLR0913 - one parameter for each flag of the command

from __future__ import annotations

import logging
import signal
import sys
from contextlib import AbstractContextManager, ExitStack
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from weald.cli.errors import ExitCode, NotReadyError, UsageError
from weald.cli.service.logs import LogFormat, log_to_standard_error
from weald.cli.service.signals import stopping_on_signals
from weald.cli.terminal.opened import open_settings
from weald.cli.terminal.options import Config, Logs, Set, example
from weald.cli.terminal.output import note

from .worker import working_threads

if TYPE_CHECKING:
    from pathlib import Path

    from weald.cli.config.settings import Settings
    from weald.stream.source.recognition import Decision

__all__ = ["add_to"]

_log = logging.getLogger(__name__)


class SourceKind(StrEnum):
    """Where records come from."""

    kafka = "kafka"
    file = "file"
    stdin = "stdin"


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald run",
            "weald run --source file --path readings.jsonl",
            "tail -F readings.jsonl | weald run --source stdin",
            "weald run --embedded",
            "weald run --set refinement.every_records=200 --set model.seed=7",
        )
    )(run)


def run(
    *,
    source: Annotated[
        SourceKind | None, typer.Option("--source", help="Where records come from.")
    ] = None,
    path: Annotated[
        str | None, typer.Option("--path", metavar="FILE", help="File of --source file.")
    ] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Topic to read.")] = None,
    bootstrap_servers: Annotated[
        str | None, typer.Option("--bootstrap-servers", metavar="HOST:PORT", help="The brokers.")
    ] = None,
    embedded: Annotated[
        bool,
        typer.Option("--embedded", help="Start a Kafka broker and a Redis for this run alone."),
    ] = False,
    from_beginning_again: Annotated[
        bool,
        typer.Option(
            "--from-beginning-again",
            help="Where the topic or file is another one than was read: read it from its start.",
        ),
    ] = False,
    skip_to: Annotated[
        list[str] | None,
        typer.Option(
            "--skip-to",
            metavar="[PARTITION:]OFFSET",
            help="Where it is another one: go on at this offset. Repeat for more partitions.",
        ),
    ] = None,
    log_format: Logs = LogFormat.text,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log what helps to find a fault, too.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Log warnings and errors only.")
    ] = False,
    config: Config = None,
    set_: Set = None,
) -> None:
    """Read the stream, cluster it, keep refining.

    State, clusters and offsets are committed together, so that a run that is stopped or killed
    goes on where it was, each observation counted once. SIGTERM and Ctrl-C finish the batch in
    hand. A file is read to its end and the command leaves with 0; a topic has no end.

    A new database gets its tables by itself; an older one asks for `weald db upgrade`.

    A topic that was made anew under the same name, one that was truncated, and a file that was
    replaced are told from what was read before by the topic's id, where the log begins, and a
    checksum of the last record. Nothing is read then until it is said what is meant, with
    --from-beginning-again or --skip-to; SQL keeps the decision, and what was read before under
    another name of the topic. Neither option does anything otherwise.
    """
    decision = _decision(skip_to or [], from_beginning_again=from_beginning_again)
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    log_to_standard_error(log_format, level)
    flags = {
        "stream.source": None if source is None else str(source),
        "stream.path": path,
        "kafka.topic": topic,
        "kafka.bootstrap_servers": bootstrap_servers,
    }
    loaded = open_settings(config, set_, flags)
    settings = loaded.settings
    if settings.stream.shards > 1:
        _look_at_shards(settings.stream.shards, embedded=embedded)
    from weald.cli.service import service as root

    with ExitStack() as running:
        if embedded:
            settings = running.enter_context(root.embedded_servers(settings))
            _announce_embedded(settings)
        _check_source(settings)
        # What settings contradict each other is refused before anything is made.
        root.plans_of(settings)
        running.enter_context(_compiling_beside(settings))
        database = settings.storage.url
        root.waiting_for_sql(database, lambda: root.prepare_database(settings))
        opened = root.open_sources(settings)
        for source_ in opened:
            running.callback(source_.close)
        ready = running.enter_context(
            root.service(settings, opened, next_port="monitoring.port" not in loaded.origins)
        )
        if decision is not None:
            ready.go_on_with(decision)
        _announce(settings, ready.metrics_url)
        if embedded and settings.refinement.mode == "workers":
            running.enter_context(working_threads(settings, settings.workers.threads))
        with stopping_on_signals(ready.stop, "the batch") as received:
            ready.run()
    _sum_up(settings, config)
    if signal.SIGINT in received:
        sys.exit(ExitCode.INTERRUPTED)


def _decision(skip_to: list[str], *, from_beginning_again: bool) -> Decision | None:
    """What is to be done with a log that is another one than was read."""
    from weald.stream.source.recognition import Decision

    if from_beginning_again and skip_to:
        raise UsageError("--from-beginning-again and --skip-to contradict each other")
    if not from_beginning_again and not skip_to:
        return None
    chosen: dict[str, int] = {}
    for text in skip_to:
        partition, _, offset = text.rpartition(":")
        if not offset.isdecimal() or not (partition.isdecimal() or offset == text):
            raise UsageError(f"--skip-to {text}: give an offset, or PARTITION:OFFSET")
        chosen[partition] = int(offset)
    everywhere = chosen.pop("", None)
    return Decision(everywhere, {int(number): offset for number, offset in chosen.items()})


def _look_at_shards(shards: int, *, embedded: bool) -> None:
    if embedded:
        raise UsageError(
            f"stream.shards = {shards} does not go with --embedded: its broker lasts as long as "
            "this process, which no other one can share",
            next_step="weald run --embedded --set stream.shards=1",
        )
    _log.warning(
        "stream.shards = %d: trees and snapshots are listed by shard (docs/many-machines.md)",
        shards,
    )


def _check_source(settings: Settings) -> None:
    from weald.stream.record.schema import Schema

    Schema.of(settings.schema)
    stream = settings.stream
    if stream.source == "stdin" and sys.stdin.isatty():
        raise NotReadyError(
            "standard input is the terminal: pipe records into it",
            next_step="weald run --source stdin < records.jsonl",
        )


def _compiling_beside(settings: Settings) -> AbstractContextManager[object]:
    """While records are inserted, another process compiles what refines them."""
    from weald.cli.service.kernels import second_half_beside
    from weald.stream.model.model import chosen_family
    from weald.treecore.compiled.kernel_cache import cache_directory

    if not cache_directory().is_dir():
        note("kernels are compiled at the first records, this once: half a minute or so")
    return second_half_beside(chosen_family(settings.model, settings.schema, settings.features)[0])


def _announce(settings: Settings, metrics_url: str | None) -> None:
    stream, kafka = settings.stream, settings.kafka
    origin = {
        "kafka": f"topic {kafka.topic} at {kafka.bootstrap_servers}",
        "file": stream.path,
        "stdin": "standard input",
    }[stream.source]
    note(f"stream  {stream.name}, reading {origin}")
    if metrics_url is not None:
        note(f"metrics {metrics_url}")


def _sum_up(settings: Settings, config: Path | None) -> None:
    """Say what the stream came to, and how to look at it."""
    from weald.storage.errors import StorageError
    from weald.storage.queries.reader import SqlReader

    try:
        with SqlReader(settings.storage) as reader:
            status = reader.status(settings.stream.name)
            in_shards = bool(reader.parts(settings.stream.name))
    except StorageError:
        return  # no stream yet, or a database that has gone meanwhile: the run itself ended well
    dead = "dead letter" if status.n_dead == 1 else "dead letters"
    note(
        f"so far  {status.n_received:,} received: {status.n_inserted:,} inserted, "
        f"{status.n_duplicate:,} repeated, {status.n_dead:,} {dead}"
        + ("" if in_shards else f"; {status.n_clusters:,} clusters")
    )
    where = "" if config is None else f" --config {config}"
    if in_shards:
        note(f"Next: weald status{where}")
        return
    look = f"; weald dlq list{where}" if status.n_dead else ""
    note(f"Next: weald clusters{where}; weald report{where}{look}")


def _announce_embedded(settings: Settings) -> None:
    kafka = settings.kafka
    note(f"redis   {settings.redis.url} (embedded)")
    if settings.stream.source == "kafka":
        note(
            f"kafka   {kafka.bootstrap_servers} (embedded, in memory; clients need "
            f"api_version {kafka.api_version})"
        )
