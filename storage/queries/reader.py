"""The questions over SQL, each in a transaction of its own that sees one moment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from weald.storage.commit.commit import (
    AdoptionRow,
    ClusterRow,
    DeadLetterRow,
    LeaseRow,
    LineageRow,
    ModelRow,
    ObservationBlock,
    PublicationRow,
    RoundRow,
    Snapshot,
    StreamSpec,
)
from weald.storage.commit.log_marks import LogReplacement
from weald.storage.commit.refinement_rows import RoleRow
from weald.storage.commit.shard_rows import ShardMessageRow, ShardRoundRow
from weald.storage.errors import StreamNotFound
from weald.storage.settings import StorageSettings
from weald.storage.sql import bundles
from weald.storage.sql.database import looking, make_engine, reading, require_head
from weald.storage.sql.failures import translated
from weald.storage.sql.schema import streams
from weald.storage.writing import fence, leases, shard_rounds

from . import assignments, dead_letters, history, overview, replay, trends
from .answers import (
    LedgerRow,
    MembershipCertainty,
    ObservationRow,
    ShardStatus,
    Shown,
    SnapshotInfo,
    StreamPosition,
    StreamStatus,
)
from .base import AsOf, Letters
from .certainty import certainty_of

__all__ = ["SqlReader", "spec_of"]


def spec_of(row: Any) -> StreamSpec:
    """Return the spec that a row of ``streams`` holds."""
    return StreamSpec(
        name=row.name,
        family=row.family,
        family_params=row.family_params,
        prior=row.prior,
        prior_params=row.prior_params,
        schema=row.record_schema,
        seed=row.seed,
        transformation=row.transformation,
        seen_as=row.seen_as,
        hyperprior=row.hyperprior,
        resolution=row.resolution,
        moves=row.moves,
        log_steps=row.log_steps,
        shards=row.shards,
        shard=row.shard,
    )


class SqlReader:
    """Answers from SQLite or PostgreSQL, each call in one transaction that sees one moment.

    Parameters
    ----------
    settings
        Which database, and how patient to be.

    Raises
    ------
    SchemaMismatch
        If the database is not at this program's revision; the message names the command.
    """

    _readonly = True

    def __init__(self, settings: StorageSettings) -> None:
        self._settings = settings
        self._ids: dict[str, int] = {}
        self._engine = make_engine(settings, readonly=self._readonly)
        try:
            require_head(settings, self._engine)
        except BaseException:
            self._engine.dispose()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        with translated(), reading(self._engine).begin() as connection:
            yield connection

    @contextmanager
    def _of(self, stream: str) -> Iterator[tuple[sa.Connection, int]]:
        with self._transaction() as connection:
            yield connection, self._id_of(connection, stream)

    @contextmanager
    def _glancing(self, stream: str) -> Iterator[tuple[sa.Connection, int]]:
        """For one statement."""
        with translated(), looking(self._engine).begin() as connection:
            yield connection, self._id_of(connection, stream)

    def _id_of(self, connection: sa.Connection, stream: str) -> int:
        if stream not in self._ids:
            found = connection.execute(
                sa.select(streams.c.id).where(streams.c.name == stream)
            ).scalar_one_or_none()
            if found is None:
                raise StreamNotFound(f"stream {stream!r} does not exist")
            self._ids[stream] = found
        return self._ids[stream]

    def streams(self) -> list[str]:
        """Return the names of all streams, sorted; parts of streams are none of them."""
        named = sa.select(streams.c.name).where(streams.c.part_of.is_(None))
        with self._transaction() as connection:
            return sorted(connection.execute(named).scalars())

    def parts(self, stream: str) -> dict[int, str]:
        """Return the names of the stream's shards that have begun, by their numbers."""
        with self._of(stream) as (connection, stream_id):
            named = sa.select(streams.c.shard, streams.c.name).where(streams.c.part_of == stream_id)
            rows = connection.execute(named.order_by(streams.c.shard))
            return {row.shard: row.name for row in rows}

    def spec(self, stream: str) -> StreamSpec:
        """Return what the stream is."""
        with self._of(stream) as (connection, stream_id):
            row = connection.execute(sa.select(streams).where(streams.c.id == stream_id)).one()
        return spec_of(row)

    def position(self, stream: str) -> StreamPosition:
        """Return where the stream stands, without claiming it."""
        with self._of(stream) as (connection, stream_id):
            return fence.position(connection, stream_id)

    def offsets(self, stream: str) -> dict[tuple[str, int], int]:
        """Return the next offset to read, by (topic, partition)."""
        return self.position(stream).offsets

    def newest_snapshot(self, stream: str) -> Snapshot | None:
        """Return the newest snapshot that is whole, or None; damaged ones are logged and passed."""
        with self._of(stream) as (connection, stream_id):
            return replay.newest_snapshot(connection, stream_id)

    def newest_of_keys(self, stream: str, keys: Collection[str]) -> dict[str, int]:
        """Return the number of the newest observation of each of the keys that one has."""
        with self._of(stream) as (connection, stream_id):
            return assignments.newest_of_keys(connection, stream_id, keys)

    def snapshot(self, stream: str, number: int) -> Snapshot | None:
        """Return the snapshot of that number, or None.

        Raises
        ------
        SnapshotCorrupt
            If it is damaged.
        """
        with self._of(stream) as (connection, stream_id):
            return replay.snapshot_numbered(connection, stream_id, number)

    def shown(self, stream: str, publication: int, after_seq: int, limit: int) -> Shown:
        """Return what a publication shows of the next observations after ``after_seq``, in order.

        One that came later has the cluster that it arrived in. No observations mean the end.
        """
        with self._of(stream) as (connection, stream_id):
            return assignments.shown(connection, stream_id, publication, after_seq, limit)

    def snapshots(self, stream: str) -> list[SnapshotInfo]:
        """Return the stored snapshots, newest first."""
        with self._of(stream) as (connection, stream_id):
            return replay.snapshot_infos(connection, stream_id)

    def snapshot_bytes(self, stream: str) -> int:
        """Return the length of the newest stored snapshot; 0 where there is none."""
        with self._of(stream) as (connection, stream_id):
            return replay.snapshot_bytes(connection, stream_id)

    def observations(self, stream: str, after_seq: int, limit: int) -> ObservationBlock | None:
        """Return the next observations after ``after_seq`` in order, at most ``limit``, for replay.

        A block has one topic, so it may be shorter than ``limit``; only None means the end.
        """
        with self._of(stream) as (connection, stream_id):
            return replay.observation_block(connection, stream_id, after_seq, limit)

    def bundled(self, stream: str, bundle: int) -> NDArray[np.int64]:
        """Return the numbers of the observations in a bundle, rising."""
        with self._of(stream) as (connection, stream_id):
            return bundles.bundled(connection, stream_id, bundle)

    def values_of(
        self, stream: str, seqs: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return values (n, d) and event times (n) of observations by number, those that exist."""
        with self._of(stream) as (connection, stream_id):
            return bundles.values_of(connection, stream_id, seqs)

    def status(self, stream: str) -> StreamStatus:
        """Return the stream at a glance."""
        with self._of(stream) as (connection, stream_id):
            return overview.status(connection, stream_id)

    def shards(self, stream: str) -> list[ShardStatus]:
        """Return the shards of the stream that have begun, in order; of another stream, none."""
        with self._of(stream) as (connection, stream_id):
            return overview.shards(connection, stream_id)

    def ledger(self, stream: str) -> list[LedgerRow]:
        """Return the account of each partition."""
        with self._of(stream) as (connection, stream_id):
            return overview.ledger(connection, stream_id)

    def clusters(
        self, stream: str, *, include_retired: bool = False, limit: int | None = None
    ) -> list[ClusterRow]:
        """Return the clusters, largest first."""
        with self._of(stream) as (connection, stream_id):
            return overview.cluster_rows(
                connection, stream_id, include_retired=include_retired, limit=limit
            )

    def cluster(self, stream: str, cluster: int) -> ClusterRow | None:
        """Return one cluster, retired or not, or None if that id was never used."""
        with self._of(stream) as (connection, stream_id):
            found = overview.cluster_rows(connection, stream_id, cluster=cluster)
        return found[0] if found else None

    def members(self, stream: str, cluster: int, *, limit: int = 20) -> list[ObservationRow]:
        """Return the newest observations that the cluster has now."""
        with self._of(stream) as (connection, stream_id):
            return assignments.members(connection, stream_id, cluster, limit)

    def assignments(
        self, stream: str, keys: Iterable[str], *, as_of: AsOf | None = None, limit: int = 1
    ) -> list[ObservationRow]:
        """Return for each key its newest ``limit`` observations, with the cluster now or then."""
        with self._of(stream) as (connection, stream_id):
            return assignments.assignments(connection, stream_id, keys, as_of, limit)

    def changes(self, stream: str, *, after: int = 0) -> NDArray[np.int64]:
        """Return publication, seq, old and new cluster, int64[n, 4], of each change after one."""
        with self._of(stream) as (connection, stream_id):
            return assignments.changes(connection, stream_id, after)

    def newest(self, stream: str, *, limit: int) -> list[ObservationRow]:
        """Return the newest observations, newest first."""
        with self._of(stream) as (connection, stream_id):
            return assignments.newest(connection, stream_id, limit)

    def observed(self, stream: str, seqs: Sequence[int]) -> list[ObservationRow]:
        """Return the observations with these numbers, oldest first."""
        with self._of(stream) as (connection, stream_id):
            return assignments.observed(connection, stream_id, seqs)

    def certainty(self, stream: str, seqs: Iterable[int]) -> dict[int, MembershipCertainty]:
        """Return how sure the newest publication is of these observations, by number."""
        with self._of(stream) as (connection, stream_id):
            return certainty_of(connection, stream_id, seqs)

    def member_seqs(self, stream: str, cluster: int) -> list[int]:
        """Return the numbers of all observations that the cluster has now, in order."""
        with self._of(stream) as (connection, stream_id):
            return trends.member_seqs(connection, stream_id, cluster)

    def member_values(self, stream: str, cluster: int) -> NDArray[np.float64] | None:
        """Return the values (n, d) of all observations that the cluster has now; None of none."""
        with self._of(stream) as (connection, stream_id):
            return trends.member_values(connection, stream_id, cluster)

    def births(self, stream: str) -> dict[int, float]:
        """Return when each cluster was first told of, seconds since 1970."""
        with self._of(stream) as (connection, stream_id):
            return trends.births(connection, stream_id)

    def arrivals(self, stream: str, *, newest: int) -> dict[int, int]:
        """Return how many of the ``newest`` observations each cluster has now."""
        with self._of(stream) as (connection, stream_id):
            return trends.arrivals(connection, stream_id, newest)

    def last_cluster(self, stream: str, *, multiple_of: int) -> int:
        """Return the largest id of a cluster that is a multiple of that number; 0 of none."""
        with self._of(stream) as (connection, stream_id):
            return trends.last_cluster(connection, stream_id, multiple_of)

    def cluster_ids(self, stream: str) -> list[int]:
        """Return the ids of the clusters that are shown, largest first."""
        with self._of(stream) as (connection, stream_id):
            return trends.cluster_ids(connection, stream_id)

    def keys_like(self, stream: str, start: str, *, limit: int) -> list[str]:
        """Return keys of records that begin with ``start``, in order."""
        with self._of(stream) as (connection, stream_id):
            return trends.keys_like(connection, stream_id, start, limit)

    def lineage(
        self,
        stream: str,
        *,
        since: float | None = None,
        cluster: int | None = None,
        limit: int | None = None,
    ) -> list[LineageRow]:
        """Return lineage events in order; with ``limit`` the newest ones.

        ``cluster`` selects the events in which it takes part, as the subject or as a parent.
        """
        with self._of(stream) as (connection, stream_id):
            return history.lineage_rows(connection, stream_id, since, cluster, limit)

    def lineages(self, stream: str) -> list[list[LineageRow]]:
        """Return all lineage events in as many lists as grow by themselves: one."""
        return [self.lineage(stream)]

    def learned_family(self, stream: str) -> dict[str, Any]:
        """Return the family's hyperparameters as the newest publication has them.

        Empty where they are those with which the stream began.
        """
        with self._of(stream) as (connection, stream_id):
            return history.learned_family(connection, stream_id)

    def publications(self, stream: str, *, limit: int | None = None) -> list[PublicationRow]:
        """Return publications in order; with ``limit`` the newest ones."""
        with self._of(stream) as (connection, stream_id):
            return history.publication_rows(connection, stream_id, limit)

    def first_publication(self, stream: str, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the first publication that saw each observation, by its number.

        The largest number there is for what none has seen. Of what was seen before the oldest that
        is kept, that one's.
        """
        rows = self.publications(stream)
        numbers = [*(row.number for row in rows), np.iinfo(np.int64).max]
        seen = np.array([row.seq for row in rows], dtype=np.int64)
        return np.array(numbers, dtype=np.int64)[np.searchsorted(seen, seqs)]

    def publication_times(self, stream: str) -> dict[int, float]:
        """Return when each publication was made, seconds since 1970, of those that are kept."""
        with self._of(stream) as (connection, stream_id):
            return history.publication_times(connection, stream_id)

    def rounds(self, stream: str, *, limit: int | None = None) -> list[RoundRow]:
        """Return refinement rounds in order; with ``limit`` the newest ones."""
        with self._of(stream) as (connection, stream_id):
            return history.round_rows(connection, stream_id, limit)

    def dead_letters(
        self, stream: str, letters: Letters | None = None, *, limit: int = 100
    ) -> list[DeadLetterRow]:
        """Return the newest dead letters, newest first."""
        with self._of(stream) as (connection, stream_id):
            return dead_letters.rows(connection, stream_id, letters or Letters(), limit)

    def replay_requests(self, stream: str, *, limit: int) -> list[DeadLetterRow]:
        """Return the dead letters that somebody asked for again, oldest first."""
        waiting = Letters(requested=True)
        with self._of(stream) as (connection, stream_id):
            return dead_letters.rows(connection, stream_id, waiting, limit, oldest=True)

    def dead_letter_counts(self, stream: str) -> dict[str, int]:
        """Return how many dead letters there are for each reason."""
        with self._of(stream) as (connection, stream_id):
            return dead_letters.counts(connection, stream_id)

    def leases(
        self, stream: str, *, outcome: str | None = None, limit: int | None = None
    ) -> list[LeaseRow]:
        """Return leases, newest round first; with ``outcome`` only those of that outcome."""
        with self._of(stream) as (connection, stream_id):
            return leases.lease_rows(connection, stream_id, outcome=outcome, limit=limit)

    def lease_counts(self, stream: str) -> dict[str, int]:
        """Return how many of the leases that are kept have each outcome."""
        with self._of(stream) as (connection, stream_id):
            return leases.lease_counts(connection, stream_id)

    def roles(self, stream: str) -> list[RoleRow]:
        """Return what the adopted leases that are kept came to, by their role."""
        with self._of(stream) as (connection, stream_id):
            return overview.role_rows(connection, stream_id)

    def log_decisions(self, stream: str) -> list[LogReplacement]:
        """Return what was decided about logs that others had taken the place of, oldest first."""
        with self._of(stream) as (connection, stream_id):
            return overview.log_decisions(connection, stream_id)

    def models(self, stream: str) -> list[ModelRow]:
        """Return when and why the stream was seen anew, oldest first."""
        with self._of(stream) as (connection, stream_id):
            return overview.model_rows(connection, stream_id)

    def last_round(self, stream: str) -> int:
        """Return the number of the newest round of leases, 0 if there was none."""
        with self._of(stream) as (connection, stream_id):
            return leases.last_round(connection, stream_id)

    def adoptions(self, stream: str, after_round: int) -> list[AdoptionRow]:
        """Return the rounds of leases later than this one that were taken back, in order."""
        with self._of(stream) as (connection, stream_id):
            return leases.adoption_rows(connection, stream_id, after_round)

    def postponed(self, stream: str, after_seq: int) -> list[int]:
        """Return the later numbers of observations at which a refinement was put off, in order."""
        with self._of(stream) as (connection, stream_id):
            return history.postponed_after(connection, stream_id, after_seq)

    def whole(self, stream: str) -> StreamSpec | None:
        """Return what the stream is of which this one is a shard; None where it is none."""
        with self._of(stream) as (connection, stream_id):
            part = streams.alias()
            row = connection.execute(
                sa.select(streams)
                .join(part, part.c.part_of == streams.c.id)
                .where(part.c.id == stream_id)
            ).one_or_none()
        return None if row is None else spec_of(row)

    def shard_round(self, whole: str, number: int | None = None) -> ShardRoundRow | None:
        """Return a round of a stream's shards, by default the newest; None where there is none."""
        with self._glancing(whole) as (connection, stream_id):
            return shard_rounds.round_row(connection, stream_id, number)

    def shard_messages(
        self,
        whole: str,
        number: int,
        direction: str,
        *,
        shard: int | None = None,
        since: int = 0,
    ) -> list[ShardMessageRow]:
        """Return what was "asked" or "answered" in a round since a step, of one shard or all."""
        with self._glancing(whole) as (connection, stream_id):
            return shard_rounds.messages(connection, stream_id, (number, direction), shard, since)

    def shard_steps(self, whole: str, number: int, direction: str) -> list[tuple[int, int]]:
        """Return step and shard of what was "asked" or "answered" in a round."""
        with self._glancing(whole) as (connection, stream_id):
            return shard_rounds.steps(connection, stream_id, (number, direction))
