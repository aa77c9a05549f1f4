"""Steps by which whole numbers that are seen by their logarithm are moved before that."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them; what is there already stays as it began."""
    op.add_column("streams", sa.Column("log_steps", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Undo it; streams whose numbers are moved so are none of an earlier Weald's."""
    op.drop_column("streams", "log_steps")
