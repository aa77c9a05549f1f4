"""The tables. SQLAlchemy Core; ``migrations`` holds the same in steps, and a test compares them.

Conventions: ``n_…`` counts, ``log_…`` natural logarithms, ``…_at`` seconds since 1970 (UTC),
``…_bytes`` float64 little-endian. ``seq`` numbers the observations of a stream from 1. No column
has a name that SQL reserves, so that people can ask questions by hand without quoting.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

__all__ = [
    "adoptions",
    "assignment_changes",
    "bundle_changes",
    "bundles",
    "certainties",
    "clusters",
    "dead_letters",
    "leases",
    "lineage_events",
    "lineage_parents",
    "log_decisions",
    "metadata",
    "observations",
    "offsets",
    "postponements",
    "publications",
    "rounds",
    "shard_messages",
    "shard_rounds",
    "snapshot_pieces",
    "snapshots",
    "stream_models",
    "streams",
]

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only when the key's type is spelt INTEGER.
RowId = BigInteger().with_variant(Integer(), "sqlite")


def _stream_id() -> Column[int]:
    return Column("stream_id", Integer, ForeignKey("streams.id"), primary_key=True)


streams = Table(
    "streams",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("family", Text, nullable=False),
    Column("family_params", JSON, nullable=False),
    Column("prior", Text, nullable=False),
    Column("prior_params", JSON, nullable=False),
    Column("record_schema", JSON, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("owner", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("next_seq", BigInteger, nullable=False),
    Column("next_event", BigInteger, nullable=False),
    Column("committed_at", Double),
    Column("reverted_epoch", BigInteger, nullable=False, server_default="0"),
    # Through which the family sees the observations' values, and the words for it.
    Column("transformation", LargeBinary),
    Column("seen_as", Text),
    # Under which the family's hyperparameters are learned on, steps to which values are known, and
    # the law by which they are moved; steps of what is moved before it has a logarithm.
    Column("hyperprior", JSON(none_as_null=True)),
    Column("resolution", JSON(none_as_null=True)),
    Column("moves", Text),
    Column("log_steps", JSON(none_as_null=True)),
    # Of a stream in shards, how many; it holds no observations. Each shard is a stream of its own
    # that says of which it is a part: see ``storage.commit.parts``.
    Column("shards", Integer, nullable=False, server_default="1"),
    Column("part_of", Integer, ForeignKey("streams.id")),
    Column("shard", Integer),
)

# As what a stream was seen anew: its row says the rest. No replay crosses it.
stream_models = Table(
    "stream_models",
    metadata,
    _stream_id(),
    # The last observation that was there, and the publication that was shown: statistics of
    # clusters that had ended by then are of what was seen before.
    Column("seq", BigInteger, primary_key=True),
    Column("publication", BigInteger, nullable=False),
    Column("decided_at", Double, nullable=False),
    Column("family", Text, nullable=False),
    Column("seen_as", Text),
    Column("earlier_family", Text, nullable=False),
    Column("earlier_seen_as", Text),
    Column("reason", Text, nullable=False),
)

offsets = Table(
    "offsets",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("stream_id", Integer, ForeignKey("streams.id"), nullable=False),
    Column("topic", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    Column("next_offset", BigInteger, nullable=False),
    Column("n_received", BigInteger, nullable=False),
    Column("n_inserted", BigInteger, nullable=False),
    Column("n_duplicate", BigInteger, nullable=False),
    Column("n_dead", BigInteger, nullable=False),
    Column("updated_at", Double, nullable=False),
    # By what the log is known again; see ``storage.commit.log_marks``.
    Column("topic_id", Text),
    Column("log_start", BigInteger),
    Column("last_offset", BigInteger),
    Column("last_checksum", Text),
    UniqueConstraint("stream_id", "topic", "partition"),
    CheckConstraint("n_received = n_inserted + n_duplicate + n_dead", name="ledger_adds_up"),
)

# What a person decided when the log of a partition was another one than was read.
log_decisions = Table(
    "log_decisions",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("stream_id", Integer, ForeignKey("streams.id"), nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("decided_at", Double, nullable=False),
    Column("topic", Text, nullable=False),
    Column("partition", Integer, nullable=False),
    # The name that the earlier log has in ``offsets`` since.
    Column("kept_as", Text, nullable=False),
    Column("next_offset", BigInteger, nullable=False),
    Column("difference", Text, nullable=False),
    Index("ix_log_decisions_stream", "stream_id", "epoch"),
)

# Source: the row of ``offsets``, which names topic and partition; two integers then are the
# identity of an observation. No foreign key to it: the commit looks every source up anyway.
# Of a network both edges and vertices have a row: an edge is in cluster 0, which is none, and a
# vertex, whose key is its name, has an offset below 0 that says which record brought it.
observations = Table(
    "observations",
    metadata,
    Column("stream_id", Integer, primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("source_id", Integer, nullable=False),
    Column("record_offset", BigInteger, nullable=False),
    Column("cluster", BigInteger, nullable=False),
    Column("event_at", Double, nullable=False),
    Column("received_at", Double, nullable=False),
    Column("record_key", Text),
    Column("value_bytes", LargeBinary, nullable=False),
    Column("record_text", Text),
    # Number of the observation after which this one left the model, its own where it was never in;
    # it keeps its last cluster.
    Column("left_seq", BigInteger),
    # The compacted atom that it is in, and the publication after which it came in: its cluster is
    # the bundle's then, and the column here says what it was before.
    Column("bundle", BigInteger),
    Column("bundle_since", BigInteger),
    # The earlier observation with the same key, which left the model for this one.
    Column("replaces", BigInteger),
    UniqueConstraint("source_id", "record_offset"),
    Index("ix_observations_key", "stream_id", "record_key", "seq"),
    Index("ix_observations_cluster", "stream_id", "cluster", "seq"),
    Index(
        "ix_observations_bundle",
        "stream_id",
        "bundle",
        "seq",
        sqlite_where=text("bundle IS NOT NULL"),
        postgresql_where=text("bundle IS NOT NULL"),
    ),
    sqlite_with_rowid=False,
)

assignment_changes = Table(
    "assignment_changes",
    metadata,
    Column("stream_id", Integer, primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("publication", BigInteger, primary_key=True),
    Column("old_cluster", BigInteger, nullable=False),
    Column("new_cluster", BigInteger, nullable=False),
    Index("ix_assignment_changes_publication", "stream_id", "publication"),
    sqlite_with_rowid=False,
)

# Compacted atoms: a publication that moves one rewrites one row, however many observations it has.
bundles = Table(
    "bundles",
    metadata,
    _stream_id(),
    Column("bundle", BigInteger, primary_key=True),
    Column("cluster", BigInteger, nullable=False),
    Column("n_observations", BigInteger, nullable=False),
    Column("doubt", Double, nullable=False),
    Index("ix_bundles_cluster", "stream_id", "cluster"),
)

bundle_changes = Table(
    "bundle_changes",
    metadata,
    _stream_id(),
    Column("bundle", BigInteger, primary_key=True),
    Column("publication", BigInteger, primary_key=True),
    Column("old_cluster", BigInteger, nullable=False),
    Column("new_cluster", BigInteger, nullable=False),
)

clusters = Table(
    "clusters",
    metadata,
    _stream_id(),
    Column("cluster", BigInteger, primary_key=True),
    Column("n_observations", BigInteger, nullable=False),
    Column("log_marginal", Double, nullable=False),
    Column("statistics_bytes", LargeBinary, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("born_publication", BigInteger, nullable=False),
    Column("retired_publication", BigInteger),
    Column("probability", Double),
    Column("stability", Double),
    # Of clusters without a valley between them; GROUP itself is reserved.
    Column("cluster_group", BigInteger),
    # The first publication that told of that group.
    Column("group_born_publication", BigInteger),
)

# One byte of percent for each observation of a chunk; only chunks that changed are rewritten.
certainties = Table(
    "certainties",
    metadata,
    _stream_id(),
    Column("chunk", BigInteger, primary_key=True),
    Column("probability_bytes", LargeBinary, nullable=False),
    Column("stability_bytes", LargeBinary, nullable=False),
)

publications = Table(
    "publications",
    metadata,
    _stream_id(),
    Column("number", BigInteger, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("published_at", Double, nullable=False),
    Column("log_joint_before", Double),
    Column("log_joint", Double),
    Column("n_clusters", BigInteger, nullable=False),
    Column("n_observations", BigInteger, nullable=False),
    Column("prior_params", JSON),
    Column("n_atoms", BigInteger),
    Column("disruption", Double),
    # Reasons not to believe it.
    Column("warnings", JSON),
    # Of the family as it was learned: what people are told, and all.
    Column("base_measure", JSON),
    Column("family_params", JSON),
    Index("ix_publications_published_at", "stream_id", "published_at"),
)

lineage_events = Table(
    "lineage_events",
    metadata,
    _stream_id(),
    Column("number", BigInteger, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("publication", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("happened_at", Double, nullable=False),
    Column("cluster", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("n_moved", BigInteger, nullable=False),
    Index("ix_lineage_events_cluster", "stream_id", "cluster"),
    Index("ix_lineage_events_happened_at", "stream_id", "happened_at"),
)

lineage_parents = Table(
    "lineage_parents",
    metadata,
    Column("stream_id", Integer, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("parent", BigInteger, nullable=False),
    ForeignKeyConstraint(
        ["stream_id", "number"], ["lineage_events.stream_id", "lineage_events.number"]
    ),
    Index("ix_lineage_parents_parent", "stream_id", "parent"),
)

rounds = Table(
    "rounds",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("stream_id", Integer, ForeignKey("streams.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("kernel", Text, nullable=False),
    Column("proposed", BigInteger, nullable=False),
    Column("accepted", BigInteger, nullable=False),
    Column("log_joint_before", Double),
    Column("log_joint_after", Double),
    Column("seconds", Double, nullable=False),
    Index("ix_rounds_stream", "stream_id", "id"),
)

snapshots = Table(
    "snapshots",
    metadata,
    _stream_id(),
    Column("number", BigInteger, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("n_bytes", BigInteger, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("label", Text),
)

# What of a snapshot does not fit into its row, in order from 1: no database takes a value of a
# gigabyte, and a stream of a million observations has such snapshots.
snapshot_pieces = Table(
    "snapshot_pieces",
    metadata,
    Column("stream_id", Integer, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("piece", Integer, primary_key=True),
    Column("payload", LargeBinary, nullable=False),
    ForeignKeyConstraint(
        ["stream_id", "number"],
        ["snapshots.stream_id", "snapshots.number"],
        ondelete="CASCADE",
    ),
)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("stream_id", Integer, ForeignKey("streams.id"), nullable=False),
    Column("source_id", Integer, ForeignKey("offsets.id"), nullable=False),
    Column("record_offset", BigInteger, nullable=False),
    Column("record_key", LargeBinary),
    Column("record_value", LargeBinary, nullable=False),
    Column("reason", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("received_at", Double, nullable=False),
    # When somebody asked for it to be decided anew; None for most.
    Column("replay_at", Double),
    UniqueConstraint("source_id", "record_offset"),
    Index("ix_dead_letters_reason", "stream_id", "reason", "id"),
    Index(
        "ix_dead_letters_replay",
        "stream_id",
        "id",
        sqlite_where=text("replay_at IS NOT NULL"),
        postgresql_where=text("replay_at IS NOT NULL"),
    ),
)

# Refinements whose turn came after ``seq`` observations, and which were not made then, since more
# records waited: a replay does not make them either.
postponements = Table(
    "postponements",
    metadata,
    _stream_id(),
    Column("seq", BigInteger, primary_key=True),
)

# A lease is open until the row says otherwise; the token is that of nobody else, ever.
leases = Table(
    "leases",
    metadata,
    _stream_id(),
    Column("round_number", BigInteger, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("token", BigInteger, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("n_atoms", BigInteger, nullable=False),
    Column("offered_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("worker", Text),
    Column("begun_seq", BigInteger),
    Column("begun_publication", BigInteger),
    # Whom it was meant for, and what it came to; leases of earlier versions have none of it.
    Column("role", Text),
    Column("proposed", BigInteger),
    Column("accepted", BigInteger),
    Column("squared_jump", Double),
    Column("processor_seconds", Double),
)

# Replay does again what these say: a round's returns came from outside, not from the stream.
adoptions = Table(
    "adoptions",
    metadata,
    _stream_id(),
    Column("round_number", BigInteger, primary_key=True),
    Column("begun_seq", BigInteger, nullable=False),
    Column("begun_publication", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("publication", BigInteger, nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

# Rounds of the shards of a stream, which is the whole here. Who writes shard 0 asks.
shard_rounds = Table(
    "shard_rounds",
    metadata,
    _stream_id(),
    Column("number", BigInteger, primary_key=True),
    Column("seed", BigInteger, nullable=False),
    # What is asked now; the last one is that of turns.
    Column("step", Integer, nullable=False),
    # As they were drawn in the round.
    Column("hyperparameters", JSON, nullable=False),
    Column("next_name", BigInteger, nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("next_group", Integer, nullable=False, server_default="1"),
)

# What shards were asked and have answered in the round that is out, and their reports for it. A
# report is the answer to step 0.
shard_messages = Table(
    "shard_messages",
    metadata,
    _stream_id(),
    Column("round_number", BigInteger, primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("shard", Integer, primary_key=True),
    Column("direction", Text, primary_key=True),
    Column("payload", LargeBinary, nullable=False),
)
