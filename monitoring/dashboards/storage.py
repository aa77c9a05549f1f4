"""What is written: transactions, snapshots, and the statistics that go to Redis."""

from typing import Final

from .panels import Dashboard, Panel, Query, Row
from .queries import age, counter_rate, largest, quantile

__all__ = ["STORAGE"]

_BATCHES = counter_rate("weald_batches_total", "stream")
_INSERTED = counter_rate("weald_observations_inserted_total", "stream")

_SQL = Row(
    "SQL",
    [
        Panel(
            "Batches",
            "Batches committed per second, each in one transaction.",
            "cps",
            [Query(_BATCHES, "{{stream}}")],
        ),
        Panel(
            "Observations per batch",
            "Small batches while there is lag waste transactions.",
            "short",
            [Query(f"{_INSERTED} / ({_BATCHES} > 0)", "{{stream}}")],
        ),
        Panel(
            "Transactions",
            "Time of one transaction. Above half a second at p95 an alert fires.",
            "s",
            [
                Query(quantile(q, "weald_sql_transaction_seconds"), f"p{round(100 * q)}")
                for q in (0.5, 0.95, 0.99)
            ],
        ),
    ],
)

_SNAPSHOTS = Row(
    "Snapshots",
    [
        Panel(
            "Snapshots",
            "Snapshots committed per second; a restart replays what came after the last.",
            "cps",
            [Query(counter_rate("weald_snapshots_total", "stream"), "{{stream}}")],
        ),
        Panel(
            "Size",
            "Encoded size of the last snapshot. It grows with the observations in the model.",
            "bytes",
            [Query(largest("weald_last_snapshot_size_bytes", "stream"), "{{stream}}")],
        ),
        Panel(
            "Age",
            "Time since the last snapshot.",
            "s",
            [Query(age("weald_last_snapshot_timestamp_seconds"), "{{stream}}")],
        ),
        Panel(
            "Journal",
            "Observations that SQL holds beyond the last snapshot: a restart replays so many.",
            "short",
            [Query(largest("weald_unsaved_observations", "stream"), "{{stream}}")],
        ),
    ],
)

_REDIS = Row(
    "Redis",
    [
        Panel(
            "Statistics sent",
            "Statistics of changed clusters sent to Redis per second, after each commit.",
            "cps",
            [Query(counter_rate("weald_redis_published_clusters_total", "stream"), "{{stream}}")],
        ),
        Panel(
            "Memory",
            "What the statistics of this stream take in Redis, as Redis estimates it; asked for "
            "every 15 s. Leases are not counted.",
            "bytes",
            [Query(largest("weald_redis_statistics_bytes", "stream"), "{{stream}}")],
        ),
        Panel(
            "Failed sends",
            "Readers of Redis see old numbers; SQL is complete all the same.",
            "cps",
            [Query(counter_rate("weald_redis_publish_failures_total", "stream"), "{{stream}}")],
        ),
        Panel(
            "Time of writes (p95)",
            "Of the steps that write: a commit, the statistics after it, and a snapshot.",
            "s",
            [
                Query(
                    quantile(0.95, "weald_step_seconds", "step", 'step=~"commit|redis|snapshot"'),
                    "{{step}}",
                )
            ],
        ),
    ],
)

STORAGE: Final = Dashboard(
    "weald-storage",
    "Weald: storage",
    "Transactions, snapshots, statistics in Redis.",
    [_SQL, _SNAPSHOTS, _REDIS],
)
