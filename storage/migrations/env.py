"""Alembic's entry: runs inside the transaction that ``storage.migrate`` opened."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from weald.storage.sql.schema import metadata

# Any number that no other program on the server is likely to lock.
_LOCK = 0x5745414C44

connection: sa.Connection = context.config.attributes["connection"]
if connection.dialect.name == "postgresql":
    # Two services may start at once and both find the schema old.
    connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=connection.dialect.name == "sqlite",
    compare_server_default=True,
)
context.run_migrations()
