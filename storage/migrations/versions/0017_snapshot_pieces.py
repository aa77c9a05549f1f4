"""Snapshots in pieces: one that no database would take as one value."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; a snapshot without pieces is whole in its own row."""
    op.create_table(
        "snapshot_pieces",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("piece", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id", "number"],
            ["snapshots.stream_id", "snapshots.number"],
            name=op.f("fk_snapshot_pieces_stream_id_number"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("stream_id", "number", "piece", name=op.f("pk_snapshot_pieces")),
    )


def downgrade() -> None:
    """Undo it, and forget the snapshots that are nothing without their pieces."""
    pieces = sa.table("snapshot_pieces", sa.column("stream_id"), sa.column("number"))
    snapshots = sa.table("snapshots", sa.column("stream_id"), sa.column("number"))
    op.execute(
        sa.delete(snapshots).where(
            sa.exists().where(
                pieces.c.stream_id == snapshots.c.stream_id,
                pieces.c.number == snapshots.c.number,
            )
        )
    )
    op.drop_table("snapshot_pieces")
