"""Errors as ``application/problem+json`` (RFC 9457)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from weald.cli.errors import CommandError, ExitCode

from .answers import Problem

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["HANDLERS", "MEDIA_TYPE", "RefusedError", "problem"]

MEDIA_TYPE = "application/problem+json"
# What a command's exit code means to somebody who asks over HTTP.
STATUS = {
    ExitCode.USAGE: HTTPStatus.BAD_REQUEST,
    ExitCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ExitCode.NOT_READY: HTTPStatus.SERVICE_UNAVAILABLE,
    ExitCode.CONFLICT: HTTPStatus.CONFLICT,
}

logger = logging.getLogger(__name__)


class RefusedError(Exception):
    """A question that cannot be answered as it was put."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def problem(status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error as a response."""
    body = Problem("about:blank", status.phrase, int(status), detail)
    return Response(msgspec.json.encode(body), status, headers, media_type=MEDIA_TYPE)


async def _refused(_: Request, error: Exception) -> Response:
    if not isinstance(error, RefusedError):
        raise error
    return problem(error.status, error.detail)


async def _routing(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    status = HTTPStatus(error.status_code)
    return problem(status, error.detail, error.headers)


async def _command(_: Request, error: Exception) -> Response:
    if not isinstance(error, CommandError):
        raise error
    status = STATUS.get(error.code, HTTPStatus.INTERNAL_SERVER_ERROR)
    return problem(status, error.message)


async def _unexpected(_: Request, error: Exception) -> Response:
    # What it says may hold paths and addresses: for the log, not for the one who asked.
    logger.error("unexpected error while answering", exc_info=error)
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "unexpected error; the log has it")


HANDLERS = {
    RefusedError: _refused,
    HTTPException: _routing,
    CommandError: _command,
    Exception: _unexpected,
}
