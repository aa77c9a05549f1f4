"""Libraries that are no dependencies, imported where something needs one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .errors import LibraryMissing

__all__ = ["optional_library"]


def optional_library(module: str, what: str, extra: str) -> Any:
    """A module by its name, as none of these has types.

    Raises LibraryMissing where it is not installed, which says ``what`` needs it and that it comes
    with this extra of ``weald``.
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise LibraryMissing(f"{what} needs {library}", f"pip install 'weald[{extra}]'") from error
