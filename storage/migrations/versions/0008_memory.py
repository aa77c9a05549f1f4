"""What has left the model, and what has been compacted in it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add when an observation left, and the bundles that compaction makes."""
    for name in ("left_seq", "bundle", "bundle_since"):
        op.add_column("observations", sa.Column(name, sa.BigInteger(), nullable=True))
    op.create_index(
        "ix_observations_bundle",
        "observations",
        ["stream_id", "bundle", "seq"],
        sqlite_where=sa.text("bundle IS NOT NULL"),
        postgresql_where=sa.text("bundle IS NOT NULL"),
    )
    op.create_table(
        "bundles",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("bundle", sa.BigInteger(), nullable=False),
        sa.Column("cluster", sa.BigInteger(), nullable=False),
        sa.Column("n_observations", sa.BigInteger(), nullable=False),
        sa.Column("doubt", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_bundles_stream_id")),
        sa.PrimaryKeyConstraint("stream_id", "bundle", name=op.f("pk_bundles")),
    )
    op.create_index("ix_bundles_cluster", "bundles", ["stream_id", "cluster"])
    op.create_table(
        "bundle_changes",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("bundle", sa.BigInteger(), nullable=False),
        sa.Column("publication", sa.BigInteger(), nullable=False),
        sa.Column("old_cluster", sa.BigInteger(), nullable=False),
        sa.Column("new_cluster", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_bundle_changes_stream_id")
        ),
        sa.PrimaryKeyConstraint(
            "stream_id", "bundle", "publication", name=op.f("pk_bundle_changes")
        ),
    )
    op.add_column("publications", sa.Column("n_atoms", sa.BigInteger(), nullable=True))
    op.add_column("publications", sa.Column("disruption", sa.Double(), nullable=True))


def downgrade() -> None:
    """Undo it; what was compacted must be expanded before, or its clusters are old ones."""
    op.drop_column("publications", "disruption")
    op.drop_column("publications", "n_atoms")
    op.drop_table("bundle_changes")
    op.drop_table("bundles")
    op.drop_index("ix_observations_bundle", "observations")
    for name in ("bundle_since", "bundle", "left_seq"):
        op.drop_column("observations", name)
