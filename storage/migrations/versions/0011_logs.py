"""By what a partition's log is known again, and what was decided when it was another one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_MARKS = (
    ("topic_id", sa.Text()),
    ("log_start", sa.BigInteger()),
    ("last_offset", sa.BigInteger()),
    ("last_checksum", sa.Text()),
)


def upgrade() -> None:
    """Add the marks, which the next commit of each partition fills in, and the decisions."""
    for name, kind in _MARKS:
        op.add_column("offsets", sa.Column(name, kind, nullable=True))
    row_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "log_decisions",
        sa.Column("id", row_id, nullable=False),
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("decided_at", sa.Double(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("kept_as", sa.Text(), nullable=False),
        sa.Column("next_offset", sa.BigInteger(), nullable=False),
        sa.Column("difference", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_log_decisions_stream_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_log_decisions")),
    )
    op.create_index("ix_log_decisions_stream", "log_decisions", ["stream_id", "epoch"])


def downgrade() -> None:
    """Undo it; the names that earlier logs were given stay."""
    op.drop_index("ix_log_decisions_stream", "log_decisions")
    op.drop_table("log_decisions")
    for name, _ in reversed(_MARKS):
        op.drop_column("offsets", name)
