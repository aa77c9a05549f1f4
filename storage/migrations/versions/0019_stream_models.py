"""As what a stream was seen anew, from which observation on, and why."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the journal."""
    op.create_table(
        "stream_models",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("publication", sa.BigInteger(), nullable=False),
        sa.Column("decided_at", sa.Double(), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("seen_as", sa.Text(), nullable=True),
        sa.Column("earlier_family", sa.Text(), nullable=False),
        sa.Column("earlier_seen_as", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_stream_models_stream_id")
        ),
        sa.PrimaryKeyConstraint("stream_id", "seq", name=op.f("pk_stream_models")),
    )


def downgrade() -> None:
    """Drop it; a stream that was seen anew goes on so."""
    op.drop_table("stream_models")
