"""Refinements of all of many atoms, on a thread beside the loop: records do not wait for them.

The thread gives way to others, works on copies, and may be dropped at any time. What it has arrived
at is taken over between two batches, in the transaction that tells SQL where it began and where it
was taken over; so a replay makes it again, and one that was never taken over has never been. It is
published some batches later, out of turn, as both take long.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Protocol

from weald.storage.commit.commit import AdoptionRow
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.telemetry.steps import Step

if TYPE_CHECKING:
    from weald.stream.model.shard import Shard

__all__ = ["BackgroundThread", "Concurrent", "Work"]

# What the system's scheduler calls nice: of a processor that is wanted it gets a quarter.
_NICE = 5
# A round of very many atoms takes longer, and is left to end with the process.
_MOST_SECONDS_TO_STOP = 10.0


class Work(Protocol):
    """What a thread beside the loop may do: it asks nothing of what the loop changes."""

    def run(self) -> None:
        """Do it."""

    def stop(self) -> None:
        """Have `run` return soon; nothing comes of it then."""


class BackgroundThread:
    """Work on a thread of its own, which begins at once and gives way to others."""

    def __init__(self, work: Work, name: str) -> None:
        self._work = work
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            if sys.platform == "linux":  # elsewhere it would be that of the whole process
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
            self._work.run()
        except Exception as failure:  # noqa: BLE001 - whoever asks whether it has ended gets it
            self._failure = failure

    @property
    def ended(self) -> bool:
        """Whether it has come to its end; raises what it has failed of."""
        if self._thread.is_alive():
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def stop(self) -> None:
        """Have it end soon; nothing comes of it."""
        self._work.stop()
        self._thread.join(_MOST_SECONDS_TO_STOP)


class Concurrent:
    """The refinement that goes on beside one model's arrivals, if any does."""

    def __init__(self) -> None:
        self._shard: Shard | None = None
        self._running: BackgroundThread | None = None
        self._seconds = 0.0

    @property
    def goes_on(self) -> bool:
        """Whether one does."""
        return self._running is not None

    def begin(self, shard: Shard) -> None:
        """Begin one; the copies are made here, as the loop does everything with the model."""
        began = time.monotonic()
        refinement = shard.begin_concurrent(shard.rounds.taken + 1)
        self._shard, self._running = shard, BackgroundThread(refinement, "refinement")
        self._seconds = time.monotonic() - began

    def adopt(self, shard: Shard, step: Step) -> tuple[BatchOutcome, float] | None:
        """Take over what has come to its end, if it has.

        Returns what is to be committed, and how long the loop stood still for the refinement, in
        seconds.
        """
        if self._running is None:
            return None
        if shard.concurrent is None or shard is not self._shard:
            self.drop()
            return None
        if not self._running.ended:
            return None
        began = time.monotonic()
        place = shard.begun
        row = AdoptionRow(
            round_number=place.out,
            begun_seq=place.seq,
            begun_publication=place.publication,
            seq=shard.seq,
            publication=shard.publication,
            payload={},
        )
        applied = BatchOutcome(adoptions=[row])
        applied.extend(shard.adopt_concurrent(step))
        self._shard = self._running = None
        return applied, self._seconds + time.monotonic() - began

    def drop(self) -> None:
        """Go on as if none had begun."""
        if self._shard is not None and self._shard.concurrent is not None:
            self._shard.forget_lent()
        if self._running is not None:
            self._running.stop()
        self._shard = self._running = None
