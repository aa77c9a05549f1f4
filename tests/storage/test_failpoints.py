"""Failpoints: off by themselves, and never at a label that is not there."""

import os
import signal
import subprocess
import sys

import pytest

from weald.storage.sql.failpoints import LABELS, VARIABLE, arm, failpoint

TWICE = """
from weald.storage.sql.failpoints import failpoint
failpoint("commit.written"); print("once", flush=True); failpoint("commit.written"); print("twice")
"""


def passing(order: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", TWICE],
        env={**os.environ, VARIABLE: order},
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_happens_unless_it_is_asked_for() -> None:
    assert passing("").stdout == "once\ntwice\n"
    for label in LABELS:
        failpoint(label)


def test_the_process_dies_at_the_passing_that_is_named() -> None:
    done = passing("commit.written:2")
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "once\n")


@pytest.mark.parametrize("order", ["nowhere", "commit:0", "commit:x"])
def test_an_order_that_makes_no_sense_is_refused(order: str) -> None:
    with pytest.raises(ValueError, match="LABEL"):
        arm(order)
