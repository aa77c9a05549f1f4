"""Load generator of the stack: replays a stream that ships with Weald onto a topic, at a rate.

One record in five hundred is spoilt on purpose, so that the dashboards have dead letters to show.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from kafka import KafkaProducer

from weald.cli.demo.streams import STREAMS

SPOILT_EVERY = 500
REPORT_SECONDS = 30.0


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", default="127.0.0.1:9092")
    parser.add_argument("--topic", default="earthquakes")
    parser.add_argument("--stream", choices=sorted(STREAMS), default="earthquakes")
    parser.add_argument("--rate", type=float, default=100.0, help="records per second")
    parser.add_argument("--passes", type=int, help="passes over the stream; endless by default")
    return parser.parse_args()


def records(stream: str, passes: int | None) -> Iterator[dict[str, Any]]:
    """Yield the stream again and again, ids marked with the pass so that keys stay apart."""
    number = 0
    while passes is None or number < passes:
        number += 1
        for record in STREAMS[stream].records():
            yield {**record, "id": f"{record['id']}/{number}"}


def main() -> None:
    """Send until the end, or until interrupted."""
    options = parsed()
    # Waiting on an event instead of sleeping: SIGTERM ends the wait in any case.
    pause = threading.Event()
    producer = KafkaProducer(bootstrap_servers=options.bootstrap_servers, linger_ms=20)
    start = reported = time.monotonic()
    sent = 0
    try:
        for sent, record in enumerate(records(options.stream, options.passes), start=1):
            value = json.dumps(record)
            if sent % SPOILT_EVERY == 0:
                value = value[: len(value) // 2]
            producer.send(options.topic, value=value.encode(), key=str(record["id"]).encode())
            now = time.monotonic()
            if now - reported > REPORT_SECONDS:
                reported = now
                sys.stderr.write(f"sent {sent} records\n")
            ahead = sent / options.rate - (now - start)
            if ahead > 0:
                pause.wait(ahead)
    except KeyboardInterrupt:
        pass
    finally:
        producer.close()
    sys.stderr.write(f"sent {sent} records to {options.topic}\n")


if __name__ == "__main__":
    main()
