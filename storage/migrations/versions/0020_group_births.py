"""Which publication first told of the group that a cluster is in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it; of groups that are there already nobody knows."""
    op.add_column("clusters", sa.Column("group_born_publication", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Undo it."""
    op.drop_column("clusters", "group_born_publication")
