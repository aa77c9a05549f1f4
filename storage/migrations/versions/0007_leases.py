"""Leases of the refinement plane, and what came back of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables of leases and of adopted rounds."""
    op.create_table(
        "leases",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("round_number", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("n_atoms", sa.BigInteger(), nullable=False),
        sa.Column("offered_at", sa.Double(), nullable=False),
        sa.Column("closed_at", sa.Double(), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_leases_stream_id")),
        sa.PrimaryKeyConstraint("stream_id", "round_number", "number", name=op.f("pk_leases")),
    )
    op.create_table(
        "adoptions",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("round_number", sa.BigInteger(), nullable=False),
        sa.Column("begun_seq", sa.BigInteger(), nullable=False),
        sa.Column("begun_publication", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("publication", sa.BigInteger(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_adoptions_stream_id")),
        sa.PrimaryKeyConstraint("stream_id", "round_number", name=op.f("pk_adoptions")),
    )


def downgrade() -> None:
    """Undo it. Snapshots that are older than an adopted round cannot be replayed then."""
    op.drop_table("adoptions")
    op.drop_table("leases")
