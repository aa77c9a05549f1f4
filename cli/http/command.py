"""``weald serve``: the stored state over HTTP, and a page on which the stream clusters itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from weald.cli.errors import NotReadyError, UsageError
from weald.cli.terminal.options import Config, Set, StreamName, example
from weald.cli.terminal.output import note

if TYPE_CHECKING:
    from weald.cli.config.http_settings import HttpSettings

__all__ = ["add_to"]

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald serve",
            "weald serve --port 9000",
            "WEALD__HTTP__TOKEN=... weald serve --host 0.0.0.0",
            "curl http://127.0.0.1:8080/v1/clusters?limit=5",
        )
    )(serve)


def serve(
    *,
    host: Annotated[
        str | None, typer.Option("--host", help="Address to listen on, when not http.host.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", help="Port, when not http.port; 0 takes a free one.")
    ] = None,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
) -> None:
    """Answer about a stream over HTTP: JSON under /v1, events as they happen, and a live page.

    A process of its own that reads the database only, so that no question can slow the writer
    down, and answers while it is away. It listens on loopback; anywhere else it asks for a token
    (WEALD__HTTP__TOKEN). /openapi.json describes everything.
    """
    _require()
    from weald.cli.terminal.opened import reading_with_settings

    flags = [
        f"http.{key}={value}"
        for key, value in (("host", host), ("port", port))
        if value is not None
    ]
    asked = reading_with_settings(config, [*(set_ or []), *flags], stream, undivided=False)
    with asked as (state, loaded):
        settings = loaded.http
        _check(settings)
        from .application import application

        _run(application(state, settings), settings, state.stream)


def _require() -> None:
    from importlib.util import find_spec

    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        raise NotReadyError("serving needs Starlette", next_step="pip install 'weald[http]'")


def _check(settings: HttpSettings) -> None:
    if settings.host not in LOOPBACK and settings.token is None:
        raise UsageError(
            f"http.host is {settings.host}, which others can reach, and there is no http.token",
            next_step="WEALD__HTTP__TOKEN=... weald serve",
        )


def _run(app: object, settings: HttpSettings, stream: str) -> None:
    import socket

    import uvicorn

    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
        # Who reads the address below may ask at once.
        listening.listen()
    except OSError as error:
        listening.close()
        raise UsageError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}",
            next_step="weald serve --port 0    takes a free port",
        ) from error
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    note(f"stream {stream}: http://{shown}:{listening.getsockname()[1]}/")
    # Open event streams end with the process, not the other way round.
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]  # an ASGI application, by structure
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=2,
    )
    with listening:
        uvicorn.Server(config).run(sockets=[listening])
