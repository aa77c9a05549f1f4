"""The declared schema, compiled once into what the decoder needs per record.

A schema whose fields all lie at the top of the record gets a compiled record type, which decodes
and checks in one pass; nested paths are walked instead.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from weald.stream.errors import SchemaError
from weald.stream.record.fields.features import (
    NETWORK_KINDS,
    Reader,
    column_names,
    reader_of,
    stated_type,
)
from weald.stream.settings import FieldSettings, SchemaSettings

__all__ = ["Field", "Scaling", "Schema"]

Path = tuple[str, ...]
# Numbers of a vector that people may know one by one; longer ones are embeddings.
LONGEST_TOLD = 16
# In a name JSON escapes these, and a compiled record type takes no such name.
_ESCAPED = re.compile(r'["\\\x00-\x1f]')


@dataclass(frozen=True)
class Field:
    """One declared field: where it is, what it holds, and the columns that it fills.

    Parameters
    ----------
    settings : FieldSettings
    path : tuple of str
    columns : tuple of str
        Their names.
    read : callable, optional
        From the decoded value to the columns' numbers; None for plain numbers.
    """

    settings: FieldSettings
    path: Path
    columns: tuple[str, ...]
    read: Reader | None

    @property
    def name(self) -> str:
        """Name of the field."""
        return self.settings.name

    @property
    def kind(self) -> str:
        """What it holds."""
        return self.settings.kind

    @property
    def size(self) -> int | None:
        """Length of an array of plain numbers; None for a single value."""
        return self.settings.size if self.read is None else None

    @property
    def is_long(self) -> bool:
        """Whether it is a vector of more numbers than say something one by one."""
        return (self.size or 0) > LONGEST_TOLD

    @property
    def width(self) -> int:
        """Columns of the observation that the field fills."""
        return len(self.columns)


class Scaling(NamedTuple):
    """Scaling of d columns: ``(log(1 + x) - center) / spread`` where `log`, else without the log.

    Parameters
    ----------
    log : ndarray of bool, shape (d,)
    center, spread : ndarray of float64, shape (d,)
    """

    log: NDArray[np.bool_]
    center: NDArray[np.float64]
    spread: NDArray[np.float64]

    @property
    def changes(self) -> bool:
        """Whether any column is scaled at all."""
        return bool(self.log.any() or self.center.any() or (self.spread != 1.0).any())

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scale rows (n, d); what has no logarithm becomes NaN."""
        scaled = values.copy()
        with np.errstate(invalid="ignore", divide="ignore"):
            scaled[:, self.log] = np.log1p(values[:, self.log])
        scaled[~np.isfinite(scaled)] = np.nan
        return (scaled - self.center) / self.spread


