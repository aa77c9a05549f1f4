"""Streams in shards: of how many a stream is, and of which stream a part is which shard."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them; every stream that is there is one shard, and no part."""
    op.add_column("streams", sa.Column("shards", sa.Integer(), nullable=False, server_default="1"))
    # Written out: SQLite takes a foreign key with a new column only, and Alembic none there.
    op.execute(
        "ALTER TABLE streams ADD COLUMN part_of INTEGER "
        "CONSTRAINT fk_streams_part_of REFERENCES streams (id)"
    )
    op.add_column("streams", sa.Column("shard", sa.Integer(), nullable=True))


def downgrade() -> None:
    """Undo it; parts are streams of their own then, under their names."""
    for name in ("shard", "part_of", "shards"):
        op.drop_column("streams", name)
