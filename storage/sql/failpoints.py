"""Labelled steps of a record's journey at which a test may have the process killed.

Off, and then one comparison each, unless the environment variable ``WEALD_FAILPOINT`` names a
label of `LABELS`, `PLANE_LABELS` or `SHARD_LABELS`: ``commit.observations`` kills the process with
SIGKILL when it comes to that step for the first time, ``commit.observations:3`` the third time. No
handler runs and no buffer is flushed, as when the machine loses its power. The crash harness
(``python -m tests.crash.harness``) goes through all of `LABELS`, ``python -m tests.leases.chaos``
through the others of a stream in one piece.
"""

from __future__ import annotations

import os
import signal

__all__ = ["LABELS", "PLANE_LABELS", "SHARD_LABELS", "VARIABLE", "arm", "failpoint"]

VARIABLE = "WEALD_FAILPOINT"

# The loop's steps, each at its beginning and when it is done.
_STEPS = (
    "poll",
    "decode",
    "insert",
    "refine",
    "publish",
    "snapshot",
    "dead_letters",
    "commit",
    "redis",
    "courtesy",
)

LABELS = (
    # A tenure begins: the stream is claimed, its snapshot read, what came after replayed.
    "load.claimed",
    "load.restored",
    "load.replayed",
    "begin.created",
    *(label for step in _STEPS for label in (step, f"{step}.done")),
    # Inside of the one transaction, after each group of its statements; then COMMIT is next.
    "commit.fenced",
    "commit.offsets",
    "commit.observations",
    "commit.dead_letters",
    "commit.clusters",
    "commit.history",
    "commit.written",
    # What the retention lets go is gone.
    "pruned",
)

# Steps that are there only where workers refine.
PLANE_LABELS = (
    "lend",
    "lend.done",
    "adopt",
    "adopt.done",
    # Inside of the transaction that takes a round back: its leases are closed, what they brought
    # is not written yet.
    "commit.adopting",
)

# Steps of rounds of a stream's shards: a shard reports, answers, takes its turn, and shows what is
# published; shard 0 asks, publishes, and sums up what all show.
SHARD_LABELS = (
    *(
        f"shard.{step}{end}"
        for step in ("report", "answer", "turn", "ask", "publish", "sum")
        for end in ("", ".done")
    ),
    "shard.show",
    # Inside of the transaction: the round's row is written, what was asked or answered is not yet.
    "commit.shard_round",
    # The publication of the whole is, what it says of clusters is not.
    "commit.whole",
)

_left: dict[str, int] = {}


def arm(order: str) -> None:
    """Have the process killed at ``LABEL`` or at the n-th ``LABEL:n``; "" disarms.

    Raises
    ------
    ValueError
        If there is no such label, or the count is not a number from 1.
    """
    _left.clear()
    if not order:
        return
    label, _, count = order.partition(":")
    labels = LABELS + PLANE_LABELS + SHARD_LABELS
    if label not in labels or not (count or "1").isdecimal() or count == "0":
        raise ValueError(
            f"{VARIABLE}={order!r} is not LABEL or LABEL:COUNT; labels: {', '.join(labels)}"
        )
    _left[label] = int(count or "1")


def failpoint(label: str) -> None:
    """Pass the labelled step, unless this is the passing to die at."""
    if not _left or label not in _left:
        return
    _left[label] -= 1
    if _left[label] == 0:
        os.kill(os.getpid(), signal.SIGKILL)


arm(os.environ.get(VARIABLE, ""))
