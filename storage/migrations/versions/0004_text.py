"""What people are shown of a record with a text."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the text of observations; those of before have none."""
    op.add_column("observations", sa.Column("record_text", sa.Text(), nullable=True))


def downgrade() -> None:
    """Undo it: texts are lost, the counts that came of them stay."""
    op.drop_column("observations", "record_text")
