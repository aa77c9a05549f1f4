"""``weald db``: the database's tables and their revision."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from weald.cli.errors import UsageError
from weald.cli.terminal.opened import open_settings
from weald.cli.terminal.options import Config, Output, Set, StreamName, example
from weald.cli.terminal.output import Form, note, write_record

__all__ = ["add_to"]

group = typer.Typer(rich_markup_mode=None, no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.add_typer(
        group,
        name="db",
        help="Create, upgrade and check the database's tables.",
        epilog=example("weald db upgrade", "weald db check"),
    )


@group.command(
    epilog=example(
        "weald db upgrade",
        "weald db upgrade --set storage.url=postgresql+psycopg://weald@db/weald",
    )
)
def upgrade(config: Config = None, set_: Set = None) -> None:
    """Bring the tables to this program's revision, creating them if need be.

    One transaction: a failure leaves the database as it was. Running it again does no harm.
    """
    from weald.storage.settings import redacted
    from weald.storage.sql import migrate

    storage = open_settings(config, set_).settings.storage
    before = migrate.upgrade(storage)
    after = migrate.current(storage)
    change = "already" if before == after else f"(was {before or 'empty'})"
    note(f"{redacted(storage.url)} is at revision {after} {change}")


@group.command(epilog=example("weald db downgrade 0002 --yes"))
def downgrade(
    revision: Annotated[str, typer.Argument(help="Where to: its number, or base for no tables.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: Config = None,
    set_: Set = None,
) -> None:
    """Take the tables back to an earlier revision, for an earlier program.

    What the undone steps stored is lost. One transaction: a failure leaves all as it was.
    """
    from weald.storage.settings import redacted
    from weald.storage.sql import migrate

    storage = open_settings(config, set_).settings.storage
    known = ["base", *migrate.revisions()]
    if revision not in known:
        raise UsageError(f"no such revision {revision!r}; one of {', '.join(known)}")
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("what the undone steps stored is lost: add --yes")
        typer.confirm("Lose what the undone steps stored?", abort=True, err=True)
    before = migrate.downgrade(storage, revision)
    note(f"{redacted(storage.url)} is at revision {revision} (was {before or 'empty'})")


@group.command(epilog=example("weald db roles | psql weald"))
def roles() -> None:
    """Print the SQL that makes two roles of least privilege in PostgreSQL.

    weald_reader answers every question and writes nothing; weald_writer is what the service needs.
    """
    from importlib.resources import files

    sys.stdout.write((files("weald.storage.sql") / "roles.sql").read_text(encoding="utf-8"))


@group.command(epilog=example("weald db current", "weald db current --output json"))
def current(config: Config = None, set_: Set = None, output: Output = Form.table) -> None:
    """Show the revision of the tables, and the one that this program needs."""
    from weald.storage.settings import redacted
    from weald.storage.sql import migrate

    storage = open_settings(config, set_).settings.storage
    answer = {
        "database": redacted(storage.url),
        "revision": migrate.current(storage),
        "needed": migrate.revisions()[-1],
    }
    write_record(answer, output)


@group.command(
    epilog=example("weald db prune", "weald db prune --set retention.days=30 --output json")
)
def prune(
    *,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """Forget what `[retention]` lets go, all of it now.

    The service does the same by itself, a little after each snapshot. What a start after a crash
    would need stays, and so do the accounts.
    """
    from collections import Counter

    from weald.cli.terminal.opened import reading_with_settings
    from weald.storage.writing.store import SqlStore

    total: Counter[str] = Counter()
    with reading_with_settings(config, set_, stream) as (state, settings):
        with SqlStore(settings.storage) as store:
            while gone := store.prune(state.stream, settings.retention):
                total.update(gone)
        name = state.stream
    write_record({"stream": name, "forgotten": sum(total.values()), **total}, output)


@group.command(epilog=example("weald db check && weald run"))
def check(config: Config = None, set_: Set = None) -> None:
    """Say whether the tables are the ones this program was written for.

    Leaves with 0 if they are, and with 4 (not ready) if they are older, newer or absent.
    """
    from weald.storage.settings import redacted
    from weald.storage.sql import migrate

    storage = open_settings(config, set_).settings.storage
    migrate.check(storage)
    note(f"{redacted(storage.url)} is ready")
