"""What rows of a file are called: by a column that says which record it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weald.stream.record.inference.field_inference import Identifies
    from weald.stream.record.inference.proposal import SchemaProposal

__all__ = ["names_of"]

# Longer ones are no names.
LONGEST = 40
# How columns say which record it is, the surest first.
_SUREST: tuple[Identifies, ...] = ("by name", "by number", "as a name")


def names_of(
    proposal: SchemaProposal, records: Sequence[Mapping[str, Any]]
) -> tuple[str, list[str]] | None:
    """Return the column by which records are called, and what each is called; None without one.

    It is the key, or one that was left out as an identifier or a name, different in every record.
    """
    columns = [proposal.key] if proposal.key is not None else []
    for surest in _SUREST:
        columns += [path for path, how in proposal.identifiers.items() if how == surest]
    for path in columns:
        names = [_name(record.get(path)) for record in records]
        if all(0 < len(name) <= LONGEST for name in names) and len(set(names)) == len(names):
            return path, names
    return None


def _name(value: Any) -> str:
    if value is None:
        return ""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value).strip()
