"""A stream's family from what SQL keeps of it; apart from the model, which loads every sampler."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from weald.storage.commit.commit import StreamSpec
from weald.stream.record.schema import Schema
from weald.stream.settings import SchemaSettings
from weald.treecore.errors import ParameterError
from weald.treecore.family import FAMILIES, FamilySpec
from weald.treecore.relational.family import IRM

from .stored_transformation import transformation_of

__all__ = ["family_named", "family_of", "parameters_over"]


def family_named(name: str) -> FamilySpec[Any]:
    """Specification of a family, that of networks among them; raises ParameterError."""
    if name == IRM.name:
        return IRM
    if name not in FAMILIES:
        raise ParameterError(
            f"unknown family {name!r}; known: {', '.join(sorted([*FAMILIES, IRM.name]))}"
        )
    return FAMILIES[name]


def parameters_over(stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A stored family's parameters, with those that people give in their stead.

    Parts of a mixed family that are the stored ones keep what is not given of them, too.
    """
    merged = {**stored, **given}
    before, now = stored.get("parts"), given.get("parts")
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        merged["parts"] = list(map(_part_over, before, now))
    return merged


def _part_over(stored: Mapping[str, Any], given: Any) -> Any:
    alike = isinstance(given, Mapping) and all(
        given.get(name) == stored[name] for name in ("family", "columns")
    )
    if not alike:
        return given
    return {**given, "params": parameters_over(stored["params"], given.get("params", {}))}


def family_of(spec: StreamSpec) -> Any:
    """Build the family from what SQL keeps; the sample it once came from is not needed again."""
    transformation = transformation_of(spec)
    if transformation is None:
        width = Schema.of(msgspec.convert(spec.schema, SchemaSettings)).dimension
    else:
        width = transformation.width
    return family_named(spec.family).build(spec.family_params, np.empty((0, width)))
