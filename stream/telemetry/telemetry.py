"""How the engine is observed: labelled steps, numbers for the metrics, reasons for the health."""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from weald.monitoring.health import Health
from weald.monitoring.metrics import Metrics
from weald.storage.commit.commit import (
    BatchCommit,
    Certainty,
    PublicationRow,
    Reassignment,
    WholeShown,
)
from weald.storage.commit.parts import whole_written_by
from weald.storage.sql.failpoints import failpoint
from weald.stream.engine.writer import Writer
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.model.shard import Shard
from weald.stream.record.pending_batch import Held
from weald.stream.record.record import TopicPartition

from .mixing import Mixing
from .novelty import Novelty
from .outages import SECONDS_A_LINE, Outages

__all__ = ["Telemetry"]

_log = logging.getLogger(__name__)

# Steps that are labelled but have no histogram of their own.
UNTIMED = frozenset({"dead_letters", "courtesy"})


class Telemetry:
    """Tells metrics and health what the engine does; every method takes what already exists.

    Parameters
    ----------
    metrics : Metrics
    health : Health
    clock : callable
        Wall clock in epoch seconds.
    """

    def __init__(
        self, metrics: Metrics, health: Health, clock: Callable[[], float] = time.time
    ) -> None:
        self.metrics = metrics
        self.health = health
        self._clock = clock
        # Clusters are also born between two publications; they are counted with the next one.
        self._untold: Counter[str] = Counter()
        self._phase = ("starting", 0)
        self._mixing = Mixing()
        self._novelty = Novelty()
        self._outages = Outages()
        self._published_told_at = -math.inf
        # Of the stream of which this one is the first shard, once it has published.
        self._whole: Metrics | None = None
        # Broker's time of the last committed record of each partition.
        self._newest: dict[TopicPartition, float] = {}
        # Records of each partition that had not been polled, and those of the commit under way.
        self._lag: dict[TopicPartition, int] = {}
        self._under_way: dict[TopicPartition, int] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time one labelled step of the journey."""
        failpoint(name)
        began = time.perf_counter()
        yield
        seconds = time.perf_counter() - began
        if name not in UNTIMED:
            self.metrics.step_seconds(name, seconds)
        self.health.progress()
        failpoint(f"{name}.done")

    def phase(self, phase: str, assigned: int) -> None:
        """Tell in which phase the engine is and how many partitions it owns."""
        self._phase = (phase, assigned)
        self.metrics.phase(phase)
        self.metrics.partitions(assigned, 0)
        self._lag, self._under_way = {}, {}
        if assigned == 0 and self._whole is not None:
            self._whole.forget()
            self._whole = None
        if phase in {"running", "warming_up", "standby"}:
            self.health.satisfied("source", f"{assigned} partitions" if assigned else "standby")
            self.health.satisfied("model", phase.replace("_", " "))
        elif phase == "replaying":
            self.health.unsatisfied("model", "state is being loaded and replayed")

    def paused(self) -> None:
        """Tell that the partitions are held back while something is away."""
        _, assigned = self._phase
        self.metrics.phase("paused")
        self.metrics.partitions(assigned, assigned)
        for place, n in self._under_way.items():
            self._tell_lag(place, self._lag.get(place, 0) + n)

    def resumed(self) -> None:
        """Tell that they flow again."""
        phase, assigned = self._phase
        self.metrics.phase(phase)
        self.metrics.partitions(assigned, 0)

    def away(self, target: str, reason: str) -> None:
        """Tell that something did not answer and is tried again."""
        self.metrics.retry(target)
        self._outages.away(target, reason)
        if target == "redis":
            self.metrics.redis_publish_failed()
        self.health.unsatisfied({"kafka": "source"}.get(target, target), reason)

    def back(self, target: str) -> None:
        """Tell that something answers."""
        self._outages.back(target)
        self.health.satisfied({"kafka": "source"}.get(target, target), "answers")

    def committing(self, commit: BatchCommit) -> None:
        """Note which records SQL has once it has this commit; they are lag if it has to wait."""
        self._under_way = {
            TopicPartition(advance.topic, advance.partition): advance.n_received
            for advance in commit.offsets
        }

    def arriving(self, shard: Shard, held: Held) -> None:
        """Tell how new observations look that are about to be inserted."""
        judged = len(held) and shard.judges_arrivals
        scores = self._novelty.score(shard, held.batch.values) if judged else None
        if scores is not None:
            self.metrics.scored(*scores)

    def committed(
        self,
        commit: BatchCommit,
        held: Held,
        applied: BatchOutcome,
        *,
        timed: bool,
        at: float,
    ) -> None:
        """Count everything that one commit carried.

        Parameters
        ----------
        commit : BatchCommit
        held : Held
            The records behind it.
        applied : BatchOutcome
            What the model made of them.
        timed : bool
            Whether records tell their own time.
        at : float
            When SQL held it, in seconds since the epoch.
        """
        metrics = self.metrics
        self._under_way = {}
        advances = commit.offsets
        metrics.batch_polled(sum(advance.n_received for advance in advances))
        metrics.duplicates(sum(advance.n_duplicate for advance in advances))
        for reason, n in Counter(letter.reason for letter in commit.dead_letters).items():
            metrics.dead_letter(reason, n)
        n = sum(advance.n_inserted for advance in advances)
        metrics.batch_decoded(n)
        metrics.batch_committed(
            n,
            since_broker=at - held.broker_times(),
            since_event=at - held.event_times() if n and timed else (),
        )
        self._modelled(applied)
        if commit.whole is not None:
            self._judged(commit.stream, commit.whole)
        self.health.satisfied("sql", "the last transaction went through")

    def _modelled(self, applied: BatchOutcome) -> None:
        refinements = zip(applied.refinements, applied.n_rounds, applied.n_refined, strict=True)
        for refinement, rounds, n in refinements:
            log_joint = refinement.log_joint_after
            self.metrics.refined(rounds, log_joint, refinement.n_blocks)
            self._mixing.add(log_joint, n, refinement.n_blocks)
            for kernel in refinement.kernels:
                self.metrics.kernel_round(
                    kernel.name,
                    kernel.proposed,
                    kernel.accepted,
                    kernel.seconds,
                    kernel.log_joint_gain,
                )
        for lease in applied.leases:
            if lease.role is not None and lease.proposed is not None:
                self.metrics.role_lease(
                    lease.role,
                    lease.proposed,
                    lease.accepted or 0,
                    lease.processor_seconds or 0.0,
                    lease.squared_jump or 0.0,
                )
        for name, value in self._mixing.rhat().items() if applied.refinements else ():
            self.metrics.mixing(name, value)
        self._untold.update(event.kind for event in applied.lineage)
        for certainty, row in zip(applied.certainties, applied.publications, strict=True):
            self.metrics.certainty(*certainty.means)
            self._tell_published(row)
            self.metrics.judged(_n_groups(certainty), len(row.warnings or ()))
        for change in applied.reassigned:
            if isinstance(change, Reassignment):
                rows = len(change.seq) + len(change.bundle)
                self.metrics.published(dict(self._untold), rows)
                self._untold.clear()

    def _judged(self, stream: str, told: WholeShown) -> None:
        """Tell what all shards publish, how sure they are of it, and what speaks against it."""
        name = whole_written_by(stream)
        if name is None or told.certainty is None:
            return
        whole = self._whole = self._whole or self.metrics.beside(name, counts=False)
        if told.publication is not None:
            # Which observations moved, and what arrivals began, each shard counts for itself.
            whole.published(Counter(event.kind for event in told.lineage), 0)
            whole.certainty(*told.certainty.means)
        if told.judged is not None:
            whole.judged(_n_groups(told.certainty), len(told.judged[1]))

    def _tell_published(self, row: PublicationRow) -> None:
        """Log a publication, at most one a minute."""
        now = self._clock()
        if now - self._published_told_at >= SECONDS_A_LINE:
            self._published_told_at = now
            _log.info(
                "publication %d: %d clusters of %d observations",
                row.number,
                row.n_clusters,
                row.n_observations,
            )

    def workers(self, alive: Mapping[str, int]) -> None:
        """Tell how many workers of each role were heard of lately."""
        self.metrics.workers(alive)

    def leases(self, outcome: str, n: int) -> None:
        """Count leases that were closed."""
        self.metrics.leases(outcome, n)

    def lease_bytes(self, n: int) -> None:
        """Count bytes that leases and their rows put into Redis."""
        self.metrics.lease_bytes(n)

    def late_return(self) -> None:
        """Count a return that was dropped."""
        self.metrics.late_return()

    def staleness(self, seconds: float, arrivals: int) -> None:
        """Tell how long a round was out, and how many observations came meanwhile."""
        self.metrics.lease_round(seconds, arrivals)

    def standing(self, writer: Writer, lag: Mapping[TopicPartition, int], held: Held) -> None:
        """Tell how large the model is, and how far SQL is behind each partition's end."""
        if writer.shard is not None and writer.spec is not None:
            n = writer.shard.atom_table.n_observations
            self.metrics.model_size(n, len(writer.shard.table))
            chain = writer.shard.chain
            self.metrics.unsaved(writer.unsaved)
            self.metrics.compaction(chain.n_atoms, chain.disruption, writer.shard.bounding.n_early)
            prior = writer.shard.chain.prior.parameters()
            self.metrics.model(writer.spec.family, writer.spec.prior, prior)
        self._newest |= held.newest()
        self.waiting(lag, 0)

    def waiting(self, lag: Mapping[TopicPartition, int], n_held: int) -> None:
        """Tell how far SQL is behind while nothing is committed.

        Parameters
        ----------
        lag : mapping of TopicPartition to int
            Records that SQL does not hold yet.
        n_held : int
            Observations that wait in memory.
        """
        self.metrics.held(n_held)
        self._lag = dict(lag)
        for place, records in lag.items():
            self._tell_lag(place, records)

    def _tell_lag(self, place: TopicPartition, records: int) -> None:
        now = self._clock()
        age = max(now - self._newest.get(place, now), 0.0) if records else 0.0
        self.metrics.partition_lag(place.topic, place.partition, records, age)


def _n_groups(certainty: Certainty) -> int | None:
    return None if certainty.group is None else len(np.unique(certainty.group))
