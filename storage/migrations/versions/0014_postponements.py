"""Refinements that were put off while more records waited, for the replay."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; where it has no row, every refinement was made in its turn."""
    op.create_table(
        "postponements",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_postponements_stream_id")
        ),
        sa.PrimaryKeyConstraint("stream_id", "seq", name=op.f("pk_postponements")),
    )


def downgrade() -> None:
    """Undo it."""
    op.drop_table("postponements")
