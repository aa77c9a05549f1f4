"""What the engine is measured by: one object, one method per thing that happens.

`Metrics` is told numbers and never asks for objects, so this room imports no other. Names, units
and meanings are in `weald.monitoring.names`.
"""

import platform
import time
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Self

from numpy.typing import ArrayLike
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from .histogram import BatchHistogram
from .names import (
    LEASE_OUTCOMES,
    LINEAGE_KINDS,
    METRICS,
    PHASES,
    REBALANCE_KINDS,
    RETRY_TARGETS,
    STEPS,
    TRACES,
)

__all__ = ["Metrics"]

# Gauges of the process and of what it did last; all others are for the stream's owner to tell.
_OF_THE_PROCESS = frozenset(
    {
        "weald_build_info",
        "weald_phase",
        "weald_assigned_partitions",
        "weald_paused_partitions",
        "weald_last_commit_timestamp_seconds",
        "weald_last_refinement_timestamp_seconds",
        "weald_last_publication_timestamp_seconds",
        "weald_last_snapshot_timestamp_seconds",
    }
)

OTHER = "other"
EMPTY_AT_START = (
    "weald_assigned_partitions",
    "weald_paused_partitions",
    "weald_clusters",
    "weald_observations",
    "weald_atoms",
    "weald_estimated_disruption",
    "weald_early_compactions",
    # Where nothing is ever leased, nothing is ever out and nothing comes meanwhile.
    "weald_lease_round_seconds",
    "weald_lease_round_arrivals",
)


