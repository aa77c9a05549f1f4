"""Metrics to which everything has happened that can happen, for the tests of what reads them."""

from weald.monitoring.metrics import Metrics
from weald.monitoring.names import LINEAGE_KINDS, REBALANCE_KINDS, RETRY_TARGETS, STEPS

REASONS = ("not_json", "missing_field")


def busy_metrics(stream: str) -> Metrics:
    """Metrics of a stream that has seen every event once."""
    metrics = Metrics(stream, reasons=REASONS, version="0.0.0")
    live(metrics)
    return metrics


def live(metrics: Metrics) -> None:
    """Let everything happen once more."""
    _journey(metrics)
    _source(metrics)
    _refinement(metrics)
    _storage(metrics)


def _journey(metrics: Metrics) -> None:
    metrics.phase("running")
    metrics.batch_polled(110)
    metrics.batch_decoded(105)
    metrics.dead_letter("not_json", 5)
    metrics.duplicates(5)
    metrics.observations_replayed(10)
    for step in STEPS:
        metrics.step_seconds(step, 0.02)
    metrics.batch_committed(100, since_broker=[0.2] * 100, since_event=[3.0] * 100)


def _source(metrics: Metrics) -> None:
    metrics.partitions(assigned=2, paused=0)
    for kind in REBALANCE_KINDS:
        metrics.rebalance(kind)
    for partition in range(2):
        metrics.held(3)
        metrics.certainty(0.9, 0.8)
        metrics.partition_lag("events", partition, records=12, seconds=0.4)


def _refinement(metrics: Metrics) -> None:
    metrics.kernel_round("gibbs", 100, 30, 0.01, 4.0)
    metrics.kernel_round("tgmcmc", 20, 3, 0.02, -0.5)
    metrics.refined(1, log_joint=-1234.5, clusters=14)
    metrics.model("NormalInverseWishart", "dp", {"alpha": 1.2, "learn": True, "g": None})
    metrics.mixing("log_joint", 1.02)
    metrics.mixing("clusters", 1.0)
    metrics.scored(16, 1, 0.08)
    metrics.workers({"all": 2, "subc": 1})
    metrics.role_lease("subc", 200, 14, 0.5, 0.002)
    metrics.leases("adopted", 2)
    metrics.lease_bytes(20_000)
    metrics.late_return()
    metrics.lease_round(seconds=0.8, arrivals=12)
    metrics.published(dict.fromkeys(LINEAGE_KINDS, 1), reassigned=7)
    metrics.model_size(observations=1000, clusters=13)
    metrics.judged(groups=4, warnings=0)


def _storage(metrics: Metrics) -> None:
    metrics.sql_transaction(0.004)
    for target in RETRY_TARGETS:
        metrics.retry(target)
    metrics.fenced()
    metrics.redis_published(13)
    metrics.redis_publish_failed()
    metrics.snapshot(4096)
    metrics.unsaved(120)
    metrics.redis_size(2048)
