"""What shards tell each other as named arrays, which may lie in a database or go over a wire.

Arrays and nothing else: who reads them can run nothing. Every message comes back bit for bit.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .round_messages import (
    Anchors,
    AnchorsAsked,
    BlockSums,
    Items,
    ItemsAsked,
    Pairs,
    Redraw,
    Redrawn,
    ShardReport,
    ShardTurn,
    ShownItems,
    ShownSums,
    Sides,
)

__all__ = ["VERSION", "Message", "arrays_of", "message_of"]

Arrays = dict[str, NDArray[Any]]
Message = (
    ShardReport
    | Redraw
    | Redrawn
    | AnchorsAsked
    | Anchors
    | Pairs
    | Sides
    | ShardTurn
    | ItemsAsked
    | Items
    | ShownItems
    | ShownSums
)

# Of this form. A round is finished by the version that began it, or asked anew by another.
VERSION = 2
# A message's place in it is its code, which is never given to another.
_KINDS: tuple[type[Message], ...] = (
    ShardReport,
    Redraw,
    Redrawn,
    AnchorsAsked,
    Anchors,
    Pairs,
    Sides,
    ShardTurn,
    ItemsAsked,
    Items,
    ShownItems,
    ShownSums,
)
_ABOUT, _WITHIN = "about", "."


def arrays_of(message: Message) -> Arrays:
    """Return the message as arrays."""
    arrays: Arrays = {_ABOUT: np.array([VERSION, _KINDS.index(type(message))])}
    for name, value in message._asdict().items():
        if isinstance(value, BlockSums):
            arrays |= {name + _WITHIN + part: each for part, each in value._asdict().items()}
        else:
            arrays[name] = np.asarray(value)
    return arrays


def message_of(arrays: Arrays) -> Message:
    """Undo `arrays_of`.

    Raises
    ------
    ValueError
        Where another version wrote them, or something is missing.
    """
    try:
        version, code = arrays[_ABOUT].tolist()
        if version != VERSION:
            raise ValueError(f"a message of shards has version {version}, this program {VERSION}")
        kind = _KINDS[code]
        return kind(*(_value(kind, name, arrays) for name in kind._fields))
    except (KeyError, IndexError) as error:
        raise ValueError(f"a message of shards lacks {error}") from error


def _value(kind: type[Message], name: str, arrays: Arrays) -> object:
    wanted = kind.__annotations__[name]
    if wanted is BlockSums:
        return BlockSums(*(arrays[name + _WITHIN + part] for part in BlockSums._fields))
    return int(arrays[name]) if wanted is int else arrays[name]
