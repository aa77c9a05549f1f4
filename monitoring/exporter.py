"""Serves ``/metrics``, ``/livez`` and ``/readyz`` with the standard library's HTTP server.

The server's threads only read, so a slow scrape never holds up the engine.
"""

import hmac
import json
import threading
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from prometheus_client import CollectorRegistry, disable_created_metrics
from prometheus_client.exposition import choose_encoder

from .health import Probed, Report
from .host_names import is_loopback, names_an_address
from .settings import MonitoringSettings

__all__ = ["Exporter"]


class Exporter:
    """HTTP server of one process's metrics and health, for as long as its ``with`` block.

    Parameters
    ----------
    settings : MonitoringSettings
        Address, port (0 takes a free one) and optional token.
    registry : CollectorRegistry
        What ``/metrics`` shows.
    health : Probed
        What the probes ask.

    Raises
    ------
    OSError
        When the address cannot be listened on; the message names it.
    """

    def __init__(
        self, settings: MonitoringSettings, registry: CollectorRegistry, health: Probed
    ) -> None:
        self._token = settings.token
        self._registry = registry
        self._health = health
        self._local = is_loopback(settings.host)
        try:
            self._server = _Server((settings.host, settings.port), self)
        except OSError as error:
            where = f"{settings.host}:{settings.port}"
            raise OSError(
                error.errno,
                f"cannot serve metrics on {where} ({error.strerror}); "
                "choose another with --set monitoring.port=PORT",
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="weald-exporter", daemon=True
        )
        # Without this every counter is followed by a second series with its time of creation.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves it so

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Base URL, without a trailing slash."""
        return f"http://{self._server.server_address[0]!s}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def knows(self, host: str) -> bool:
        """Whether what listens on loopback is asked under a name that only this machine has."""
        return not self._local or names_an_address(host)

    def answer(self, path: str, accept: str, authorization: str) -> tuple[int, str, bytes]:
        """Answer one GET.

        Parameters
        ----------
        path : str
            Path of the request, without its query.
        accept, authorization : str
            Those headers; empty where absent.

        Returns
        -------
        status : int
        content_type : str
        body : bytes
        """
        trusted = self._trusts(authorization)
        if path == "/livez":
            return _probe(self._health.live(), trusted=trusted)
        if path == "/readyz":
            return _probe(self._health.ready(), trusted=trusted)
        if path != "/metrics":
            return HTTPStatus.NOT_FOUND, "text/plain", b"/metrics /livez /readyz\n"
        if not trusted:
            return HTTPStatus.UNAUTHORIZED, "text/plain", b"a bearer token is needed\n"
        encode, content_type = choose_encoder(accept)
        return HTTPStatus.OK, content_type, encode(self._registry)

    def _trusts(self, authorization: str) -> bool:
        if self._token is None:
            return True
        expected = f"Bearer {self._token}".encode()
        return hmac.compare_digest(authorization.encode("utf-8", "replace"), expected)


def _probe(report: Report, *, trusted: bool) -> tuple[int, str, bytes]:
    # A kubelet's probe carries no token: it gets the verdict, not the names of what is away.
    body: dict[str, object] = {"ok": report.ok}
    if trusted:
        body["conditions"] = [asdict(condition) for condition in report.conditions]
    status = HTTPStatus.OK if report.ok else HTTPStatus.SERVICE_UNAVAILABLE
    return status, "application/json", json.dumps(body).encode() + b"\n"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Two processes on one port would each be scraped half of the time.
    allow_reuse_port = False

    def __init__(self, address: tuple[str, int], exporter: Exporter) -> None:
        self.exporter = exporter
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "weald"
    sys_version = ""
    # A client that sends nothing must not keep a thread.
    timeout = 10

    def do_GET(self) -> None:
        exporter = self.server.exporter
        status: int
        if exporter.knows(self.headers.get("Host", "")):
            status, content_type, body = exporter.answer(
                self.path.partition("?")[0],
                self.headers.get("Accept", ""),
                self.headers.get("Authorization", ""),
            )
        else:
            unknown = b"ask under the address, not under a name\n"
            status, content_type, body = HTTPStatus.MISDIRECTED_REQUEST, "text/plain", unknown
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing: a scrape every few seconds is not worth a line."""
