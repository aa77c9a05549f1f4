"""Progress on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .output import note

__all__ = ["counting", "replaying", "step"]

SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def counting(title: str, total: int | None) -> Iterator[Callable[[int, str], None]]:
    """Show how far something has come.

    Parameters
    ----------
    title : str
    total : int or None
        None where the end is not known.

    Yields
    ------
    callable
        ``advance(n_done, remark)``: so many are done; the remark stands beside the bar.
    """
    if not sys.stderr.isatty():
        yield _lines(title, total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[remark]}"),
        console=Console(stderr=True),
    )
    with progress:
        task = progress.add_task(title, total=total, remark="")
        yield lambda done, remark: progress.update(task, completed=done, remark=remark)


def _lines(title: str, total: int | None) -> Callable[[int, str], None]:
    said = time.monotonic()

    def advance(done: int, remark: str) -> None:
        nonlocal said
        now = time.monotonic()
        if done == total or now - said >= SECONDS_BETWEEN_LINES:
            said = now
            of = "" if total is None else f" of {total}"
            note(f"{title}: {done}{of}{', ' if remark else ''}{remark}")

    return advance


@contextmanager
def replaying(total: int) -> Iterator[Callable[[int], None]]:
    """Show how far a replay of so many observations has come; yield what takes their number."""
    done = 0
    with counting("observations replayed", total) as advance:

        def progress(n: int) -> None:
            nonlocal done
            done += n
            advance(done, "")

        yield progress


@contextmanager
def step(title: str) -> Iterator[None]:
    """Say what is being done, and how long it took."""
    began = time.monotonic()
    if not sys.stderr.isatty():
        yield
        note(f"{title}: {time.monotonic() - began:.1f} s")
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    with console.status(title):
        yield
    console.print(f"{title}: {time.monotonic() - began:.1f} s", style="dim")
