"""When a stream was last put back, for snapshots that are made of it meanwhile."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the number of that commit; what was made before it is of another history."""
    column = sa.Column("reverted_epoch", sa.BigInteger(), nullable=False, server_default="0")
    op.add_column("streams", column)


def downgrade() -> None:
    """Undo it."""
    op.drop_column("streams", "reverted_epoch")
