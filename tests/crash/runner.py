"""A process that runs one stream, and can be told to kill itself at a labelled step.

``python -m tests.crash.runner ORDERS`` where ORDERS is the JSON of `Orders`. SIGTERM stops it in
order; it says on standard output when it has taken the stream over.
"""

import faulthandler
import logging
import signal
import sys
from pathlib import Path

import msgspec

from tests.stream import network
from tests.stream.scenario import CADENCE, MODEL, NAME, SCHEMA
from weald.storage.settings import StorageSettings
from weald.storage.sql.failpoints import arm
from weald.storage.writing.store import SqlStore
from weald.stream.dead_letters.kafka_topic import KafkaDeadLetters
from weald.stream.engine.engine import Engine
from weald.stream.engine.sinks import Sinks
from weald.stream.model.model import StreamConfig
from weald.stream.settings import KafkaSettings, StreamSettings
from weald.stream.source.file_source import FileSource
from weald.stream.source.kafka_source import KafkaSource
from weald.stream.source.librdkafka_source import source_of

# Has a runner write to its log what each of its threads is doing.
STACKS = signal.SIGUSR2


class Orders(msgspec.Struct, frozen=True):
    """What to run and where to die.

    Parameters
    ----------
    database : str
        URL.
    stream : StreamSettings
    kafka : KafkaSettings
    step : str
        Failpoint at whose `count`-th passing the process kills itself; "" for never.
    edges : bool
        Whether records are the edges of a network.
    """

    database: str
    stream: StreamSettings
    kafka: KafkaSettings = KafkaSettings()
    step: str = ""
    count: int = 0
    edges: bool = False


def main() -> None:
    """Run until the source ends, SIGTERM comes, or the ordered step begins."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    faulthandler.register(STACKS)
    orders = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Orders)

    if orders.step:
        arm(f"{orders.step}:{orders.count}")
    sinks = Sinks()
    source: FileSource | KafkaSource
    if orders.stream.source == "kafka":
        source = source_of(orders.kafka, NAME, orders.stream.most_polled)
        sinks.dead_letters = KafkaDeadLetters(orders.kafka, NAME)
    else:
        source = FileSource(orders.stream)
    store = SqlStore(StorageSettings(url=orders.database, busy_timeout_seconds=5.0))
    plan = StreamConfig(orders.stream, SCHEMA, MODEL, CADENCE)
    if orders.edges:
        plan = StreamConfig(orders.stream, network.SCHEMA, network.MODEL, network.CADENCE)
    engine = Engine(plan, source, store, sinks)
    signal.signal(signal.SIGTERM, lambda *_: engine.stop())
    engine.run()
    if sinks.dead_letters is not None:
        sinks.dead_letters.close()
    store.close()


if __name__ == "__main__":
    main()
