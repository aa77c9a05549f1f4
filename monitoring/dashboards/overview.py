"""The first dashboard to look at: is the stream well, how fast, how far behind, what goes wrong."""

from typing import Final

from .panels import Annotation, Dashboard, Panel, Query, Row
from .queries import (
    age,
    counter_rate,
    gauge,
    increase_in_view,
    largest,
    process,
    quantile,
    time_share,
)

__all__ = ["OVERVIEW"]

_LAG = largest("weald_partition_lag_seconds", "stream")
_BAD = (
    f"{counter_rate('weald_dead_letters_total', 'stream')} / "
    f"({counter_rate('weald_records_polled_total', 'stream')} > 0)"
)
_BORN = counter_rate("weald_lineage_events_total", "stream", 'kind="birth"')
_DIVIDED = counter_rate("weald_lineage_events_total", "stream, kind", 'kind=~"split|merge"')
_SQL_AWAY = counter_rate("weald_retries_total", "stream", 'target="sql"')
_SURPRISING = (
    f"{counter_rate('weald_anomalies_total', 'stream')} / "
    f"({counter_rate('weald_scored_observations_total', 'stream')} > 0)"
)

# The limits are those of the alerts.
_ANSWERS = Row(
    "Is it well, what is new, is it sure?",
    [
        Panel(
            "Behind by",
            "Age of the last committed record of the slowest partition; 0 where there is no lag.",
            "s",
            [Query(_LAG, "{{stream}}")],
            kind="stat",
            width=4,
            warn_above=300,
        ),
        Panel(
            "Dead letters",
            "Share of the received records that were set aside as bad.",
            "percentunit",
            [Query(_BAD, "{{stream}}")],
            kind="stat",
            width=4,
            warn_above=0.01,
        ),
        Panel(
            "Clusters",
            "Clusters of the published partition, the one that commands and tables show.",
            "short",
            [Query(largest("weald_clusters", "stream"), "{{stream}}")],
            kind="stat",
            width=4,
            live=True,
        ),
        Panel(
            "New clusters",
            "Clusters born in the time that is shown.",
            "short",
            [
                Query(
                    increase_in_view("weald_lineage_events_total", "stream", 'kind="birth"'),
                    "{{stream}}",
                )
            ],
            kind="stat",
            width=4,
            live=True,
        ),
        Panel(
            "How sure",
            "How much of an observation's block lies in its cluster, averaged over the chain's "
            "recent draws.",
            "percentunit",
            [Query(largest("weald_membership_probability_ratio", "stream"), "{{stream}}")],
            kind="stat",
            width=4,
            live=True,
        ),
        Panel(
            "Reasons to doubt",
            "Of the newest publication; weald status names them, with what to try.",
            "short",
            [Query(largest("weald_publication_warnings", "stream"), "{{stream}}")],
            kind="stat",
            width=4,
            warn_above=1,
        ),
        Panel(
            "Health",
            "Green is well. Keeps up: at most five minutes behind. Records: at most 1% are bad. "
            "Familiar: at most 10% of the arrivals surprise. SQL: no transaction was tried again. "
            "Owned: a process has partitions. Believed: nothing speaks against the clusters.",
            "short",
            [
                Query(f"{_LAG} <= bool 300", "keeps up {{stream}}"),
                Query(f"({_BAD}) <= bool 0.01", "records {{stream}}"),
                Query(f"({_SURPRISING}) <= bool 0.1", "familiar {{stream}}"),
                Query(f"{_SQL_AWAY} == bool 0", "SQL {{stream}}"),
                Query(
                    f"{gauge('weald_assigned_partitions', 'stream')} > bool 0", "owned {{stream}}"
                ),
                Query(
                    f"{largest('weald_publication_warnings', 'stream')} == bool 0",
                    "believed {{stream}}",
                ),
            ],
            kind="state-timeline",
            width=24,
        ),
    ],
)

_MARKS = (
    Annotation(
        "Births",
        f"{_BORN} > 0",
        "clusters born, {{stream}}",
        "green",
    ),
    Annotation(
        "Splits and merges",
        f"{_DIVIDED} > 0",
        "{{kind}}, {{stream}}",
        "blue",
    ),
    Annotation(
        "Anomalies",
        f"{_SURPRISING} > 0.1",
        "more than 10% of the arrivals surprise, {{stream}}",
        "red",
    ),
)

_NOW = Row(
    "Now",
    [
        Panel(
            "Observations",
            "Observations in the model of the selected streams.",
            "short",
            [Query(largest("weald_observations", "stream"), "{{stream}}")],
            kind="stat",
            width=8,
        ),
        Panel(
            "Lag",
            "Records on the topic that SQL does not hold yet. Steady growth is out of order.",
            "short",
            [Query(gauge("weald_partition_lag_records", "stream"), "{{stream}}")],
            kind="stat",
            width=8,
            warn_above=10_000,
        ),
        Panel(
            "Owners",
            "Partitions that a process owns. Zero: every process stands by, nothing is clustered.",
            "short",
            [Query(gauge("weald_assigned_partitions", "stream"), "{{stream}}")],
            kind="stat",
            width=8,
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
    "Is the stream well, what is new, is it sure; then rate, lag, latency, errors.",
    [_ANSWERS, _NOW, _RECORDS, _TIME, _PROGRESS, _TROUBLE, _PROCESS],
    _MARKS,
)
