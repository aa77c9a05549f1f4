"""Which earlier observation one with the same key has replaced."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what a replay needs to let the same observations go."""
    op.add_column("observations", sa.Column("replaces", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Undo it; a replay then keeps what was replaced after the snapshot that it begins from."""
    op.drop_column("observations", "replaces")
