"""The base measure that a stream learns, and the hyperprior under which it does."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what is learned; a stream that began without keeps the base measure it has."""
    op.add_column("streams", sa.Column("hyperprior", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("streams", sa.Column("resolution", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("publications", sa.Column("base_measure", sa.JSON(), nullable=True))
    op.add_column("publications", sa.Column("family_params", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Undo it; a stream goes on under the base measure with which it began."""
    op.drop_column("publications", "family_params")
    op.drop_column("publications", "base_measure")
    op.drop_column("streams", "resolution")
    op.drop_column("streams", "hyperprior")
