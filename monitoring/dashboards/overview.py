"""The first dashboard to look at: is the stream well, how fast, how far behind, what goes wrong."""

from typing import Final

from .panels import Dashboard, Panel, Query, Row
from .queries import age, counter_rate, gauge, largest, process, quantile, time_share

__all__ = ["OVERVIEW"]

_NOW = Row(
    "Now",
    [
        Panel(
            "Observations",
            "Observations in the model of the selected streams.",
            "short",
            [Query(largest("weald_observations", "stream"), "{{stream}}")],
            kind="stat",
            width=4,
        ),
        Panel(
            "Clusters",
            "Clusters of the published partition, the one that commands and tables show.",
            "short",
            [Query(largest("weald_clusters", "stream"), "{{stream}}")],
            kind="stat",
            width=4,
        ),
        Panel(
            "Lag",
            "Records on the topic that SQL does not hold yet. Steady growth is out of order.",
            "short",
            [Query(gauge("weald_partition_lag_records", "stream"), "{{stream}}")],
            kind="stat",
            width=4,
            warn_above=10_000,
        ),
        Panel(
            "Behind by",
            "Age of the last committed record of the slowest partition; 0 where there is no lag.",
            "s",
            [Query(largest("weald_partition_lag_seconds", "stream"), "{{stream}}")],
            kind="stat",
            width=4,
            warn_above=300,
        ),
        Panel(
            "Dead letters",
            "Share of the received records that were set aside as bad.",
            "percentunit",
            [
                Query(
                    f"{counter_rate('weald_dead_letters_total', 'stream')} / "
                    f"({counter_rate('weald_records_polled_total', 'stream')} > 0)",
                    "{{stream}}",
                )
            ],
            kind="stat",
            width=4,
            warn_above=0.01,
        ),
        Panel(
            "Owners",
            "Partitions that a process owns. Zero: every process stands by, nothing is clustered.",
            "short",
            [Query(gauge("weald_assigned_partitions", "stream"), "{{stream}}")],
            kind="stat",
            width=4,
        ),
    ],
)

_RECORDS = Row(
    "Records",
    [
        Panel(
            "Records",
            "What happens to records, per second. Received is the sum of the other three.",
            "cps",
            [
                Query(counter_rate("weald_records_polled_total"), "received"),
                Query(counter_rate("weald_observations_inserted_total"), "inserted"),
                Query(counter_rate("weald_duplicates_total"), "duplicates"),
                Query(counter_rate("weald_dead_letters_total"), "dead letters"),
            ],
        ),
        Panel(
            "Time from broker to commit",
            "How long after the broker's timestamp a record's cluster is in SQL. A replay of old "
            "records shows their age here.",
            "s",
            [
                Query(
                    quantile(q, "weald_assignment_latency_seconds", where='since="broker"'),
                    f"p{round(100 * q)}",
                )
                for q in (0.5, 0.95, 0.99)
            ],
        ),
        Panel(
            "Lag by partition",
            "Records of each partition that SQL does not hold yet. One that stands out is stuck.",
            "short",
            [
                Query(
                    gauge("weald_partition_lag_records", "topic, partition"),
                    "{{topic}}/{{partition}}",
                )
            ],
        ),
        Panel(
            "Held in memory",
            "Observations that SQL does not have yet. A new stream holds its first ones until "
            "there are enough to set the family's parameters.",
            "short",
            [Query(largest("weald_held_observations", "stream"), "{{stream}}")],
        ),
    ],
)

_TIME = Row(
    "Where the time goes",
    [
        Panel(
            "Time by step",
            "Share of wall time that each step of the loop takes; poll is mostly waiting.",
            "percentunit",
            [Query(time_share("weald_step_seconds", "step"), "{{step}}")],
            stacked=True,
        ),
        Panel(
            "Slow steps (p95)",
            "One in twenty batches takes longer than this in a step. Keep the sum well below the "
            "session timeout.",
            "s",
            [Query(quantile(0.95, "weald_step_seconds", "step"), "{{step}}")],
        ),
        Panel(
            "SQL transactions",
            "Time of one commit: all that a batch changes goes in one transaction.",
            "s",
            [
                Query(quantile(q, "weald_sql_transaction_seconds"), f"p{round(100 * q)}")
                for q in (0.5, 0.95, 0.99)
            ],
        ),
    ],
)

_PROGRESS = Row(
    "Progress",
    [
        Panel(
            "Phase",
            "1 for the phase a process is in. A long replay follows a restart without a snapshot.",
            "short",
            [Query(f"{gauge('weald_phase', 'instance, phase')} > 0", "{{instance}} {{phase}}")],
        ),
        Panel(
            "Time since",
            "Since the last commit, refinement, publication and snapshot. All four grow together "
            "when no records arrive; one alone that grows is out of order.",
            "s",
            [
                Query(age(f"weald_last_{what}_timestamp_seconds"), f"{what} {{{{stream}}}}")
                for what in ("commit", "refinement", "publication", "snapshot")
            ],
        ),
        Panel(
            "Lineage events",
            "Births, splits, merges, moves and retirements of clusters per second.",
            "cps",
            [Query(counter_rate("weald_lineage_events_total", "kind"), "{{kind}}")],
        ),
    ],
)

_TROUBLE = Row(
    "Trouble",
    [
        Panel(
            "Repeated tries",
            "Tries that an outage of Kafka, SQL or Redis made necessary, per second.",
            "cps",
            [
                Query(counter_rate("weald_retries_total", "target"), "{{target}}"),
                Query(counter_rate("weald_redis_publish_failures_total"), "statistics not sent"),
            ],
        ),
        Panel(
            "Ownership",
            "Changes of partition ownership, and commits refused to an older owner, per second. "
            "Lost means that heartbeats were missed.",
            "cps",
            [
                Query(counter_rate("weald_rebalances_total", "kind"), "{{kind}}"),
                Query(counter_rate("weald_fenced_total"), "fenced"),
            ],
        ),
        Panel(
            "Paused partitions",
            "Partitions paused as back-pressure, while SQL is away.",
            "short",
            [Query(gauge("weald_paused_partitions", "instance"), "{{instance}}")],
        ),
    ],
)

_PROCESS = Row(
    "Process",
    [
        Panel(
            "CPU",
            "Cores in use; one loop can use one, compiled kernels more.",
            "short",
            [
                Query(
                    "sum by (instance) (rate(process_cpu_seconds_total"
                    '{job=~"$job", instance=~"$instance"}[$__rate_interval]))',
                    "{{instance}}",
                )
            ],
        ),
        Panel(
            "Memory",
            "Resident memory. It grows with the observations that the model holds.",
            "bytes",
            [Query(process("process_resident_memory_bytes"), "{{instance}}")],
        ),
        Panel(
            "Versions",
            "What runs where.",
            "none",
            [Query(gauge("weald_build_info", "instance, stream, version, python"), "")],
            kind="table",
        ),
    ],
)

OVERVIEW: Final = Dashboard(
    "weald-overview",
    "Weald: overview",
    "Is the stream well: rate, lag, latency, clusters, errors.",
    [_NOW, _RECORDS, _TIME, _PROGRESS, _TROUBLE, _PROCESS],
)
