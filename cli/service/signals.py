"""SIGTERM and Ctrl-C: finish what is in hand, then leave."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from weald.cli.terminal.output import note

__all__ = ["stopping_on_signals"]


@contextmanager
def stopping_on_signals(stop: Callable[[], None], in_hand: str) -> Iterator[list[int]]:
    """Let SIGTERM and the first Ctrl-C finish what is in hand; a second Ctrl-C stops at once.

    Parameters
    ----------
    stop : callable
        Called in the signal handler.
    in_hand : str
        What is finished, for people.

    Yields
    ------
    list of int
        The signals received so far.
    """
    received: list[int] = []

    def handle(number: int, _: object) -> None:
        if number == signal.SIGINT and number in received:
            raise KeyboardInterrupt
        received.append(number)
        note(f"{signal.Signals(number).name}: finishing {in_hand}")
        stop()

    before = {each: signal.signal(each, handle) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield received
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
