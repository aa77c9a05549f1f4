"""The tables of the first release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables, parents before children."""
    op.create_table(
        "assignment_changes",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("publication", sa.BigInteger(), nullable=False),
        sa.Column("old_cluster", sa.BigInteger(), nullable=False),
        sa.Column("new_cluster", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "stream_id", "seq", "publication", name=op.f("pk_assignment_changes")
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "observations",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("record_offset", sa.BigInteger(), nullable=False),
        sa.Column("cluster", sa.BigInteger(), nullable=False),
        sa.Column("event_at", sa.Double(), nullable=False),
        sa.Column("received_at", sa.Double(), nullable=False),
        sa.Column("record_key", sa.Text(), nullable=True),
        sa.Column("value_bytes", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("stream_id", "seq", name=op.f("pk_observations")),
        sa.UniqueConstraint(
            "source_id", "record_offset", name=op.f("uq_observations_source_id_record_offset")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_observations_cluster", "observations", ["stream_id", "cluster", "seq"])
    op.create_index("ix_observations_key", "observations", ["stream_id", "record_key", "seq"])

    op.create_table(
        "streams",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("family_params", sa.JSON(), nullable=False),
        sa.Column("prior", sa.Text(), nullable=False),
        sa.Column("prior_params", sa.JSON(), nullable=False),
        sa.Column("record_schema", sa.JSON(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("next_seq", sa.BigInteger(), nullable=False),
        sa.Column("next_event", sa.BigInteger(), nullable=False),
        sa.Column("committed_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_streams")),
        sa.UniqueConstraint("name", name=op.f("uq_streams_name")),
    )
    op.create_table(
        "clusters",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("cluster", sa.BigInteger(), nullable=False),
        sa.Column("n_observations", sa.BigInteger(), nullable=False),
        sa.Column("log_marginal", sa.Double(), nullable=False),
        sa.Column("statistics_bytes", sa.LargeBinary(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("born_publication", sa.BigInteger(), nullable=False),
        sa.Column("retired_publication", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_clusters_stream_id")),
        sa.PrimaryKeyConstraint("stream_id", "cluster", name=op.f("pk_clusters")),
    )
    op.create_table(
        "lineage_events",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("publication", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("happened_at", sa.Double(), nullable=False),
        sa.Column("cluster", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("n_moved", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_lineage_events_stream_id")
        ),
        sa.PrimaryKeyConstraint("stream_id", "number", name=op.f("pk_lineage_events")),
    )
    op.create_index("ix_lineage_events_cluster", "lineage_events", ["stream_id", "cluster"])
    op.create_index("ix_lineage_events_happened_at", "lineage_events", ["stream_id", "happened_at"])

    op.create_table(
        "offsets",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=False),
        sa.Column("next_offset", sa.BigInteger(), nullable=False),
        sa.Column("n_received", sa.BigInteger(), nullable=False),
        sa.Column("n_inserted", sa.BigInteger(), nullable=False),
        sa.Column("n_duplicate", sa.BigInteger(), nullable=False),
        sa.Column("n_dead", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.CheckConstraint(
            "n_received = n_inserted + n_duplicate + n_dead", name=op.f("ck_offsets_ledger_adds_up")
        ),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_offsets_stream_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_offsets")),
        sa.UniqueConstraint(
            "stream_id", "topic", "partition", name=op.f("uq_offsets_stream_id_topic_partition")
        ),
    )
    op.create_table(
        "publications",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("published_at", sa.Double(), nullable=False),
        sa.Column("log_joint_before", sa.Double(), nullable=True),
        sa.Column("log_joint", sa.Double(), nullable=True),
        sa.Column("n_clusters", sa.BigInteger(), nullable=False),
        sa.Column("n_observations", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_publications_stream_id")
        ),
        sa.PrimaryKeyConstraint("stream_id", "number", name=op.f("pk_publications")),
    )
    op.create_index("ix_publications_published_at", "publications", ["stream_id", "published_at"])

    op.create_table(
        "rounds",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("kernel", sa.Text(), nullable=False),
        sa.Column("proposed", sa.BigInteger(), nullable=False),
        sa.Column("accepted", sa.BigInteger(), nullable=False),
        sa.Column("log_joint_before", sa.Double(), nullable=True),
        sa.Column("log_joint_after", sa.Double(), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_rounds_stream_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rounds")),
    )
    op.create_index("ix_rounds_stream", "rounds", ["stream_id", "id"])

    op.create_table(
        "snapshots",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("n_bytes", sa.BigInteger(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["stream_id"], ["streams.id"], name=op.f("fk_snapshots_stream_id")),
        sa.PrimaryKeyConstraint("stream_id", "number", name=op.f("pk_snapshots")),
    )
    op.create_table(
        "dead_letters",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("record_offset", sa.BigInteger(), nullable=False),
        sa.Column("record_key", sa.LargeBinary(), nullable=True),
        sa.Column("record_value", sa.LargeBinary(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("received_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["offsets.id"], name=op.f("fk_dead_letters_source_id")
        ),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name=op.f("fk_dead_letters_stream_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dead_letters")),
        sa.UniqueConstraint(
            "source_id", "record_offset", name=op.f("uq_dead_letters_source_id_record_offset")
        ),
    )
    op.create_index("ix_dead_letters_reason", "dead_letters", ["stream_id", "reason", "id"])

    op.create_table(
        "lineage_parents",
        sa.Column("stream_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("parent", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["stream_id", "number"],
            ["lineage_events.stream_id", "lineage_events.number"],
            name=op.f("fk_lineage_parents_stream_id_number"),
        ),
        sa.PrimaryKeyConstraint("stream_id", "number", "ordinal", name=op.f("pk_lineage_parents")),
    )
    op.create_index("ix_lineage_parents_parent", "lineage_parents", ["stream_id", "parent"])


def downgrade() -> None:
    """Undo it: everything goes, children before parents."""
    op.drop_table("lineage_parents")
    op.drop_table("dead_letters")
    op.drop_table("snapshots")
    op.drop_table("rounds")
    op.drop_table("publications")
    op.drop_table("offsets")
    op.drop_table("lineage_events")
    op.drop_table("clusters")
    op.drop_table("streams")
    op.drop_table("observations")
    op.drop_table("assignment_changes")