@dataclass(frozen=True)
class Schema:
    """A compiled schema; build it with `Schema.of`.

    Parameters
    ----------
    settings : SchemaSettings
    fields : tuple of Field
    key, time : tuple of str, optional
        Paths of the record's own key and time.
    text : bool
        Numbers arrive as text, as the cells of a CSV row do.
    compiled : callable, optional
        Decodes bytes into a struct of numbers, then key, then time; None for nested paths.
    unwrap : callable, optional
        Makes a JSON object of a message in another format, or refuses it.
    packed : bool
        A message is the d numbers themselves, float64 little-endian.
    """

    settings: SchemaSettings
    fields: tuple[Field, ...]
    key: Path | None
    time: Path | None
    text: bool
    compiled: Callable[[bytes], msgspec.Struct] | None
    unwrap: Callable[[bytes], bytes] | None = None
    packed: bool = False

    @classmethod
    def of(
        cls,
        settings: SchemaSettings,
        *,
        text: bool = False,
        unwrap: Callable[[bytes], bytes] | None = None,
        packed: bool = False,
    ) -> "Schema":
        """Compile `settings`.

        Raises
        ------
        SchemaError
            When no field is declared, or one is declared twice.
        """
        if not settings.fields:
            raise SchemaError(
                "the schema declares no field: name the numbers of a record under [schema] "
                "fields in weald.toml, or let `weald init` write them from a sample"
            )
        fields = tuple(_field(each) for each in settings.fields)
        _refuse_repeats("name", [field.name for field in fields])
        _refuse_repeats("path", [".".join(field.path) for field in fields])
        _check_edges(settings, [field.kind for field in fields])
        # A CSV column may have any name; nothing is nested in it.
        key, time = (
            (name,) if text and name else _path(name) for name in (settings.key, settings.time)
        )
        compiled = _compile(settings, fields, (key, time), text=text)
        return cls(settings, fields, key, time, text, compiled, unwrap, packed)

    @cached_property
    def dimension(self) -> int:
        """Number of features d of an observation."""
        return sum(field.width for field in self.fields)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the d features; an array's are numbered, as in ``x.0``."""
        return tuple(column for field in self.fields for column in field.columns)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the d features."""
        return tuple(field.kind for field in self.fields for _ in field.columns)

    @cached_property
    def scalar(self) -> bool:
        """Whether every field is a single plain number."""
        return all(field.size is None and field.read is None for field in self.fields)

    @cached_property
    def network(self) -> bool:
        """Whether a record is an edge between two vertices."""
        return self.fields[0].kind == "vertex"

    @cached_property
    def has_text(self) -> bool:
        """Whether records have a text that people may want to see."""
        return bool(self.texts)

    @cached_property
    def texts(self) -> tuple[int, ...]:
        """Places of the fields that are texts."""
        return tuple(i for i, field in enumerate(self.fields) if field.kind == "text")

    @cached_property
    def scaling(self) -> "Scaling | None":
        """How plain numbers are scaled, by column; None where all stay as they are."""
        declared = [field.settings for field in self.fields for _ in field.columns]
        scaling = Scaling(
            np.array([each.scale == "log" for each in declared], dtype=bool),
            np.array([each.center for each in declared]),
            np.array([each.spread for each in declared]),
        )
        return scaling if scaling.changes else None


def _path(text: str | None) -> Path | None:
    if text is None:
        return None
    path = tuple(text.split("."))
    if "" in path:
        raise SchemaError(f"path {text!r} of the schema has an empty part")
    return path


def _field(settings: FieldSettings) -> Field:
    # A name is a path of one part, whatever characters it has: "sepal.length" is a CSV column.
    path = _path(settings.path) or (settings.name,)
    return Field(settings, path, column_names(settings), reader_of(settings))


def _refuse_repeats(noun: str, values: list[str]) -> None:
    repeated = sorted({value for value in values if values.count(value) > 1})
    if repeated:
        raise SchemaError(f"the schema declares the {noun} {repeated[0]!r} twice")


def _check_edges(settings: SchemaSettings, kinds: list[str]) -> None:
    """Raise SchemaError for fields of an edge that are not two vertices and perhaps a weight."""
    if not NETWORK_KINDS & set(kinds):
        return
    if kinds not in (["vertex", "vertex"], ["vertex", "vertex", "weight"]):
        raise SchemaError(
            "a record of a network has two fields of kind 'vertex', its source and its target, "
            f"and perhaps one of kind 'weight' after them: not {', '.join(kinds)}"
        )
    if settings.key is not None:
        raise SchemaError(
            "a record of a network has no key of its own: `weald assign` asks for vertices by name"
        )


def _compile(
    settings: SchemaSettings,
    fields: tuple[Field, ...],
    named: tuple[Path | None, Path | None],
    *,
    text: bool,
) -> Callable[[bytes], msgspec.Struct] | None:
    if fields[0].kind in NETWORK_KINDS:
        return None
    key, time = named
    paths = [field.path for field in fields] + [path for path in named if path is not None]
    if any(len(path) > 1 for path in paths) or len(set(paths)) < len(paths):
        return None
    if any(_ESCAPED.search(path[0]) for path in paths):
        return None
    members: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    names: dict[str, str] = {}
    for i, field in enumerate(fields):
        members.append((f"number_{i}", stated_type(field.settings, text=text)))
        names[f"number_{i}"] = field.path[0]
    if key is not None:
        members.append(("key", str if text else str | int))
        names["key"] = key[0]
    if time is not None:
        members.append(("time", Any, None))
        names["time"] = time[0]
    record = msgspec.defstruct(
        "Record",
        members,
        rename=names,
        forbid_unknown_fields=settings.forbid_unknown,
        gc=False,
    )
    return msgspec.json.Decoder(record, strict=not text).decode
