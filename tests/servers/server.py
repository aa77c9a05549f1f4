"""A real server as a child process: started on a free loopback port, stopped by its own pid."""

import os
import pwd
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

START_SECONDS = 60.0
STOP_SECONDS = 20.0


class MissingServerError(Exception):
    """The machine cannot run this server; the message says what to install."""


class ServerDiedError(Exception):
    """The process ended, or never answered; the message carries the end of its log."""


def free_port() -> int:
    """Return a port of the loopback interface that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def accepts(port: int) -> bool:
    """Whether something listens on the loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
    """Return as soon as the condition holds; ``TimeoutError`` names it when it never does."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} seconds")
        time.sleep(0.02)


def unprivileged_user(preferred: str) -> str | None:
    """Account for a server that refuses to run as root; ``None`` when we are not root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return preferred if preferred in known else "nobody"


@dataclass
class Server:
    """One server; a context manager that is ready when entered and gone when left.

    ``stop`` and ``kill`` followed by ``start`` bring it back on the same port with the same data,
    which is how tests show what an outage does.
    """

    name: str
    version: str
    argv: Sequence[str]
    port: int
    folder: Path
    ready: Callable[[], bool]
    user: str | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    environment: dict[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Host and port to connect to."""
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """File that holds what the server wrote on both its outputs."""
        return self.folder / f"{self.name.lower()}.log"

    @property
    def pid(self) -> int:
        """Process id while the server runs."""
        if self._process is None:
            raise ServerDiedError(f"{self.name} is not running")
        return self._process.pid

    def start(self) -> None:
        """Start the process and return when it answers."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                user=self.user,
                env={**os.environ, **self.environment},
            )
        try:
            wait_until(self._alive_and_ready, f"{self.name} answers on port {self.port}")
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """End the process as an operator would, and by force when it does not listen."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(self.stop_signal)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """End the process as a power cut would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _alive_and_ready(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            tail = self.log.read_text(errors="replace")[-2000:]
            raise ServerDiedError(f"{self.name} ended at its start; {self.log} says:\n{tail}")
        return self.ready()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
