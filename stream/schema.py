"""The declared schema, compiled once into what the decoder needs per record.

A schema whose fields all lie at the top of the record gets a compiled record type, which decodes
and checks in one pass; nested paths are walked instead.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from .errors import SchemaError
from .settings import FieldSettings, SchemaSettings

__all__ = ["Field", "Schema"]

Path = tuple[str, ...]


@dataclass(frozen=True)
class Field:
    """One declared field: where it is and how many numbers it holds (None: a single one)."""

    name: str
    path: Path
    size: int | None

    @property
    def width(self) -> int:
        """Columns of the observation that the field fills."""
        return 1 if self.size is None else self.size


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
    """

    settings: SchemaSettings
    fields: tuple[Field, ...]
    key: Path | None
    time: Path | None
    text: bool
    compiled: Callable[[bytes], msgspec.Struct] | None

    @classmethod
    def of(cls, settings: SchemaSettings, *, text: bool = False) -> "Schema":
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
        # A CSV column may have any name; nothing is nested in it.
        key, time = (
            (name,) if text and name else _path(name) for name in (settings.key, settings.time)
        )
        compiled = _compile(settings, fields, (key, time), text=text)
        return cls(settings, fields, key, time, text, compiled)

    @property
    def dimension(self) -> int:
        """Number of features d of an observation."""
        return sum(field.width for field in self.fields)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the d features; an array's are numbered, as in ``x.0``."""
        return tuple(
            field.name if field.size is None else f"{field.name}.{i}"
            for field in self.fields
            for i in range(field.width)
        )

    @property
    def scalar(self) -> bool:
        """Whether every field is a single number."""
        return all(field.size is None for field in self.fields)


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
    return Field(settings.name, path, settings.size)


def _refuse_repeats(noun: str, values: list[str]) -> None:
    repeated = sorted({value for value in values if values.count(value) > 1})
    if repeated:
        raise SchemaError(f"the schema declares the {noun} {repeated[0]!r} twice")


def _compile(
    settings: SchemaSettings,
    fields: tuple[Field, ...],
    named: tuple[Path | None, Path | None],
    *,
    text: bool,
) -> Callable[[bytes], msgspec.Struct] | None:
    key, time = named
    paths = [field.path for field in fields] + [path for path in named if path is not None]
    if any(len(path) > 1 for path in paths) or len(set(paths)) < len(paths):
        return None
    members: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    names: dict[str, str] = {}
    for i, field in enumerate(fields):
        members.append((f"number_{i}", float if field.size is None else list[float]))
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
