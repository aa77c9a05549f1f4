"""``weald doctor``: whether everything that a run needs is there."""

from __future__ import annotations

import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from weald.cli.errors import CommandError, NotReadyError
from weald.cli.terminal.error_messages import translated
from weald.cli.terminal.opened import open_settings
from weald.cli.terminal.options import Config, Output, Set, example
from weald.cli.terminal.output import Column, Form, write_rows

if TYPE_CHECKING:
    from weald.cli.config.settings import Loaded, Settings

__all__ = ["Finding", "add_to", "examine"]

COLUMNS = (
    Column("check", "check"),
    Column("state", "state"),
    Column("detail", "detail"),
    Column("next_step", "next"),
)
CONNECT_SECONDS = 3
# What SQLite's log of changes takes on a disk before it is emptied into the database.
LEAST_FREE = 16 * 2**20


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Parameters
    ----------
    check : str
    state : {"ok", "note", "bad"}
        ``note`` is worth knowing and stops nothing.
    detail : str
    next_step : str
        What to do about it; empty when nothing is wrong.
    """

    check: str
    state: Literal["ok", "note", "bad"]
    detail: str
    next_step: str = ""


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(epilog=example("weald doctor", "weald doctor --output json"))(doctor)


def doctor(config: Config = None, set_: Set = None, output: Output = Form.table) -> None:
    """Check that everything a run needs is there.

    That is the configuration, the model, the database, Redis, the source and the compiled kernels.
    Each finding names what to do about it. Leaves with 4 (not ready) if anything is bad.
    """
    findings = list(examine(open_settings(config, set_)))
    write_rows([asdict(finding) for finding in findings], COLUMNS, output)
    bad = [finding.check for finding in findings if finding.state == "bad"]
    if bad:
        raise NotReadyError(f"not ready: {', '.join(bad)}")


def examine(loaded: Loaded) -> Iterator[Finding]:
    """Run every check that these settings call for; none of them changes anything."""
    settings = loaded.settings
    yield Finding("python", "ok", sys.version.split()[0])
    yield _configuration(loaded)
    checks: list[tuple[str, Callable[[Settings], Finding]]] = [
        ("schema", _schema),
        ("model", _model),
        ("database", _database),
        ("redis", _redis),
        (settings.stream.source, _source),
        ("monitoring", _monitoring),
        ("kernels", _kernels),
    ]
    for name, check in checks:
        try:
            with translated():
                yield check(settings)
        except CommandError as error:
            yield Finding(name, "bad", error.message, error.next_step or "")
    yield from _extras()


def _configuration(loaded: Loaded) -> Finding:
    if loaded.file is None:
        return Finding("configuration", "note", "no weald.toml; defaults apply", "weald init")
    return Finding("configuration", "ok", f"{loaded.file}, {len(loaded.origins)} settings given")


def _schema(settings: Settings) -> Finding:
    from weald.stream.record.schema import Schema

    schema = Schema.of(settings.schema)
    names = [field.name for field in settings.schema.fields]
    told = f" ({schema.dimension} numbers)" if schema.dimension > len(names) else ""
    return Finding("schema", "ok", f"{', '.join(names)}{told}")


def _model(settings: Settings) -> Finding:
    from weald.cli.service.service import plans_of
    from weald.stream.errors import SchemaError
    from weald.stream.model.model import chosen_family

    try:
        plans_of(settings)
    except SchemaError:
        # Told by the check before.
        return Finding("model", "note", "not known without a schema")
    family, _ = chosen_family(settings.model, settings.schema, settings.features)
    return Finding("model", "ok", f"family {family}, prior {settings.model.prior}")


def _database(settings: Settings) -> Finding:
    from weald.cli.terminal.opened import sqlite_file
    from weald.storage.settings import redacted
    from weald.storage.sql import migrate

    url, file = redacted(settings.storage.url), sqlite_file(settings.storage.url)
    folder = None if file is None else file.absolute().parent
    if folder is not None and folder.is_dir():
        # Nothing that is only read tells of it, and a run would wait for room.
        free = shutil.disk_usage(folder).free
        if free < LEAST_FREE:
            detail = f"{url}: {free:,} bytes are free on its disk, and a run writes"
            return Finding("database", "bad", detail, f"make room in {folder}, or move the file")
    if (file is not None and not file.exists()) or migrate.current(settings.storage) is None:
        return Finding("database", "note", f"{url}: no tables yet; weald run makes them")
    migrate.check(settings.storage)
    return Finding("database", "ok", url)


def _source(settings: Settings) -> Finding:
    stream = settings.stream
    if stream.source == "kafka":
        return _kafka(settings)
    if stream.source == "stdin":
        return Finding("stdin", "ok", "read to its end")
    path = Path(stream.path or "")
    if stream.path is None or not path.is_file():
        return Finding(
            "file", "bad", f"no file {stream.path!r}", "correct stream.path in weald.toml"
        )
    return Finding("file", "ok", f"{path}, {path.stat().st_size:,} bytes")


def _kafka(settings: Settings) -> Finding:
    kafka = settings.kafka
    hint = "start the broker, or try: weald run --embedded"
    unreachable = _unreachable(kafka.bootstrap_servers)
    if unreachable is not None:
        return Finding("kafka", "bad", unreachable, hint)
    from kafka import KafkaConsumer
    from kafka.errors import KafkaError

    from weald.stream.source.kafka_options import client_options, overhearing

    options = client_options(kafka, "weald-doctor")
    options["bootstrap_timeout_ms"] = CONNECT_SECONDS * 1000
    with overhearing() as overheard:
        try:
            consumer = KafkaConsumer(**options)
            try:
                partitions = consumer.partitions_for_topic(kafka.topic)
            finally:
                consumer.close()
        except (KafkaError, OSError) as error:
            detail = f"{kafka.bootstrap_servers} does not answer: {error}{overheard}"
            return Finding("kafka", "bad", detail, hint)
    if not partitions:
        detail = f"{kafka.bootstrap_servers} has no topic {kafka.topic}"
        return Finding("kafka", "bad", detail, "create the topic, or correct kafka.topic")
    n = len(partitions)
    return Finding("kafka", "ok", f"{kafka.bootstrap_servers}, topic {kafka.topic}: {n} partitions")


def _unreachable(servers: str) -> str | None:
    """Say why no server can be connected to; None if one can."""
    problems = []
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
        except (OSError, ValueError) as error:
            problems.append(f"{server.strip()}: {error}")
        else:
            return None
    return "; ".join(problems)


def _redis(settings: Settings) -> Finding:
    from weald.storage.redis.statistics import RedisStatistics
    from weald.storage.settings import redacted

    if not settings.redis.enabled:
        return Finding("redis", "note", "off: statistics are not published")
    with RedisStatistics(settings.redis) as statistics:
        statistics.ping()
    return Finding("redis", "ok", redacted(settings.redis.url))


def _monitoring(settings: Settings) -> Finding:
    where = settings.monitoring
    if not where.enabled:
        return Finding("monitoring", "note", "off: no metrics and no health")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((where.host, where.port))
        except OSError as error:
            detail = f"{where.host}:{where.port}: {error.strerror} (a running Weald, perhaps)"
            return Finding("monitoring", "note", detail, "--set monitoring.port=PORT")
    return Finding("monitoring", "ok", f"{where.host}:{where.port} is free")


def _kernels(_: Settings) -> Finding:
    from weald.treecore.compiled.kernel_cache import cache_directory
    from weald.treecore.compiled.packaged import packaged_level

    level = packaged_level()
    if level is not None:
        return Finding("kernels", "ok", f"came compiled for {level}")
    folder = cache_directory()
    if not folder.is_dir():
        return Finding("kernels", "note", "compiled at the first run", "weald warmup")
    return Finding("kernels", "ok", f"compiled in {folder}")


def _extras() -> Iterator[Finding]:
    for extra, module, use in (
        ("embedded", "confluent_kafka", "weald demo and weald run --embedded"),
        ("plots", "matplotlib", "pictures"),
        ("postgres", "psycopg", "PostgreSQL"),
    ):
        if find_spec(module) is None:
            how = f"pip install 'weald[{extra}]'"
            yield Finding(f"extra {extra}", "note", f"not installed: needed for {use}", how)
        else:
            yield Finding(f"extra {extra}", "ok", use)