class Metrics:
    """All metrics of one stream in one process; a shard is a stream of its own here.

    Every method is cheap, thread-safe, and takes counts (since the last call) or seconds.
    Label values known beforehand exist from the start at zero: a rate then sees their first
    increase.

    Parameters
    ----------
    stream : str
        Value of the label ``stream``.
    registry : CollectorRegistry, optional
        Where to register; a new one by default, never the library's process-wide one.
    reasons : iterable of str
        Codes of dead letters; another code is counted under ``other``, so that data cannot
        create label values.
    version : str
        Version shown by ``weald_build_info``.
    clock : callable
        Wall clock in epoch seconds.
    """

    def __init__(
        self,
        stream: str,
        registry: CollectorRegistry | None = None,
        *,
        reasons: Iterable[str] = (),
        version: str = "unknown",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.registry = CollectorRegistry() if registry is None else registry
        self._clock = clock
        self._reasons = frozenset(reasons)
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        self._version = version
        self._register()
        ProcessCollector(registry=self.registry)
        self._tell_of(stream)

    def beside(self, stream: str, *, counts: bool = True) -> Self:
        """Return those of another stream of this process, in the same registry.

        Without ``counts`` those of a stream whose shards count, each for itself.
        """
        other = copy(self)
        other._tell_of(stream, counts=counts)  # noqa: SLF001 - of this very class
        return other

    def _tell_of(self, stream: str, *, counts: bool = True) -> None:
        self._stream = stream
        self._counts = counts
        self._model: tuple[str, str] | None = None
        # Gauges of the stream that are told, with their labels.
        self._told: set[tuple[str, tuple[str, ...]]] = set()
        # By this the dashboards know which streams there are.
        self._set("weald_build_info", 1.0, self._version, platform.python_version())
        if counts:
            self._start_at_zero()

    def _register(self) -> None:
        for metric in METRICS:
            labels = ("stream", *metric.labels)
            if metric.kind == "counter":
                self._counters[metric.name] = Counter(
                    metric.name, metric.help, labels, registry=self.registry
                )
            elif metric.kind == "gauge":
                self._gauges[metric.name] = Gauge(
                    metric.name, metric.help, labels, registry=self.registry
                )
            elif metric.name == "weald_assignment_latency_seconds":
                self._latency = BatchHistogram(
                    metric.name, metric.help, labels, metric.buckets, self.registry
                )
            else:
                self._histograms[metric.name] = Histogram(
                    metric.name,
                    metric.help,
                    labels,
                    buckets=metric.buckets,
                    registry=self.registry,
                )

    def _start_at_zero(self) -> None:
        known = {
            "weald_dead_letters_total": (*sorted(self._reasons), OTHER),
            "weald_leases_total": LEASE_OUTCOMES,
            "weald_lineage_events_total": LINEAGE_KINDS,
            "weald_retries_total": RETRY_TARGETS,
            "weald_rebalances_total": REBALANCE_KINDS,
        }
        for metric in METRICS:
            if metric.kind == "counter" and not metric.labels:
                self._add(metric.name, 0)
        # A time, a log joint and a size do not exist before the first one; a count of zero does.
        for name in EMPTY_AT_START:
            self._set(name, 0.0)
        for name, values in known.items():
            for value in values:
                self._add(name, 0, value)
        for step in STEPS:
            self._histograms["weald_step_seconds"].labels(self._stream, step)
        for since in ("event", "broker"):
            self._latency.observe([], (self._stream, since))
        self._histograms["weald_sql_transaction_seconds"].labels(self._stream)
        self.phase("starting")

    def _add(self, name: str, n: float, *labels: str) -> None:
        self._counters[name].labels(self._stream, *labels).inc(n)

    def _set(self, name: str, value: float, *labels: str) -> None:
        self._gauges[name].labels(self._stream, *labels).set(value)
        if name not in _OF_THE_PROCESS:
            self._told.add((name, labels))

    def forget(self) -> None:
        """Tell no longer how the stream stands, which is for another process to tell now."""
        self._model = None
        while self._told:
            name, labels = self._told.pop()
            self._gauges[name].remove(self._stream, *labels)
        for name in EMPTY_AT_START if self._counts else ():
            self._set(name, 0.0)

    # What runs.

    def model(self, family: str, prior: str, hyperparameters: Mapping[str, object]) -> None:
        """Name the family and the partition prior of the stream.

        Parameters
        ----------
        family, prior : str
        hyperparameters : mapping of str to object
            What the prior stands at in the chain, by name; only numbers are kept.
        """
        if self._model != (family, prior):
            if self._model is not None:
                self._gauges["weald_model_info"].remove(self._stream, *self._model)
                self._told.discard(("weald_model_info", self._model))
            self._model = (family, prior)
            self._set("weald_model_info", 1.0, family, prior)
        for name, value in hyperparameters.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                self._set("weald_hyperparameter", value, name)

    def phase(self, phase: str) -> None:
        """Enter one of `names.PHASES`."""
        _check("phase", phase, PHASES)
        for name in PHASES:
            self._set("weald_phase", float(name == phase), name)

    # A record's journey.

    def batch_polled(self, n: int) -> None:
        """Count records received from the source."""
        self._add("weald_records_polled_total", n)

    def batch_decoded(self, n: int) -> None:
        """Count records that became observations."""
        self._add("weald_records_decoded_total", n)

    def dead_letter(self, reason: str, n: int = 1) -> None:
        """Count records set aside, by the code of the reason."""
        self._add("weald_dead_letters_total", n, reason if reason in self._reasons else OTHER)

    def duplicates(self, n: int) -> None:
        """Count records that SQL already held."""
        self._add("weald_duplicates_total", n)

    def observations_replayed(self, n: int) -> None:
        """Count observations replayed from SQL at a start."""
        self._add("weald_observations_replayed_total", n)

    def batch_committed(
        self, inserted: int, *, since_broker: ArrayLike = (), since_event: ArrayLike = ()
    ) -> None:
        """Count one committed batch.

        Parameters
        ----------
        inserted : int
            Observations in it.
        since_broker, since_event : array_like of float64, shape (n,)
            Seconds from each record's broker timestamp, and from its own time, to the commit.
            Leave one out where the record does not carry it.
        """
        self._add("weald_observations_inserted_total", inserted)
        self._add("weald_batches_total", 1)
        self._latency.observe(since_broker, (self._stream, "broker"))
        self._latency.observe(since_event, (self._stream, "event"))
        self._set("weald_last_commit_timestamp_seconds", self._clock())

    def step_seconds(self, step: str, seconds: float) -> None:
        """Time one step of one batch, one of `names.STEPS`."""
        _check("step", step, STEPS)
        self._histograms["weald_step_seconds"].labels(self._stream, step).observe(seconds)

    def scored(self, n: int, anomalies: int, drift: float | None) -> None:
        """Count arrivals that were judged by those before them.

        Parameters
        ----------
        n, anomalies : int
            How many, and how many of them surprise more than nearly all before them.
        drift : float or None
            Distance of the newest surprises to those before, 0 to 1; None while not known.
        """
        self._add("weald_scored_observations_total", n)
        self._add("weald_anomalies_total", anomalies)
        if drift is not None:
            self._set("weald_drift_ratio", drift)

    # The source.

    def partitions(self, assigned: int, paused: int) -> None:
        """Tell how many partitions are owned, and how many of those are paused.

        With none owned all that is told of the stream is forgotten.
        """
        self._set("weald_assigned_partitions", assigned)
        self._set("weald_paused_partitions", paused)
        if assigned == 0:
            self.forget()

    def rebalance(self, kind: str) -> None:
        """Count one change of ownership, one of `names.REBALANCE_KINDS`."""
        _check("rebalance", kind, REBALANCE_KINDS)
        self._add("weald_rebalances_total", 1, kind)

    def judged(self, groups: int | None, warnings: int) -> None:
        """Tell how many groups a publication has, and how many reasons not to believe it.

        A network has clusters alone, and no number of groups.
        """
        if groups is not None:
            self._set("weald_groups", groups)
        self._set("weald_publication_warnings", warnings)

    def certainty(self, probability: float, stability: float) -> None:
        """Tell how sure the chain's draws are of a publication, means over its observations."""
        self._set("weald_membership_probability_ratio", probability)
        self._set("weald_stability_ratio", stability)

    def held(self, observations: int) -> None:
        """Tell how many observations wait in memory, as those of a warm-up do."""
        self._set("weald_held_observations", observations)

    def partition_lag(self, topic: str, partition: int, records: int, seconds: float) -> None:
        """Tell how far SQL is behind the end of a partition.

        Parameters
        ----------
        topic : str
        partition : int
        records : int
            End offset less the next offset in SQL.
        seconds : float
            Age of the last committed record; 0 where there is no lag.
        """
        place = topic, str(partition)
        self._set("weald_partition_lag_records", records, *place)
        self._set("weald_partition_lag_seconds", seconds, *place)

    # Refinement.

    def refined(self, rounds: int, log_joint: float, clusters: int) -> None:
        """Count the rounds of one refinement and tell where the chain stands after it."""
        self._add("weald_refinement_rounds_total", rounds)
        self._set("weald_log_joint_nats", log_joint)
        self._set("weald_chain_clusters", clusters)
        self._set("weald_last_refinement_timestamp_seconds", self._clock())

    def kernel_round(
        self, kernel: str, proposed: int, accepted: int, seconds: float, gain: float
    ) -> None:
        """Count what one kernel did in one refinement; `gain` is its change of log joint, nats."""
        self._add("weald_kernel_proposed_total", proposed, kernel)
        self._add("weald_kernel_accepted_total", accepted, kernel)
        self._add("weald_kernel_seconds_total", seconds, kernel)
        self._add("weald_kernel_log_joint_gain_nats_total", max(gain, 0.0), kernel)
        self._add("weald_kernel_log_joint_loss_nats_total", max(-gain, 0.0), kernel)

    def mixing(self, trace: str, rhat: float) -> None:
        """Tell the R-hat of the halves of one of `names.TRACES`."""
        _check("trace", trace, TRACES)
        self._set("weald_split_rhat_ratio", rhat, trace)

    # Refinement by workers.

    def workers(self, alive: Mapping[str, int]) -> None:
        """Tell how many workers of each role were heard of lately."""
        for role, n in alive.items():
            self._set("weald_workers", n, role)

    def role_lease(
        self, role: str, proposed: int, accepted: int, seconds: float, squared_jump: float
    ) -> None:
        """Count what the kernels of one lease came to, for the role that it was meant for.

        ``seconds`` are those of processors; the jump is that of the sum of squared shares.
        """
        self._add("weald_role_leases_total", 1, role)
        self._add("weald_role_proposed_total", proposed, role)
        self._add("weald_role_accepted_total", accepted, role)
        self._add("weald_role_processor_seconds_total", seconds, role)
        self._add("weald_role_squared_jump_total", squared_jump, role)

    def leases(self, outcome: str, n: int) -> None:
        """Count leases that were closed; `outcome` is one of `names.LEASE_OUTCOMES`."""
        _check("lease outcome", outcome, LEASE_OUTCOMES)
        self._add("weald_leases_total", n, outcome)

    def lease_bytes(self, n: int) -> None:
        """Count bytes that leases and their rows put into Redis."""
        self._add("weald_lease_bytes_total", n)

    def late_return(self) -> None:
        """Count a return that was dropped."""
        self._add("weald_late_returns_total", 1)

    def lease_round(self, seconds: float, arrivals: int) -> None:
        """Tell how long the last round was out, and how many observations came meanwhile."""
        self._set("weald_lease_round_seconds", seconds)
        self._set("weald_lease_round_arrivals", arrivals)

    # Publication.

    def published(self, events: Mapping[str, int], reassigned: int) -> None:
        """Count one publication.

        Parameters
        ----------
        events : mapping of str to int
            Lineage events by kind, kinds of `names.LINEAGE_KINDS`.
        reassigned : int
            Observations whose cluster it changed.
        """
        self._add("weald_publications_total", 1)
        for kind, n in events.items():
            _check("lineage event", kind, LINEAGE_KINDS)
            self._add("weald_lineage_events_total", n, kind)
        self._add("weald_reassigned_observations_total", reassigned)
        self._set("weald_last_publication_timestamp_seconds", self._clock())

    def model_size(self, observations: int, clusters: int) -> None:
        """Tell how many observations the model holds and how many clusters are shown."""
        self._set("weald_observations", observations)
        self._set("weald_clusters", clusters)

    def compaction(self, atoms: int, disruption: float, early: int) -> None:
        """Tell how many atoms there are, and what it costs that some are compacted.

        Parameters
        ----------
        atoms : int
        disruption : float
            Estimated total variation, 0 to 1.
        early : int
            Atoms saved although the rule of compaction would have had them wait.
        """
        self._set("weald_atoms", atoms)
        self._set("weald_estimated_disruption", disruption)
        self._set("weald_early_compactions", early)

    # Storage.

    def sql_transaction(self, seconds: float) -> None:
        """Time one SQL transaction."""
        self._histograms["weald_sql_transaction_seconds"].labels(self._stream).observe(seconds)

    def retry(self, target: str) -> None:
        """Count one repeated try, by what was away: one of `names.RETRY_TARGETS`."""
        _check("target of a retry", target, RETRY_TARGETS)
        self._add("weald_retries_total", 1, target)

    def fenced(self) -> None:
        """Count one commit refused because a newer owner exists."""
        self._add("weald_fenced_total", 1)

    def redis_published(self, clusters: int) -> None:
        """Count cluster statistics sent to Redis."""
        self._add("weald_redis_published_clusters_total", clusters)

    def redis_publish_failed(self) -> None:
        """Count one failed send to Redis."""
        self._add("weald_redis_publish_failures_total", 1)

    def redis_size(self, size_bytes: int) -> None:
        """Tell the memory that the stream's statistics take in Redis."""
        self._set("weald_redis_statistics_bytes", size_bytes)

    def unsaved(self, observations: int) -> None:
        """Tell how many observations came since the last snapshot."""
        self._set("weald_unsaved_observations", observations)

    def snapshot(self, size_bytes: int) -> None:
        """Count one committed snapshot."""
        self._add("weald_snapshots_total", 1)
        self._set("weald_last_snapshot_size_bytes", size_bytes)
        self._set("weald_last_snapshot_timestamp_seconds", self._clock())


def _check(noun: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"unknown {noun} {value!r}; one of {', '.join(known)}")
