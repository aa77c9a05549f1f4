"""The ASGI application: addresses, the token, the page."""

from __future__ import annotations

from hmac import compare_digest
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route as Address

from weald.monitoring.host_names import names_an_address

from .events import stream_events
from .exploring import live_page
from .openapi import document
from .problem import HANDLERS, problem
from .routes import ROUTES, endpoint

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from weald.answers.stored_stream import StoredStream
    from weald.cli.config.http_settings import HttpSettings

__all__ = ["application"]

GUARDED = "/v1/"


def application(state: StoredStream, settings: HttpSettings) -> ASGIApp:
    """Return the application that answers about one stream."""

    async def events(request: Request) -> Response:
        return stream_events(request, state, settings.poll_seconds)

    described = msgspec.json.encode(document(version("weald"), token=settings.token is not None))

    async def openapi(_: Request) -> Response:
        return Response(described, media_type="application/json")

    addresses = [
        Address(
            # A key may hold a slash.
            route.path.replace("{key}", "{key:path}"),
            endpoint(route, state),
            methods=["GET" if route.body is None else "POST"],
        )
        for route in ROUTES
    ]
    addresses += [
        Address("/v1/events", events),
        Address("/openapi.json", openapi),
        Address("/", _page()),
    ]
    return _Guard(Starlette(routes=addresses, exception_handlers=HANDLERS), settings)


def _page() -> Any:
    """Answer with the live page, whose own scripts are the only ones that may run there."""
    html, policy = live_page()
    headers = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff"}

    async def page(_: Request) -> Response:
        return HTMLResponse(html, headers=headers)

    return page


class _Guard:
    """Answers under known names only, and under ``/v1/`` asks for the token, if there is one."""

    def __init__(self, inner: ASGIApp, settings: HttpSettings) -> None:
        token = settings.token
        self._inner = inner
        self._wanted = None if token is None else f"Bearer {token}".encode()
        self._names = {settings.host.lower(), *(name.lower() for name in settings.allowed_hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._knows(_host_of(scope)):
            answer = problem(
                HTTPStatus.MISDIRECTED_REQUEST,
                "nobody is known here under that name; http.allowed_hosts lists those that are",
            )
            await answer(scope, receive, send)
            return
        if scope["type"] == "http" and self._refuses(scope):
            answer = problem(
                HTTPStatus.UNAUTHORIZED,
                "give the token as Authorization: Bearer TOKEN",
                {"WWW-Authenticate": 'Bearer realm="weald"'},
            )
            await answer(scope, receive, send)
            return
        await self._inner(scope, receive, send)

    def _knows(self, host: str) -> bool:
        name = host.lower().partition(":")[0]
        return names_an_address(host) or name in self._names or "*" in self._names

    def _refuses(self, scope: Scope) -> bool:
        if self._wanted is None or not scope["path"].startswith(GUARDED):
            return False
        given = dict(scope["headers"]).get(b"authorization", b"")
        return not compare_digest(given, self._wanted)


def _host_of(scope: Scope) -> str:
    given: bytes = dict(scope["headers"]).get(b"host", b"")
    return given.decode("latin-1")
