"""Every metric Weald exposes: name, kind, meaning, labels, in the order of a record's journey.

Nothing else in the project spells a metric name. Each metric also carries the label ``stream``,
which is bound once when `weald.monitoring.metrics.Metrics` is built. Label values are bounded by
the configuration (steps, kernels, reasons, partitions); a cluster id, a record key or an offset
is never one.

References
----------
Prometheus documentation, "Metric and label naming": one prefix, base units, ``_total`` on
counters, and labels over which a sum has a meaning.
"""

from typing import Final, Literal, NamedTuple

__all__ = [
    "LATENCY_BUCKETS",
    "LEASE_OUTCOMES",
    "LINEAGE_KINDS",
    "METRICS",
    "PHASES",
    "REBALANCE_KINDS",
    "RETRY_TARGETS",
    "STEPS",
    "STEP_BUCKETS",
    "TRACES",
    "TRANSACTION_BUCKETS",
    "Metric",
]

Kind = Literal["counter", "gauge", "histogram"]


class Metric(NamedTuple):
    """One row of the table of metrics.

    Parameters
    ----------
    name : str
        Full name as Prometheus shows it, with its unit and, for a counter, ``_total``.
    kind : {"counter", "gauge", "histogram"}
    help : str
        One sentence, shown as ``# HELP``.
    labels : tuple of str
        Labels beside ``stream``.
    buckets : tuple of float
        Upper bounds of a histogram, in its unit; empty for other kinds.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


STEPS: Final = (
    *("poll", "decode", "insert", "refine", "lend", "adopt", "await"),
    *("publish", "compact", "commit", "redis", "snapshot"),
)
LEASE_OUTCOMES: Final = ("adopted", "expired", "parked", "abandoned")
PHASES: Final = ("starting", "replaying", "warming_up", "standby", "running", "paused", "stopping")
LINEAGE_KINDS: Final = ("birth", "split", "merge", "move", "retire")
RETRY_TARGETS: Final = ("kafka", "sql", "redis")
TRACES: Final = ("log_joint", "clusters")
REBALANCE_KINDS: Final = ("assigned", "revoked", "lost")

# A healthy step takes from under a millisecond (decode) to a second (poll's own timeout); thirty
# seconds is the order of a session timeout, beyond which a partition is lost.
STEP_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

# From "the same batch" to "an hour behind": a replay from the beginning of a topic is expected to
# overflow, and is read from the lag instead.
LATENCY_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)

# SQLite in WAL mode commits a batch in about a millisecond; its busy timeout is some seconds.
TRANSACTION_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)

_PARTITION: Final = ("topic", "partition")

METRICS: Final[tuple[Metric, ...]] = (
    # What runs.
    Metric("weald_build_info", "gauge", "Version of Weald and of Python.", ("version", "python")),
    Metric("weald_model_info", "gauge", "Family and prior of the stream.", ("family", "prior")),
    Metric("weald_phase", "gauge", "1 for the phase the engine is in, else 0.", ("phase",)),
    # A record's journey.
    Metric("weald_records_polled_total", "counter", "Records received from the source."),
    Metric("weald_records_decoded_total", "counter", "Records that became observations."),
    Metric("weald_dead_letters_total", "counter", "Records set aside as bad.", ("reason",)),
    Metric("weald_duplicates_total", "counter", "Records that SQL already held."),
    Metric("weald_observations_inserted_total", "counter", "Observations committed to SQL."),
    Metric("weald_observations_replayed_total", "counter", "Observations replayed at a start."),
    Metric("weald_batches_total", "counter", "Batches committed to SQL."),
    Metric(
        "weald_step_seconds",
        "histogram",
        "Time one step of one batch took.",
        ("step",),
        STEP_BUCKETS,
    ),
    Metric(
        "weald_assignment_latency_seconds",
        "histogram",
        "Time to a record's SQL commit since its own (event) or its broker's clock.",
        ("since",),
        LATENCY_BUCKETS,
    ),
    Metric("weald_last_commit_timestamp_seconds", "gauge", "When a batch was last committed."),
    Metric("weald_scored_observations_total", "counter", "Arrivals whose surprise was judged."),
    Metric(
        "weald_anomalies_total",
        "counter",
        "Of those judged, the ones that surprise more than 99% of those before them.",
    ),
    Metric(
        "weald_drift_ratio",
        "gauge",
        "Kolmogorov-Smirnov distance of the newest 128 surprises to those before, 0 to 1.",
    ),
    # The source.
    Metric("weald_assigned_partitions", "gauge", "Partitions this process owns; 0 on standby."),
    Metric(
        "weald_held_observations", "gauge", "Observations in memory that SQL does not have yet."
    ),
    Metric("weald_paused_partitions", "gauge", "Owned partitions paused as back-pressure."),
    Metric("weald_rebalances_total", "counter", "Changes of partition ownership.", ("kind",)),
    Metric(
        "weald_partition_lag_records",
        "gauge",
        "Records of a partition that SQL does not hold yet.",
        _PARTITION,
    ),
    Metric(
        "weald_partition_lag_seconds",
        "gauge",
        "Age of the last committed record of a partition that has lag, else 0.",
        _PARTITION,
    ),
    # Refinement.
    Metric("weald_refinement_rounds_total", "counter", "Rounds of refinement run."),
    Metric("weald_last_refinement_timestamp_seconds", "gauge", "When a refinement last ended."),
    Metric("weald_kernel_proposed_total", "counter", "Moves a kernel proposed.", ("kernel",)),
    Metric("weald_kernel_accepted_total", "counter", "Moves a kernel made.", ("kernel",)),
    Metric("weald_kernel_seconds_total", "counter", "Time spent in a kernel.", ("kernel",)),
    Metric(
        "weald_kernel_log_joint_gain_nats_total",
        "counter",
        "Log joint gained over the rounds of a kernel that ended higher than they began.",
        ("kernel",),
    ),
    Metric(
        "weald_kernel_log_joint_loss_nats_total",
        "counter",
        "Log joint given up over the rounds of a kernel that ended lower than they began.",
        ("kernel",),
    ),
    Metric("weald_log_joint_nats", "gauge", "Log joint of the chain after its last refinement."),
    Metric("weald_chain_clusters", "gauge", "Blocks of the partition being sampled."),
    Metric(
        "weald_split_rhat_ratio",
        "gauge",
        "R-hat of the halves of one trace over the last 64 refinements; log joint per observation.",
        ("trace",),
    ),
    Metric("weald_hyperparameter", "gauge", "Value in the chain, by name.", ("name",)),
    # Refinement by workers.
    Metric("weald_workers", "gauge", "Workers heard of lately.", ("role",)),
    Metric("weald_role_leases_total", "counter", "Leases of a role taken back.", ("role",)),
    Metric("weald_role_proposed_total", "counter", "Moves its kernels proposed.", ("role",)),
    Metric("weald_role_accepted_total", "counter", "Moves its kernels made.", ("role",)),
    Metric(
        "weald_role_processor_seconds_total",
        "counter",
        "Processor time of its kernels.",
        ("role",),
    ),
    Metric(
        "weald_role_squared_jump_total",
        "counter",
        "Squared changes, lease by lease, of the sum of squared shares.",
        ("role",),
    ),
    Metric("weald_leases_total", "counter", "Leases closed, by what became of them.", ("outcome",)),
    Metric(
        "weald_lease_bytes_total", "counter", "Bytes into Redis: leases, and rows that changed."
    ),
    Metric("weald_late_returns_total", "counter", "Returns dropped as late or repeated."),
    Metric("weald_lease_round_seconds", "gauge", "Time that the last round of leases was out."),
    Metric(
        "weald_lease_round_arrivals",
        "gauge",
        "Observations that came while the last round of leases was out.",
    ),
    # Publication.
    Metric("weald_publications_total", "counter", "Publications of the partition."),
    Metric("weald_last_publication_timestamp_seconds", "gauge", "When the last one happened."),
    Metric("weald_clusters", "gauge", "Clusters of the published partition."),
    Metric(
        "weald_groups",
        "gauge",
        "Groups of clusters without a valley of density between them; none of a network.",
    ),
    Metric(
        "weald_publication_warnings",
        "gauge",
        "Reasons not to believe the newest publication; weald status names them.",
    ),
    Metric(
        "weald_membership_probability_ratio",
        "gauge",
        "Mean probability of the shown assignments by the chain's recent draws.",
    ),
    Metric(
        "weald_stability_ratio",
        "gauge",
        "Mean share of its cluster that an observation is with in the chain's recent draws.",
    ),
    Metric("weald_observations", "gauge", "Observations in the model."),
    Metric("weald_atoms", "gauge", "Atoms that the model holds them as, of one or of many."),
    Metric(
        "weald_estimated_disruption",
        "gauge",
        "Estimate, no bound: total variation that compaction puts between posterior and samples.",
    ),
    Metric("weald_early_compactions", "gauge", "Atoms saved so far against the rule, for need."),
    Metric("weald_lineage_events_total", "counter", "Changes between publications.", ("kind",)),
    Metric("weald_reassigned_observations_total", "counter", "Rows a publication moved."),
    # Storage.
    Metric(
        "weald_sql_transaction_seconds",
        "histogram",
        "Time one SQL transaction took.",
        (),
        TRANSACTION_BUCKETS,
    ),
    Metric("weald_retries_total", "counter", "Tries repeated for an outage.", ("target",)),
    Metric("weald_fenced_total", "counter", "Commits refused because a newer owner exists."),
    Metric("weald_redis_published_clusters_total", "counter", "Cluster statistics sent to Redis."),
    Metric("weald_redis_publish_failures_total", "counter", "Failed sends of statistics to Redis."),
    Metric(
        "weald_redis_statistics_bytes",
        "gauge",
        "Memory that this stream's statistics take in Redis, as Redis estimates it.",
    ),
    Metric("weald_snapshots_total", "counter", "Snapshots committed."),
    Metric("weald_last_snapshot_timestamp_seconds", "gauge", "When the last was committed."),
    Metric("weald_last_snapshot_size_bytes", "gauge", "Encoded size of the last snapshot."),
    Metric(
        "weald_unsaved_observations",
        "gauge",
        "Observations that SQL holds beyond the last snapshot: what a restart replays.",
    ),
)
