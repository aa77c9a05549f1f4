"""Which group a cluster is in, and what speaks against a publication."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the groups of clusters; the next publication fills them in."""
    op.add_column("clusters", sa.Column("cluster_group", sa.BigInteger(), nullable=True))
    op.add_column("publications", sa.Column("warnings", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Undo it."""
    op.drop_column("publications", "warnings")
    op.drop_column("clusters", "cluster_group")
