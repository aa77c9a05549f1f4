"""``weald demo``: a real stream through a Kafka topic into clusters, with nothing to install."""

from __future__ import annotations

import logging
import shlex
import shutil
import sys
import time
from contextlib import ExitStack
from enum import StrEnum
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weald.cli.terminal.options import Wide, example
from weald.cli.terminal.output import note

if TYPE_CHECKING:
    from weald.cli.config.settings import Settings

    from .findings import Findings
    from .home import Home
    from .streams import BundledStream

__all__ = ["add_to", "next_commands"]

DEFAULT = Path("weald-demo")


class DemoChoice(StrEnum):
    """The bundled streams."""

    earthquakes = "earthquakes"
    flights = "flights"


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald demo",
            "weald demo --stream flights --records 10000",
            "weald demo --home /tmp/quakes",
        )
    )(demo)


def demo(
    *,
    stream: Annotated[
        DemoChoice,
        typer.Option(
            "--stream",
            "-s",
            help="earthquakes: a week of them, worldwide (USGS). flights: departures from New "
            "York City in two months.",
        ),
    ] = DemoChoice.earthquakes,
    home: Annotated[
        Path, typer.Option("--home", metavar="DIR", help="Folder for what the demo leaves behind.")
    ] = DEFAULT,
    records: Annotated[
        int | None, typer.Option("--records", min=1, help="Replay only the first so many.")
    ] = None,
    _wide: Wide = False,
) -> None:
    """Cluster a real stream, with nothing to install.

    A bundled stream is replayed onto a Kafka topic and read from there as `weald run` would.
    Everything runs in this process and on loopback: a Kafka-protocol broker, a producer that
    replays the stream, the consumer and the engine of `weald run`, SQLite, a Valkey behind the
    Redis client, metrics and health. Afterwards the other commands answer from the folder that
    it leaves behind, where it also writes a picture and a page.
    """
    from weald.cli.config.settings import load
    from weald.cli.service.embedded import require

    from .home import Home
    from .streams import STREAMS

    require()

    logging.getLogger("kafka").setLevel(logging.ERROR)
    bundled = STREAMS[stream]
    place = Home(home)
    place.prepare(bundled)
    began = time.monotonic()
    note(f"{bundled.title}\n")
    loaded = load(place.configuration, {"monitoring.port": 0})
    _replay(loaded.settings, bundled, records)
    _report(place, bundled, time.monotonic() - began)


def _replay(settings: Settings, bundled: BundledStream, limit: int | None) -> None:
    """Run the engine on the replayed stream until all of it is in SQL."""
    from weald.cli.service import service as root
    from weald.cli.service.signals import stopping_on_signals
    from weald.cli.terminal.progress import counting

    from .bounded import BoundedSource
    from .preparation import compiling_beside
    from .replay import Replay

    total = sum(1 for _ in islice(bundled.records(), limit))
    with ExitStack() as open_things:
        await_kernels = open_things.enter_context(compiling_beside(settings, bundled))
        running = open_things.enter_context(root.embedded_servers(settings))
        servers, topic = running.kafka.bootstrap_servers, running.kafka.topic
        replay = Replay(servers, topic, islice(bundled.records(), limit))
        open_things.enter_context(replay)
        root.prepare_database(running)
        (topic_source,) = root.open_sources(running)
        source = BoundedSource(topic_source, replay)
        open_things.callback(source.close)
        ready = open_things.enter_context(root.service(running, [source], next_port=True))
        note(f"Kafka protocol  {servers}, topic {topic} (librdkafka's broker, in this process)")
        note(f"Redis           {running.redis.url} (Valkey)")
        note(f"metrics         {ready.metrics_url}")
        await_kernels(source)
        advance = open_things.enter_context(counting("records", total))
        source.received = lambda n: advance(n, "")
        received = open_things.enter_context(stopping_on_signals(ready.stop, "the batch"))
        ready.run()
    if received:
        raise KeyboardInterrupt


def _report(place: Home, bundled: BundledStream, seconds: float) -> None:
    from weald.answers.report_data import Subject
    from weald.cli.report.of_stream import subject_of_stream
    from weald.cli.terminal.opened import reading

    from .findings import find
    from .report import tell, write_page, write_picture

    with reading(place.configuration, None) as state:
        findings = find(state, bundled)
        subject = subject_of_stream(state, len(findings.assigned))
    commands = next_commands(place.folder, findings)
    if find_spec("matplotlib") is not None:
        write_picture(place, bundled, findings)
    if isinstance(subject, Subject):
        write_page(place, bundled, findings, subject, commands)
    tell(place, bundled, findings, commands)
    note(f"\n{findings.n_received} records, from start to finish in {seconds:.0f} s")


def next_commands(folder: Path, findings: Findings) -> list[str]:
    """Return commands that answer from the state on disk, as they can be typed here."""
    weald = _program()
    where = "" if folder == DEFAULT else f" --config {shlex.quote(str(folder))}"
    largest = findings.clusters[0]["cluster"]
    first, publication = findings.first_in(largest)
    key = shlex.quote(first)
    return [
        f"{weald} clusters{where}",
        f"{weald} cluster {largest}{where}",
        f"{weald} assign {key}{where}",
        f"{weald} assign {key} --as-of publication:{publication}{where}",
        f"{weald} status{where} --output json",
    ]


def _program() -> str:
    """Return how this program can be called again from the same shell."""
    called = Path(sys.argv[0])
    found = shutil.which("weald")
    if called.name != "weald" or (found and Path(found).resolve() == called.resolve()):
        return "weald"
    try:
        return shlex.quote(str(called.resolve().relative_to(Path.cwd())))
    except ValueError:
        return shlex.quote(str(called.resolve()))
