"""Which family suits a declared schema, for those who named none."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.stream.record.fields.features import n_levels
from weald.stream.record.schema import Schema
from weald.treecore.errors import ParameterError

__all__ = ["choose_family", "family_of_rows"]

# A text's buckets are so many that a cluster has seen few of them: what it has not seen it forbids.
TEXT_BETA = 0.01
# Above this a full covariance has more parameters than most clusters have observations.
MOST_CORRELATED = 20
_FAMILY = {
    "number": "gaussian",
    "time": "gaussian",
    "count": "poisson",
    "flag": "bernoulli",
    "category": "categorical",
}
_ORDER = (*dict.fromkeys(_FAMILY.values()), "multinomial")


def choose_family(schema: Schema) -> tuple[str, dict[str, Any]]:
    """Return a family of ``weald.treecore.family.FAMILIES`` and its parameters; ``irm`` for edges.

    One kind of field gets its own family; several get ``mixed``, with one part for each kind and
    one for each text, in one order whatever that of the fields is: kernels are compiled for it.
    """
    if schema.network:
        return "irm", {}
    parts: list[dict[str, Any]] = []
    at: dict[str, dict[str, Any]] = {}
    start = 0
    for field in schema.fields:
        columns = list(range(start, start + field.width))
        start += field.width
        if field.kind == "text":
            text = {"family": "multinomial", "columns": columns, "params": {"beta": TEXT_BETA}}
            parts.append(text)
            continue
        name = _FAMILY[field.kind]
        if name not in at:
            at[name] = {"family": name, "columns": [], "params": {}}
            parts.append(at[name])
        at[name]["columns"] += columns
        if name == "categorical":
            at[name]["params"].setdefault("levels", []).append(n_levels(field.settings))
    parts.sort(key=lambda part: _ORDER.index(part["family"]))
    numbers = at.get("gaussian")
    if numbers is not None and len(numbers["columns"]) > MOST_CORRELATED:
        numbers["family"] = "diagonal"
    if len(parts) > 1:
        return "mixed", {"parts": parts}
    return parts[0]["family"], parts[0]["params"]


def family_of_rows(
    schema: Schema, values: NDArray[np.float64], asked: str = "auto"
) -> tuple[str, dict[str, Any]]:
    """Return a family and its parameters for rows (n, d) with gaps (NaN), as look and fits do.

    ``auto`` stays where fields are numbers only and all are there: the rows have to tell. Where
    one is missing, numbers are independent inside a cluster.

    Raises
    ------
    ParameterError
        If the family that is asked for cannot take a field.
    """
    family, params = choose_family(schema)
    only_numbers = set(schema.kinds) == {"number"}
    if asked not in ("auto", "mixed"):
        for field in schema.fields:
            takes = _FAMILY.get(field.kind, "multinomial")
            if takes in ("categorical", "multinomial") and takes != asked:
                raise ParameterError(
                    f"{field.name!r} is a {field.kind}, which family {asked} cannot take: choose "
                    f"auto, or leave it out"
                )
        return asked, params if asked == family else {}
    gaps = np.isnan(values)
    if only_numbers:
        return "mixed" if asked == "mixed" else "diagonal" if gaps.any() else "auto", {}
    if family == "gaussian" and gaps.any():
        family = "diagonal"
    for part in params.get("parts", ()):
        if part["family"] == "gaussian" and gaps[:, part["columns"]].any():
            part["family"] = "diagonal"
    return family, params
