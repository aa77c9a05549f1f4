"""A stream's transformation from its first sample, and in the bytes that SQL keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from weald.mcmc.offline.preparation import Informative, informative_columns
from weald.mcmc.offline.resolution import Moves
from weald.mcmc.offline.transformation import NUMERIC, Transformation, wants_components
from weald.mcmc.settings import FeatureSettings
from weald.storage.encoding.snapshot import decode, encode
from weald.storage.errors import SnapshotCorrupt, StreamConflict
from weald.stream.record.schema import Schema
from weald.stream.settings import SchemaSettings
from weald.treecore.errors import ParameterError

from .log_moves import LogMoves

if TYPE_CHECKING:
    from weald.storage.commit.commit import StreamSpec

__all__ = [
    "learned_from",
    "listed",
    "log_columns",
    "log_moves_of",
    "moves_of",
    "packed",
    "refuse_other_features",
    "refuse_unsuited",
    "sees_components",
    "transformation_of",
]

# Of what the arrays mean; the layout of the bytes has a version of its own.
_VERSION = 1
_ASKED, _MEANING = "asked", "version"
# Of fewer observations it is chance what columns say.
_FEWEST_ROWS = 20
_NAMES_SHOWN = 8


def sees_components(asked: FeatureSettings, family: str, schema: Schema) -> bool:
    """Whether a stream of such a family, or of "auto", sees its columns along components."""
    return _plain(schema) and wants_components(asked, family, schema.dimension)


def refuse_unsuited(asked: FeatureSettings, family: str, schema: Schema) -> None:
    """Raise ParameterError where [features] asks for what such a stream does not have."""
    if not asked.asks:
        return
    if family not in NUMERIC or not _plain(schema):
        raise ParameterError(
            "[features] is for streams whose fields are all numbers, under family gaussian or "
            f"diagonal: this one has {', '.join(sorted(set(schema.kinds)))} under {family}"
        )
    log_columns(asked, schema)


def log_columns(asked: FeatureSettings, schema: Schema) -> list[int]:
    """Columns whose logarithm is asked for; the name of an array means all of its columns."""
    at: dict[str, list[int]] = {}
    for field in schema.fields:
        start = sum(map(len, at.values()))
        at[field.name] = list(range(start, start + field.width))
    for column, name in enumerate(schema.features):
        at.setdefault(name, [column])
    if unknown := [name for name in asked.log if name not in at]:
        raise ParameterError(
            f"features.log: no field is called {', '.join(unknown)}; there are "
            f"{', '.join(field.name for field in schema.fields)}"
        )
    twice = [field.name for field in schema.fields if field.settings.scale == "log"]
    found = sorted({column for name in asked.log for column in at[name]})
    if again := [name for name in twice if set(at[name]) & set(found)]:
        raise ParameterError(
            f'features.log: field {again[0]} has scale = "log" already: choose one of the two'
        )
    return found


def learned_from(
    sample: NDArray[np.float64], asked: FeatureSettings, family: str, schema: Schema
) -> tuple[Transformation, str] | tuple[None, None]:
    """What the first observations (n, d) teach, and the words for it; None where nothing.

    Unless all columns are asked for, those that say nothing have no influence: of one value, or
    what others say. Lengths are of whole rows.

    Raises
    ------
    ParameterError
        When none of them has the logarithms that are asked for.
    """
    if family not in NUMERIC or not _plain(schema):
        return None, None
    logs = log_columns(asked, schema)
    whole = sample[(sample[:, logs] > 0.0).all(axis=1)]
    if not len(whole):
        raise ParameterError(
            f"features.log: none of the first {len(sample)} records has numbers above 0 in "
            f"{', '.join(asked.log)}"
        )
    found = None
    if asked.components != "all" and not asked.unit_length and len(whole) >= _FEWEST_ROWS:
        values = whole.copy()
        values[:, logs] = np.log(values[:, logs])
        found = informative_columns(values)
        found = found if found.kept.size else None
    learned = Transformation.learned(whole, asked, family, logs, found)
    if learned is None:
        return None, None
    others = "" if found is None else _left_out(found, schema.features)
    return learned, learned.in_words() + others


def _left_out(found: Informative, names: Sequence[str]) -> str:
    repeated = [f"{names[column]} (as {names[of]})" for column, of in found.repeated]
    parts = (
        ("of one value", [names[column] for column in found.constant]),
        ("that repeat others", repeated),
        ("that are sums of others", [names[column] for column in found.combined]),
    )
    told = [f"{what}: {listed(some)}" for what, some in parts if some]
    return f"; without columns {', '.join(told)}" if told else ""


def listed(names: Sequence[str]) -> str:
    """Return the first names of some, and how many more there are."""
    rest = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def packed(transformation: Transformation, asked: FeatureSettings) -> bytes:
    """Return the bytes of which `transformation_of` makes it again, bit for bit."""
    settings = np.frombuffer(msgspec.json.encode(asked), dtype=np.uint8)
    arrays = {_MEANING: np.array(_VERSION), _ASKED: settings, **transformation.arrays()}
    return encode(arrays)


def transformation_of(spec: StreamSpec) -> Transformation | None:
    """Return what a stored stream learned; None where its family sees the columns as they are.

    Raises
    ------
    SnapshotCorrupt
        When the bytes are damaged, or a later version's.
    """
    return None if spec.transformation is None else _unpacked(spec)[0]


def moves_of(spec: StreamSpec) -> Moves | None:
    """Return how the values that a stored stream's family sees are moved; None where not at all."""
    if spec.resolution is None or spec.moves is None:
        return None
    return Moves(np.array(spec.resolution), spec.moves)


def log_moves_of(spec: StreamSpec) -> LogMoves | None:
    """Return how what a stored stream sees by logarithms is moved before; None where not at all."""
    if spec.log_steps is None:
        return None
    scaling = Schema.of(msgspec.convert(spec.schema, SchemaSettings)).scaling
    return None if scaling is None else LogMoves(np.array(spec.log_steps), scaling)


def refuse_other_features(asked: FeatureSettings, stored: StreamSpec) -> None:
    """Raise StreamConflict where the settings ask for other features than the stream began with."""
    if stored.transformation is None:
        was, same = "without", not asked.asks
    else:
        known = _unpacked(stored)[1]
        was, same = f"with {_told(known)}", known == asked
    if not same:
        raise StreamConflict(
            f"stream {stored.name!r} began {was} [features], asked for {_told(asked)}: a stream "
            "keeps those it began with. Give the new one another name, or take the old settings"
        )


def _unpacked(spec: StreamSpec) -> tuple[Transformation, FeatureSettings]:
    what = f"the transformation of stream {spec.name!r}"
    try:
        arrays = decode(spec.transformation or b"")
    except SnapshotCorrupt as error:
        raise SnapshotCorrupt(
            f"{what} cannot be read: {error}. Restore the database from a backup"
        ) from error
    version = int(arrays[_MEANING])
    if version != _VERSION:
        raise SnapshotCorrupt(
            f"{what} has version {version}, this program knows {_VERSION}: run its own"
        )
    asked = msgspec.json.decode(arrays[_ASKED].tobytes(), type=FeatureSettings)
    return Transformation.of_arrays(arrays), asked


def _told(asked: FeatureSettings) -> str:
    return msgspec.json.encode(asked).decode()


def _plain(schema: Schema) -> bool:
    return set(schema.kinds) == {"number"}
