"""Which address asks which question, and what each may be asked with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from . import parameters as ask
from . import questions
from .answers import (
    Assignments,
    Cluster,
    Clusters,
    Events,
    Explored,
    Groups,
    Points,
    Predictions,
    Question,
    Stream,
)
from .exploring import explored_of
from .parameters import LARGEST_INTEGER, Parameter, parsed
from .problem import RefusedError

if TYPE_CHECKING:
    from starlette.requests import Request

    from weald.answers.stored_stream import StoredStream

__all__ = ["ROUTES", "Route", "endpoint"]

LARGEST_BODY = 4_000_000
Endpoint = Callable[["Request"], Awaitable[Response]]


@dataclass(frozen=True)
class Route:
    """One address.

    Parameters
    ----------
    path : str
        With ``{name}`` for what the path itself says.
    question : callable
        ``question(state, ...)`` returns an answer; what it takes beside the state are the path's
        part, the query parameters by name, and the body.
    answer : type
        What it returns.
    summary : str
    query : tuple of Parameter
    part : Parameter, optional
        What the path says.
    body : type, optional
        What is posted.
    """

    path: str
    question: Callable[..., Any]
    answer: type
    summary: str
    query: tuple[Parameter, ...] = ()
    part: Parameter | None = None
    body: type | None = None


_ID = Parameter(
    "cluster",
    "Id of a cluster.",
    {"type": "integer", "minimum": 0, "maximum": LARGEST_INTEGER},
)
_KEY = Parameter("key", "A record's own key.", {"type": "string", "minLength": 1})

ROUTES = (
    Route("/v1/stream", questions.stream_of, Stream, "The stream at a glance"),
    Route(
        "/v1/clusters",
        questions.clusters_of,
        Clusters,
        "Clusters, largest first",
        (ask.LIMIT, ask.CURSOR_OF_CLUSTERS, ask.RETIRED),
    ),
    Route("/v1/groups", questions.groups_of, Groups, "Groups of clusters, largest first"),
    Route("/v1/clusters/{cluster}", questions.cluster_of, Cluster, "One cluster", part=_ID),
    Route(
        "/v1/assignments/{key}",
        questions.assignments_of,
        Assignments,
        "The cluster of a record, now or then",
        (ask.LIMIT, ask.AS_OF),
        part=_KEY,
    ),
    Route(
        "/v1/lineage",
        questions.events_of,
        Events,
        "Births, splits, merges, moves and ends",
        (ask.LIMIT, ask.CURSOR_OF_EVENTS, ask.SINCE, ask.CLUSTER),
    ),
    Route(
        "/v1/points",
        questions.points_of,
        Points,
        "The newest observations in two dimensions",
        (ask.POINTS,),
    ),
    Route(
        "/v1/explored",
        explored_of,
        Explored,
        "What the live page shows of the newest publication",
        (ask.POINTS,),
    ),
    Route(
        "/v1/predict",
        questions.predictions_of,
        Predictions,
        "Where records would go; stores and learns nothing",
        body=Question,
    ),
)


def endpoint(route: Route, state: StoredStream) -> Endpoint:
    """Return what answers at an address: JSON, tagged by the model's epoch."""

    async def answer(request: Request) -> Response:
        given = parsed(request.query_params.multi_items(), route.query)
        arguments: list[Any] = []
        if route.part is not None:
            arguments.append(_part(route.part, request.path_params[route.part.name]))
        if route.body is not None:
            arguments.append(await _body(request, route.body))
            return _json(await run_in_threadpool(route.question, state, *arguments))
        tag = f'"{await run_in_threadpool(questions.epoch_of, state)}"'
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
        found = await run_in_threadpool(route.question, state, *arguments, **given)
        return _json(found, {"ETag": tag, "Cache-Control": "no-cache"})

    return answer


def _json(answer: Any, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(answer), headers=headers, media_type="application/json")


def _part(part: Parameter, text: str) -> Any:
    if part.schema["type"] == "string":
        return text
    return parsed([(part.name, text)], (part,))[part.name]


async def _body(request: Request, kind: type) -> Any:
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        detail = f"expected application/json, got {media or 'nothing'}"
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            detail = f"more than {LARGEST_BODY} bytes"
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"the body: {error}") from error
