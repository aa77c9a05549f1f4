"""The SQL roles of `weald db roles`: what a reader may ask, and that it can write nothing."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from tests.cli.conftest import N_BAD, N_GOOD, records, type_command
from tests.cli.http.test_http import Service, serving
from tests.servers.postgresql import administer
from tests.servers.server import Server
from weald.cli.errors import ExitCode
from weald.storage.errors import AccessDenied
from weald.storage.settings import StorageSettings
from weald.storage.sql import migrate
from weald.storage.sql.schema import metadata
from weald.storage.writing.store import SqlStore

PLACES = {"cluster": "1", "key": "k1"}
QUESTIONS = (
    ("status",),
    ("clusters",),
    ("clusters", "--retired"),
    ("cluster", "1"),
    ("assign", "k1"),
    ("assign", "k1", "--as-of", "publication:1"),
    ("lineage",),
    ("export", "assignments"),
    ("export", "lineage"),
    ("export", "clusters"),
    ("tree", "{cluster}"),
    ("predict", "{home}/new.jsonl"),
    ("report", "--out", "{home}/report.html"),
    ("watch", "--looks", "1", "--output", "json"),
    ("snapshot", "list"),
    ("snapshot", "verify"),
    ("snapshot", "diff", "1", "1"),
    ("dlq", "list"),
    ("dlq", "show", "1"),
    ("db", "check"),
    ("db", "current"),
)


@pytest.fixture(scope="module")
def urls(postgresql_session: Server, postgresql_url: str) -> Iterator[dict[str, str]]:
    """A database with the roles, and a login of each; by role."""
    migrate.upgrade(StorageSettings(url=postgresql_url))
    script = type_command("db", "roles").out
    name = postgresql_url.rpartition("/")[2]
    where = f"host=127.0.0.1 port={postgresql_session.port} user=postgres dbname={name}"
    with psycopg.connect(where, autocommit=True) as connection:
        for _ in range(2):
            connection.execute(script.encode())
    logins = {role: f"{role}_{name}" for role in ("reader", "writer")}
    for role, login in logins.items():
        administer(postgresql_session, f"CREATE ROLE {login} LOGIN IN ROLE weald_{role}")
    yield {
        role: postgresql_url.replace("//postgres@", f"//{login}@") for role, login in logins.items()
    }
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute("DROP OWNED BY weald_reader, weald_writer")
    for each in (*logins.values(), "weald_reader", "weald_writer"):
        administer(postgresql_session, f"DROP ROLE {each}")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, urls: dict[str, str]) -> Path:
    """A stream that the writer's role has filled."""
    home = tmp_path_factory.mktemp("roles")
    (home / "records.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records()))
    (home / "new.jsonl").write_text('{"id": "new", "time": 1, "x": 0.5, "y": 1.5}\n')
    (home / "weald.toml").write_text(
        "[stream]\nname = 'pairs'\nsource = 'file'\npath = 'records.jsonl'\nbatch_records = 64\n"
        "[schema]\nfields = [{name = 'x'}, {name = 'y'}]\nkey = 'id'\ntime = 'time'\n"
        "[refinement]\nevery_records = 100\npublish_every_records = 100\n"
        "[redis]\nenabled = false\n[monitoring]\nport = 0\n"
    )
    result = type_command("run", "--config", str(home), "--set", f"storage.url={urls['writer']}")
    assert result.code == 0, result.err
    return home


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_a_reader_may_ask_everything(
    home: Path, urls: dict[str, str], question: tuple[str, ...]
) -> None:
    options = ("--config", str(home), "--set", f"storage.url={urls['reader']}")
    largest = json.loads(type_command("clusters", "--output", "json", *options).out)[0]
    named = {"home": home, "cluster": largest["cluster"]}
    result = type_command(*(each.format(**named) for each in question), *options)
    assert result.code == 0, result.err
    assert result.out or question == ("db", "check")


def test_the_server_of_answers_needs_no_more(home: Path, urls: dict[str, str]) -> None:
    """Every path of `weald serve` that only asks, as its own description lists them."""
    with serving(home, WEALD__STORAGE__URL=urls["reader"]) as address:
        service = Service(address)
        paths = service.ask("/openapi.json").json["paths"]
        asked = [path for path, methods in paths.items() if "get" in methods]
        assert len(asked) > 5
        for path in asked:
            if "events" not in path:
                filled = re.sub(r"\{(\w+)\}", lambda found: PLACES[found[1]], path)
                assert service.ask(filled).status == 200, path
        record = {"id": "new", "time": 1, "x": 0.5, "y": 1.5}
        assert service.post("/v1/predict", {"records": [record]}).status == 200


def test_the_answers_are_whole(home: Path, urls: dict[str, str]) -> None:
    options = ("--config", str(home), "--set", f"storage.url={urls['reader']}")
    status = json.loads(type_command("status", "--output", "json", *options).out)
    assert (status["n_inserted"], status["n_dead"]) == (N_GOOD, N_BAD)


@pytest.mark.parametrize(
    "command", [("run",), ("dlq", "purge", "--all", "--yes"), ("dlq", "replay", "--all")], ids=str
)
def test_a_reader_may_change_nothing(
    home: Path, urls: dict[str, str], command: tuple[str, ...]
) -> None:
    options = ("--config", str(home), "--set", f"storage.url={urls['reader']}")
    result = type_command(*command, *options)
    assert result.code == ExitCode.NOT_READY
    assert "permission denied" in result.err


@pytest.mark.parametrize("role", ["reader", "writer"])
def test_nobody_touches_what_is_not_theirs(urls: dict[str, str], role: str) -> None:
    """Straight at the tables, without Weald's own read-only transactions in between."""
    engine = sa.create_engine(urls[role])
    forbidden = ["CREATE TABLE mine (x int)", "DELETE FROM alembic_version", "DROP TABLE clusters"]
    if role == "reader":
        forbidden += [str(sa.delete(table)) for table in metadata.tables.values()]
        forbidden += [f"INSERT INTO {table} DEFAULT VALUES" for table in metadata.tables]
    for statement in forbidden:
        with engine.connect() as connection, pytest.raises(sa.exc.ProgrammingError) as caught:
            connection.execute(sa.text(statement))
        assert caught.value.orig is not None
        assert getattr(caught.value.orig, "sqlstate", "") == "42501", statement
    engine.dispose()


def test_neither_may_change_the_tables(urls: dict[str, str]) -> None:
    for role in ("reader", "writer"):
        with pytest.raises(AccessDenied):
            migrate.downgrade(StorageSettings(url=urls[role]), "base")
    with SqlStore(StorageSettings(url=urls["writer"])) as store:
        assert store.streams() == ["pairs"]
