"""PostgreSQL from the PATH or from Debian's versioned folders."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.servers.server import MissingServerError, Server, free_port, unprivileged_user

Prepare = Callable[[Path, str | None], Mapping[str, str]]

# A database is three hundred files. Where they are made and dropped by the thousand, some file
# systems take longer to find each a place than PostgreSQL takes to fill it; memory does not.
MEMORY, ROOM = Path("/dev/shm"), 2 << 30  # noqa: S108  (folders of random names below it)


@contextmanager
def postgresql_server(prepare: Prepare | None = None) -> Iterator[Server]:
    """Start a PostgreSQL with a data folder of its own, which goes when the server does.

    The folder lies in memory where that has room, or directly below the temporary folder, not in
    pytest's: the server runs as an unprivileged account, and pytest's folders are closed to other
    accounts. ``prepare`` is given the data folder before the start, and returns more of its
    settings.
    """
    programs = _programs()
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
    folder = Path(tempfile.mkdtemp(prefix="weald-postgresql-", dir=MEMORY if roomy else None))
    user = unprivileged_user("postgres")
    if user is not None:
        shutil.chown(folder, user)
    try:
        _create_cluster(programs / "initdb", folder / "data", user)
        more = {} if prepare is None else prepare(folder / "data", user)
        with _server(programs / "postgres", folder, user, more) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def database(server: Server, name: str, like: str = "template1") -> Iterator[str]:
    """Create a database, empty or as another is, yield its SQLAlchemy address, and drop it."""
    administer(server, f'CREATE DATABASE "{name}" TEMPLATE "{like}"')
    try:
        yield f"postgresql+psycopg://postgres@{server.address}/{name}"
    finally:
        administer(server, f'DROP DATABASE "{name}" WITH (FORCE)')


def administer(server: Server, statement: str) -> None:
    """Run one statement outside of any transaction."""
    with psycopg.connect(_dsn(server.port), autocommit=True) as connection:
        connection.execute(statement.encode())


def _programs() -> Path:
    """Folder of the newest installation's programs."""
    on_path = shutil.which("postgres")
    if on_path is not None:
        return Path(on_path).resolve().parent
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"),
        key=lambda program: float(program.parts[-3]),
    )
    if not installed:
        raise MissingServerError("no PostgreSQL server was found (Debian package postgresql)")
    return installed[-1].parent


def _create_cluster(initdb: Path, data: Path, user: str | None) -> None:
    subprocess.run(
        [initdb, "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync"],
        check=True,
        capture_output=True,
        cwd=data.parent,
        user=user,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )


def _server(program: Path, folder: Path, user: str | None, more: Mapping[str, str]) -> Server:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"\d+(\.\d+)+", said.stdout)
    port = free_port()
    settings = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": str(folder),
        # Durability against power cuts is PostgreSQL's own promise; killing the process, which
        # is what the tests do, loses nothing without fsync.
        "fsync": "off",
        # Logs lie in memory, too.
        "max_wal_size": "128MB",
        **more,
    }
    return Server(
        name="PostgreSQL",
        version=found.group() if found else said.stdout.strip(),
        argv=[
            *(str(program), "-D", str(folder / "data"), "-p", str(port)),
            *(part for key, value in settings.items() for part in ("-c", f"{key}={value}")),
        ],
        port=port,
        folder=folder,
        ready=lambda: _answers(port),
        user=user,
        stop_signal=signal.SIGINT,  # PostgreSQL's fast shutdown: does not wait for clients
    )


def _answers(port: int) -> bool:
    try:
        psycopg.connect(_dsn(port), connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _dsn(port: int) -> str:
    return f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
