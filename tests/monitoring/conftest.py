"""Fixtures of the monitoring tests."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def promtool_reads(
    run_promtool: Callable[..., tuple[int, str]],
) -> Callable[..., tuple[int, str]]:
    """Run promtool with bytes on its standard input; return its status and what it said."""
    run_promtool("--version")  # skips, or fails under CI, where there is none

    def run(text: bytes, *arguments: str | Path) -> tuple[int, str]:
        done = subprocess.run(
            ["promtool", *arguments], input=text, capture_output=True, check=False
        )
        return done.returncode, (done.stdout + done.stderr).decode()

    return run
