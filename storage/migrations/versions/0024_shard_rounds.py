"""Rounds of the shards of one stream: what was asked in each, and what was answered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "shard_rounds",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("hyperparameters", sa.JSON(), nullable=False),
        sa.Column("next_name", sa.BigInteger(), nullable=False),
        sa.Column("opened_at", sa.Double(), nullable=False),
        sa.Column("closed_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_shard_rounds_stream_id")
        ),
        sa.PrimaryKeyConstraint("stream_id", "number", name=op.f("pk_shard_rounds")),
    )
    op.create_table(
        "shard_messages",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("round_number", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("direction", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_shard_messages_stream_id")
        ),
        sa.PrimaryKeyConstraint(
            *("stream_id", "round_number", "step", "shard", "direction"),
            name=op.f("pk_shard_messages"),
        ),
    )


def downgrade() -> None:
    """Undo it. A round that is out is not finished then."""
    op.drop_table("shard_messages")
    op.drop_table("shard_rounds")
