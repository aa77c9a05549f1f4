"""Labelled steps of a record's journey: a context manager around each."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

__all__ = ["Step", "untimed"]

Step = Callable[[str], AbstractContextManager[None]]


def untimed(_: str) -> AbstractContextManager[None]:
    """Do nothing around a step."""
    return nullcontext()
