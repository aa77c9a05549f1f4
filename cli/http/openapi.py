"""The OpenAPI document, made from the routes and the answers' types."""

from __future__ import annotations

from typing import Any

import msgspec

from .answers import Event, Problem
from .parameters import Parameter
from .problem import MEDIA_TYPE
from .routes import ROUTES, Route

__all__ = ["document"]

_TEMPLATE = "#/components/schemas/{name}"


def document(version: str, *, token: bool) -> dict[str, Any]:
    """Return the document, OpenAPI 3.1.

    Parameters
    ----------
    version : str
        Of the program.
    token : bool
        Whether the addresses ask for one.
    """
    kinds = [Problem, Event, *(route.answer for route in ROUTES)]
    kinds += [route.body for route in ROUTES if route.body is not None]
    _, schemas = msgspec.json.schema_components(kinds, ref_template=_TEMPLATE)
    paths = {route.path: _path(route, token=token) for route in ROUTES}
    components: dict[str, Any] = {"schemas": schemas}
    if token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Weald",
            "version": version,
            "description": "What a stream's clusters are. Questions only; nothing is changed.",
        },
        "paths": {**paths, "/v1/events": _events(token=token)},
        "components": components,
        **({"security": [{"token": []}]} if token else {}),
    }


def _path(route: Route, *, token: bool) -> dict[str, Any]:
    found = {"$ref": _TEMPLATE.format(name=route.answer.__name__)}
    answers: dict[str, Any] = {
        "200": {"description": "The answer.", "content": {"application/json": {"schema": found}}}
    }
    refusals = {"400": "The question cannot be.", "503": "The database is not there."}
    operation: dict[str, Any] = {"summary": route.summary, "parameters": []}
    if route.part is not None:
        operation["parameters"].append(_parameter(route.part, "path"))
        refusals["404"] = "There is none."
    operation["parameters"] += [_parameter(each, "query") for each in route.query]
    if token:
        refusals["401"] = "The token is missing or wrong."
    if route.body is None:
        tag = {"description": "Epoch of the model.", "schema": {"type": "string"}}
        answers["200"]["headers"] = {"ETag": tag}
        answers["304"] = {"description": "As the ETag in If-None-Match has it."}
    else:
        schema = {"$ref": _TEMPLATE.format(name=route.body.__name__)}
        content = {"application/json": {"schema": schema}}
        operation["requestBody"] = {"required": True, "content": content}
        refusals |= {"413": "The body is too large.", "415": "The body is not JSON."}
    told = {status: _problem(text) for status, text in refusals.items()}
    operation["responses"] = {**answers, **told}
    return {"get" if route.body is None else "post": operation}


def _problem(description: str) -> dict[str, Any]:
    schema = {"$ref": _TEMPLATE.format(name=Problem.__name__)}
    return {"description": description, "content": {MEDIA_TYPE: {"schema": schema}}}


def _parameter(parameter: Parameter, place: str) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": place,
        "required": place == "path",
        "description": parameter.description,
        "schema": dict(parameter.schema),
    }


def _events(*, token: bool) -> dict[str, Any]:
    text = (
        "Server-sent events without end: `lineage` with an Event as data, `epoch` when the model "
        "has changed. An id may be given back as `Last-Event-ID`."
    )
    responses: dict[str, Any] = {
        "200": {
            "description": text,
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    }
    if token:
        responses["401"] = _problem("The token is missing or wrong.")
    return {"get": {"summary": "Lineage as it happens", "responses": responses}}
