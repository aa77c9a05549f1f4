"""What a question may be asked with: declared once, checked here, told by the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

from .problem import RefusedError

__all__ = [
    "AS_OF",
    "CLUSTER",
    "CURSOR_OF_CLUSTERS",
    "CURSOR_OF_EVENTS",
    "LARGEST_INTEGER",
    "LIMIT",
    "POINTS",
    "RETIRED",
    "SINCE",
    "Parameter",
    "parsed",
]

LARGEST_INTEGER = 2**63 - 1
MOST_ITEMS = 1000
MOST_POINTS = 5000


@dataclass(frozen=True)
class Parameter:
    """One query parameter.

    Parameters
    ----------
    name, description : str
    schema : mapping
        JSON Schema of its value: an integer, number, truth value, or text with a pattern.
    """

    name: str
    description: str
    schema: Mapping[str, Any]


def _whole(name: str, description: str, least: int, most: int, default: int | None) -> Parameter:
    bounds = {"type": "integer", "minimum": least, "maximum": most}
    return Parameter(
        name, description, bounds if default is None else {**bounds, "default": default}
    )


LIMIT = _whole("limit", "Items of a page.", 1, MOST_ITEMS, 100)
POINTS = _whole("limit", "Newest observations to place.", 2, MOST_POINTS, 1000)
CLUSTER = _whole("cluster", "Events in which this cluster takes part.", 0, LARGEST_INTEGER, None)
CURSOR_OF_EVENTS = _whole("cursor", "`next` of the page before.", 0, LARGEST_INTEGER, None)
CURSOR_OF_CLUSTERS = Parameter(
    "cursor",
    "`next` of the page before.",
    {"type": "string", "pattern": "^[0-9]{1,18}-[0-9]{1,18}$"},
)
RETIRED = Parameter(
    "retired", "Also clusters that have ended.", {"type": "boolean", "default": False}
)
SINCE = Parameter(
    "since",
    "Seconds since 1970.",
    {"type": "number", "minimum": 0, "maximum": 1e11},
)
AS_OF = Parameter(
    "as_of",
    "What was shown then: a publication, or a time with its zone.",
    {
        "anyOf": [
            {"type": "string", "pattern": "^publication:[0-9]{1,9}$"},
            {"type": "string", "format": "date-time"},
        ]
    },
)

_KINDS = {"integer": r"-?[0-9]{1,19}", "boolean": "true|false", "number": r"[0-9.eE+-]{1,40}"}


def parsed(given: list[tuple[str, str]], known: tuple[Parameter, ...]) -> dict[str, Any]:
    """Return the values by name, with defaults.

    Raises
    ------
    RefusedError
        400, for a parameter that is not known, is repeated, or whose value cannot be.
    """
    by_name = {parameter.name: parameter for parameter in known}
    values = {each.name: each.schema["default"] for each in known if "default" in each.schema}
    seen: set[str] = set()
    for name, text in given:
        if name not in by_name:
            names = ", ".join(by_name) or "none"
            raise _refused(f"no such parameter: {name!r}; there are {names}")
        if name in seen:
            raise _refused(f"{name}: given twice")
        seen.add(name)
        values[name] = _value(by_name[name], text)
    return values


def _value(parameter: Parameter, text: str) -> Any:
    schema = parameter.schema
    for choice in schema.get("anyOf", [schema]):
        try:
            return _checked(choice, text)
        except ValueError:
            continue
    raise _refused(f"{parameter.name}: {text!r} is not {_expected(schema)}")


def _checked(schema: Mapping[str, Any], text: str) -> Any:
    kind = schema["type"]
    if kind == "string":
        if "pattern" in schema and re.search(schema["pattern"], text, re.ASCII) is None:
            raise ValueError
        if schema.get("format") == "date-time":
            return _moment(text)
        return text
    if re.fullmatch(_KINDS[kind], text, re.ASCII) is None:
        raise ValueError
    if kind == "boolean":
        return text == "true"
    value = int(text) if kind == "integer" else float(text)
    if not schema["minimum"] <= value <= schema["maximum"]:
        raise ValueError
    return value


def _moment(text: str) -> float:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or "T" not in text.upper():
        raise ValueError
    return moment.timestamp()


def _expected(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_expected(choice) for choice in schema["anyOf"])
    if "pattern" in schema:
        return f"of the form {schema['pattern']}"
    bounds = f" from {schema['minimum']} to {schema['maximum']}" if "minimum" in schema else ""
    return f"of type {schema.get('format', schema['type'])}{bounds}"


def _refused(detail: str) -> RefusedError:
    return RefusedError(HTTPStatus.BAD_REQUEST, detail)
