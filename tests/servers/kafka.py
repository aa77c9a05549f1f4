"""Apache Kafka itself: one node in KRaft mode, run from its published jars.

``python -m tests.servers.kafka`` fetches the jars; ``python -m tests.servers.kafka serve`` also
starts a broker and prints its address, for trying things by hand.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import threading
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.servers.cache import cache_folder
from tests.servers.server import MissingServerError, Server, accepts, free_port

POM = Path(__file__).with_name("kafka-pom.xml")
HEAP_MEGABYTES = 512


def kafka_version() -> str:
    """Version of the broker that the project file names."""
    version = re.search(r"<kafka\.version>(.+)</kafka\.version>", POM.read_text())
    if version is None:
        raise ValueError(f"{POM} names no kafka.version")
    return version.group(1)


def libraries() -> Path:
    """Return the folder of the broker's jars, having Maven fetch them when they are not there."""
    cache = cache_folder()
    folder = cache / f"kafka-{kafka_version()}"
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingServerError(f"{folder} has no jars, and mvn to fetch them is not on the PATH")
    cache.mkdir(parents=True, exist_ok=True)
    # Two runs may fetch at once; each fills a folder of its own and the first to end is kept.
    with tempfile.TemporaryDirectory(dir=cache) as fetched:
        _fetch(maven, Path(fetched) / "libs")
        try:
            (Path(fetched) / "libs").rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    return folder


def kafka_broker(
    folder: Path,
    *,
    protocol: str = "PLAINTEXT",
    extra: Mapping[str, object] | None = None,
    users: Sequence[str] = (),
    reached_at: int | None = None,
) -> Server:
    """Describe a broker that keeps its log below ``folder``, formatted but not yet started.

    ``protocol`` is that of the listener for clients, ``extra`` more of server.properties, and
    ``users`` the SCRAM users that it begins with, as Kafka's storage tool spells them. Clients are
    told the port ``reached_at`` where it is another one than the broker's.
    """
    java = [*_java(), "-cp", f"{libraries()}/*"]
    properties = folder / "server.properties"
    port = free_port()
    ports = (port, reached_at or port, free_port(), free_port())
    properties.write_text(_properties(folder, ports, protocol, extra or {}))
    # The storage tool takes an identity that begins with a dash, as one in 64 would, for an option.
    identity = urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
    format_it = ["kafka.tools.StorageTool", "format", "-t", identity, "-c", str(properties)]
    done = subprocess.run(
        [*java, *format_it, *(part for user in users for part in ("--add-scram", user))],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
    )
    if done.returncode:
        raise RuntimeError(f"Kafka's storage tool failed: {done.stdout}{done.stderr}")
    return Server(
        name="Kafka",
        version=kafka_version(),
        argv=[*java, "-Dlog4j2.level=WARN", "kafka.Kafka", str(properties)],
        port=port,
        folder=folder,
        ready=lambda: accepts(port),
    )


def _java() -> list[str]:
    java = shutil.which("java")
    if java is None:
        raise MissingServerError("java is not on the PATH (17 or later)")
    # The serial collector and the first compiler alone start fastest and leave the cores alone.
    return [
        java,
        *("-Xms64m", f"-Xmx{HEAP_MEGABYTES}m"),
        *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
    ]


def _fetch(maven: str, target: Path) -> None:
    """Have Maven copy the broker's jars, their checksums verified, into a folder."""
    done = subprocess.run(
        [
            *(maven, "-q", "-B", "-ntp", "-C", "-f", str(POM)),
            *("dependency:copy-dependencies", "-DincludeScope=runtime"),
            f"-DoutputDirectory={target}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        tail = (done.stdout + done.stderr)[-1000:]
        raise MissingServerError(f"mvn could not fetch Kafka {kafka_version()}:\n{tail}")


def _properties(
    folder: Path, ports: tuple[int, int, int, int], protocol: str, extra: Mapping[str, object]
) -> str:
    port, reached_at, inner_port, controller_port = ports
    inner, controller = f"INNER://127.0.0.1:{inner_port}", f"127.0.0.1:{controller_port}"
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "listeners": f"CLIENTS://127.0.0.1:{port},{inner},CONTROLLER://{controller}",
        "advertised.listeners": f"CLIENTS://127.0.0.1:{reached_at},{inner}",
        "controller.listener.names": "CONTROLLER",
        # The broker's talk with itself needs no identity, whatever its clients need.
        "inter.broker.listener.name": "INNER",
        "listener.security.protocol.map": (
            f"CONTROLLER:PLAINTEXT,INNER:PLAINTEXT,CLIENTS:{protocol}"
        ),
        "log.dirs": folder / "log",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        # Waiting for more members, and for dead ones, is what would make group tests slow.
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        # After a kill the broker may register again only when its old session has ended.
        "broker.session.timeout.ms": 4000,
        "broker.heartbeat.interval.ms": 500,
        # The default buffer alone would take a quarter of the heap.
        # Compaction is looked for at once, not every quarter of a minute.
        "log.cleaner.backoff.ms": 200,
        "log.cleaner.dedupe.buffer.size": 8 * 1024 * 1024,
        **extra,
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def main(arguments: list[str]) -> None:
    """Fetch the jars, and with ``serve`` run a broker until interrupted."""
    try:
        sys.stdout.write(f"{libraries()}\n")
    except MissingServerError as error:
        sys.exit(f"kafka: {error}")
    if arguments == ["serve"]:
        with (
            tempfile.TemporaryDirectory(prefix="weald-kafka-") as folder,
            kafka_broker(Path(folder)) as broker,
        ):
            sys.stdout.write(f"{broker.address}\n")
            sys.stdout.flush()
            try:
                threading.Event().wait()
            except KeyboardInterrupt:
                return


if __name__ == "__main__":
    main(sys.argv[1:])
