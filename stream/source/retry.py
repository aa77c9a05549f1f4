"""What is done while something is away: pause, keep the membership alive, try again."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from weald.storage.errors import StorageUnavailable
from weald.stream.errors import Rebalanced, SourceUnavailable
from weald.stream.record.record import Message
from weald.stream.telemetry.telemetry import Telemetry

from .source import Source

__all__ = ["Backoff", "RetryPolicy"]

T = TypeVar("T")


class Backoff:
    """Delays that double up to a limit, each drawn from the upper half of its range.

    Parameters
    ----------
    first, longest : float
        Seconds.
    """

    def __init__(self, first: float = 0.1, longest: float = 5.0) -> None:
        self._first = first
        self._longest = longest
        self._next = first
        self._draw = random.Random()  # noqa: S311  spreads retries, protects nothing

    def delay(self) -> float:
        """Return the next delay in seconds."""
        whole = self._next
        self._next = min(2 * whole, self._longest)
        return whole * self._draw.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Begin anew after a success."""
        self._next = self._first


class RetryPolicy:
    """Repeats an operation until it succeeds, while the group still hears of this process.

    Parameters
    ----------
    source : Source
        Paused in between, and polled, so that its broker does not take the partitions away.
    telemetry : Telemetry
    stopping : callable
        Whether the process has been told to stop; then the failure is final.
    """

    def __init__(self, source: Source, telemetry: Telemetry, stopping: Callable[[], bool]) -> None:
        self._source = source
        self._telemetry = telemetry
        self._stopping = stopping
        self._unanswered = Backoff()
        self._away = False

    def poll(self, timeout_s: float) -> list[Message]:
        """Poll the source; when its broker does not answer, wait a while and return nothing."""
        try:
            messages = self._source.poll(timeout_s)
        except SourceUnavailable as error:
            self._away = True
            self._telemetry.away("kafka", str(error))
            time.sleep(self._unanswered.delay())
            return []
        if self._away:
            self._away = False
            self._unanswered.reset()
            self._telemetry.back("kafka")
        return messages

    def until_done(self, target: str, operation: Callable[[], T]) -> T:
        """Run `operation`, again and again while its `target` is away.

        Raises
        ------
        Rebalanced
            When the partitions changed hands meanwhile.
        StorageUnavailable, SourceUnavailable
            When the process is stopping; SQL holds everything up to the last commit.
        """
        backoff, failed = Backoff(), False
        try:
            while True:
                try:
                    result = operation()
                except (StorageUnavailable, SourceUnavailable) as error:
                    failed = True
                    self._telemetry.away(target, str(error))
                    if self._stopping():
                        raise
                    self._rest(backoff.delay())
                else:
                    self._telemetry.back(target)
                    return result
        finally:
            # A try may take as long as the rest between two, and nothing comes in during either.
            if failed:
                self._telemetry.resumed()

    def rest(self, seconds: float) -> None:
        """Let time pass without records.

        Raises
        ------
        Rebalanced
            When the partitions changed hands.
        """
        try:
            self._rest(seconds)
        finally:
            self._telemetry.resumed()

    def _rest(self, seconds: float) -> None:
        self._source.pause()
        self._telemetry.paused()
        try:
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0 and not self._stopping():
                self.poll_paused(min(left, 0.2))
                self._telemetry.health.progress()
                self.heed_changes("a retry")
        finally:
            self._source.resume()

    def heed_changes(self, during: str) -> None:
        """End what goes on if the partitions changed hands; it is counted here, and nowhere else.

        Raises
        ------
        Rebalanced
            When they did.
        """
        changes = self._source.take_changes()
        for change in changes:
            self._telemetry.metrics.rebalance(change.kind)
        if changes:
            raise Rebalanced(f"the partitions were {changes[-1].kind} during {during}")

    def poll_paused(self, timeout_s: float) -> None:
        """Poll for the group's sake; a broker that does not answer is told of, and no more."""
        began = time.monotonic()
        try:
            self._source.poll(timeout_s)
        except SourceUnavailable as error:
            # That it is over is seen by the next poll for records.
            self._away = True
            self._telemetry.away("kafka", str(error))
        # A paused consumer may return at once; that must not become a busy loop.
        time.sleep(max(timeout_s - (time.monotonic() - began), 0.0))
