"""Groups of clusters of a stream in shards: what the next new one is called."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it; no stream in shards has groups yet."""
    op.add_column(
        "shard_rounds", sa.Column("next_group", sa.Integer(), nullable=False, server_default="1")
    )


def downgrade() -> None:
    """Undo it."""
    op.drop_column("shard_rounds", "next_group")
