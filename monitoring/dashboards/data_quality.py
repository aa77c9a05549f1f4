"""What the records are like: which are bad and why, and whether the counts add up."""

from typing import Final

from .panels import Dashboard, Panel, Query, Row
from .queries import counter_rate, largest, quantile

__all__ = ["DATA_QUALITY"]

_POLLED = counter_rate("weald_records_polled_total", "stream")
_DEAD = counter_rate("weald_dead_letters_total", "stream")
_DUPLICATES = counter_rate("weald_duplicates_total", "stream")
_SCORED = counter_rate("weald_scored_observations_total", "stream")
_ANOMALIES = counter_rate("weald_anomalies_total", "stream")
_INSERTED = counter_rate("weald_observations_inserted_total", "stream")

_BAD = Row(
    "Bad records",
    [
        Panel(
            "Received and decoded",
            "Records received, and those that became observations, per second.",
            "cps",
            [
                Query(_POLLED, "received {{stream}}"),
                Query(counter_rate("weald_records_decoded_total", "stream"), "decoded {{stream}}"),
            ],
        ),
        Panel(
            "Dead letters by reason",
            "Records set aside per second. The table dead_letters holds them with the detail.",
            "cps",
            [Query(counter_rate("weald_dead_letters_total", "reason"), "{{reason}}")],
            stacked=True,
        ),
        Panel(
            "Share of dead letters",
            "Share of the received records that were set aside. Above 1% an alert fires.",
            "percentunit",
            [Query(f"{_DEAD} / ({_POLLED} > 0)", "{{stream}}")],
        ),
    ],
)

_LEDGER = Row(
    "The ledger",
    [
        Panel(
            "Duplicates",
            "Records that SQL already held, per second: expected after a restart, otherwise a "
            "producer sends twice.",
            "cps",
            [Query(_DUPLICATES, "{{stream}}")],
        ),
        Panel(
            "Not accounted for",
            "Received less inserted, duplicate and dead-lettered, per second. The four are counted "
            "at the commit, so any level but zero is a bug.",
            "cps",
            [Query(f"{_POLLED} - {_INSERTED} - {_DUPLICATES} - {_DEAD}", "{{stream}}")],
        ),
        Panel(
            "Replayed at a start",
            "Observations read back from SQL per second, after a restart.",
            "cps",
            [Query(counter_rate("weald_observations_replayed_total", "stream"), "{{stream}}")],
        ),
    ],
)

_DRIFT = Row(
    "Age and fit",
    [
        Panel(
            "Anomalies",
            "Share of the judged arrivals that surprise the published clusters more than 99% of "
            "the last thousand judged before them. About 1% while nothing changes; above 10% an "
            "alert fires.",
            "percentunit",
            [Query(f"{_ANOMALIES} / ({_SCORED} > 0)", "{{stream}}")],
        ),
        Panel(
            "Drift",
            "Kolmogorov-Smirnov distance between the surprise of the newest 128 judged arrivals "
            "and of up to 896 before. Chance alone stays below 0.15; 1 means no overlap.",
            "percentunit",
            [Query(largest("weald_drift_ratio", "stream"), "{{stream}}")],
        ),
        Panel(
            "Age of events at commit",
            "From a record's own time to its commit. Compare with the time since the broker's "
            "timestamp on the overview: the difference is how late producers send.",
            "s",
            [
                Query(
                    quantile(q, "weald_assignment_latency_seconds", where='since="event"'),
                    f"p{round(100 * q)}",
                )
                for q in (0.5, 0.95, 0.99)
            ],
        ),
        Panel(
            "Clusters per observation",
            "A steady rise means that new records resemble none of the old ones.",
            "percentunit",
            [
                Query(
                    f"{largest('weald_clusters', 'stream')} / "
                    f"({largest('weald_observations', 'stream')} > 0)",
                    "{{stream}}",
                )
            ],
        ),
        Panel(
            "Reasons to doubt the clusters",
            "Of the newest publication; weald status names them, with what to try.",
            "short",
            [Query(largest("weald_publication_warnings", "stream"), "{{stream}}")],
        ),
        Panel(
            "Births",
            "Clusters born per second. A burst marks something new in the data.",
            "cps",
            [
                Query(
                    counter_rate("weald_lineage_events_total", "stream", 'kind="birth"'),
                    "{{stream}}",
                )
            ],
        ),
    ],
)

DATA_QUALITY: Final = Dashboard(
    "weald-data-quality",
    "Weald: data quality",
    "Dead letters by reason, duplicates, the ledger, age and novelty of the data.",
    [_BAD, _LEDGER, _DRIFT],
)
