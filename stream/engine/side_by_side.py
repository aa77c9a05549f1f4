"""The engines of one process, a thread each: all run until one fails or all are stopped."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from .engine import Engine

__all__ = ["run_all"]

_log = logging.getLogger(__name__)


def run_all(engines: Sequence[Engine]) -> None:
    """Run engines, a single one on this thread, until each has come to its end.

    Where one ends, whatever the reason, the others finish the batch in hand.

    Raises
    ------
    Exception
        That of the first that failed.
    """
    if len(engines) == 1:
        engines[0].run()
        return
    failures: list[Exception] = []

    def run(engine: Engine) -> None:
        try:
            engine.run()
        except Exception as error:  # noqa: BLE001 - whoever waits for all raises it
            _log.debug("one of %d engines failed: %r", len(engines), error)
            failures.append(error)
        finally:
            for each in engines:
                each.stop()

    # A second Ctrl-C leaves at once, without waiting for them.
    threads = [
        threading.Thread(target=run, args=(each,), name=each.name, daemon=True) for each in engines
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
