"""A snapshot that a person made has a label, and stays until a person deletes it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the label; the snapshots that are there have none."""
    op.add_column("snapshots", sa.Column("label", sa.Text(), nullable=True))


def downgrade() -> None:
    """Forget the labels; their snapshots go as the others do."""
    op.drop_column("snapshots", "label")
