"""What is told of columns, one line for each, or for many of which the same is said."""

from collections.abc import Mapping

from .output import note

__all__ = ["note_columns"]

# Columns that are named on one line, and more than which share one.
_NAMED = 3


def note_columns(told: Mapping[str, str]) -> None:
    """Write what is said of each name on standard error, in one line where it is the same."""
    names: dict[str, list[str]] = {}
    for name, what in told.items():
        names.setdefault(what, []).append(name)
    for what, alike in names.items():
        if len(alike) > _NAMED + 1:
            first = ", ".join(alike[:_NAMED])
            note(f"  {first} and {len(alike) - _NAMED} more: {what}")
        else:
            for name in alike:
                note(f"  {name}: {what}")
