"""How sure the chain's draws are of each assignment, and what the prior had learned."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the certainties of observations and clusters, and the prior of a publication."""
    op.create_table(
        "certainties",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("chunk", sa.BigInteger(), nullable=False),
        sa.Column("probability_bytes", sa.LargeBinary(), nullable=False),
        sa.Column("stability_bytes", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_certainties_stream_id")
        ),
        sa.PrimaryKeyConstraint("stream_id", "chunk", name=op.f("pk_certainties")),
    )
    op.add_column("clusters", sa.Column("probability", sa.Double(), nullable=True))
    op.add_column("clusters", sa.Column("stability", sa.Double(), nullable=True))
    op.add_column("publications", sa.Column("prior_params", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Undo it; certainties come back with the next publication after another upgrade."""
    op.drop_column("publications", "prior_params")
    op.drop_column("clusters", "stability")
    op.drop_column("clusters", "probability")
    op.drop_table("certainties")
