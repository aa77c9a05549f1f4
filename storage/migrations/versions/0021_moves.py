"""The law by which a stream's values are moved within what they are known to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it; what is there already goes on as it began."""
    op.add_column("streams", sa.Column("moves", sa.Text(), nullable=True))
    streams = sa.table("streams", sa.column("resolution", sa.JSON()), sa.column("moves", sa.Text()))
    op.execute(sa.update(streams).where(streams.c.resolution.is_not(None)).values(moves="even"))


def downgrade() -> None:
    """Undo it; streams whose values are moved by another law are none of an earlier Weald's."""
    op.drop_column("streams", "moves")
