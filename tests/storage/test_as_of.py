"""The cluster of an observation as of any moment, against a plain record of every moment."""

from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from tests.storage.batches import STREAM, batch, observations, publication, reassigned, snapshot
from weald.storage.errors import MomentForgotten
from weald.storage.queries.base import AsOf, Reassignment
from weald.storage.settings import RetentionSettings
from weald.storage.writing.store import SqlStore

N_PER_COMMIT = 20
N_COMMITS = 6


def labels(store: SqlStore, n: int, as_of: AsOf | None = None) -> dict[int, int]:
    """Return the cluster of each of the first n observations, now or then."""
    keys = [f"key-{seq}" for seq in range(1, n + 1)]
    return {row.seq: row.cluster for row in store.assignments(STREAM, keys, as_of=as_of)}


def test_every_moment_can_be_asked_for(store: SqlStore, rng: np.random.Generator) -> None:
    """Each commit brings observations and one or two publications that move some of them."""
    now: dict[int, int] = {}
    at_publication: dict[int, dict[int, int]] = {}
    at_time: dict[float, dict[int, int]] = {}
    number = 0
    for epoch in range(1, N_COMMITS + 1):
        first = 1 + N_PER_COMMIT * (epoch - 1)
        received = 3e9 + 1000.0 * epoch
        block = replace(
            observations(first, N_PER_COMMIT),
            cluster=rng.integers(1, 4, N_PER_COMMIT),
            received_at=received,
        )
        now |= dict(zip(block.seq.tolist(), block.cluster.tolist(), strict=True))
        at_time[received] = dict(now)
        publications, moves = [], []
        for _ in range(rng.integers(1, 3)):
            number += 1
            seqs = rng.choice(np.arange(1, first + N_PER_COMMIT), size=8, replace=False)
            move = Reassignment(number, seqs, rng.integers(1, 6, 8))
            now |= dict(zip(move.seq.tolist(), move.cluster.tolist(), strict=True))
            published = replace(
                publication(number, first + N_PER_COMMIT - 1), time=received + 10.0 * number
            )
            at_publication[number], at_time[published.time] = dict(now), dict(now)
            publications.append(published)
            moves.append(move)
        store.commit(
            batch(
                epoch,
                first,
                N_PER_COMMIT,
                observations=block,
                publications=publications,
                reassigned=moves,
            )
        )
    n = N_PER_COMMIT * N_COMMITS
    assert labels(store, n) == now
    for publication_number, expected in at_publication.items():
        assert labels(store, n, AsOf(publication=publication_number)) == expected
    for time, expected in at_time.items():
        assert labels(store, n, AsOf(time=time)) == expected
        assert labels(store, n, AsOf(time=time + 0.5)) == expected
    assert labels(store, n, AsOf(time=3e9)) == {}


def test_a_time_before_what_is_kept_is_refused(store: SqlStore) -> None:
    """Changes are pruned with their publications: what was shown before is not known."""
    for epoch in range(1, 5):
        first, received = 1 + 10 * (epoch - 1), 3e9 + 1000.0 * epoch
        shown = replace(publication(epoch, first + 9), time=received + 0.5)
        block = replace(observations(first, 10), received_at=received)
        moved = [reassigned(epoch, {1: epoch})]
        image = {"snapshot": snapshot(1, seq=40)} if epoch == 4 else {}
        store.commit(
            batch(
                epoch,
                first,
                10,
                observations=block,
                publications=[shown],
                reassigned=moved,
                **image,
            )
        )
    assert labels(store, 1, AsOf(time=3e9 + 1100)) == {1: 1}
    assert labels(store, 1, AsOf(time=3e9 + 2100)) == {1: 2}
    assert store.prune(STREAM, RetentionSettings(publications=2))["publications"] == 2
    with pytest.raises(MomentForgotten, match=r"oldest time .* is 2065-01-24T06:10:01Z"):
        labels(store, 1, AsOf(time=3e9 + 1100))
    oldest = datetime.fromisoformat("2065-01-24T06:10:01Z").timestamp()
    assert labels(store, 1, AsOf(time=oldest)) == {1: 3}
    assert labels(store, 1, AsOf(publication=1)) == {}


def test_moving_to_where_it_is_leaves_no_trace(store: SqlStore) -> None:
    store.commit(
        batch(1, 1, 3, publications=[publication(1, 3)], reassigned=[reassigned(1, {1: 1, 2: 2})])
    )
    store.commit(
        batch(2, 4, 3, publications=[publication(2, 6)], reassigned=[reassigned(2, {2: 2, 3: 2})])
    )
    assert labels(store, 6) == {1: 1, 2: 2, 3: 2, 4: 1, 5: 1, 6: 1}
    assert labels(store, 6, AsOf(publication=1)) == {1: 1, 2: 2, 3: 1}


@pytest.mark.parametrize(("time", "number"), [(None, None), (1.0, 1)])
def test_a_moment_is_given_one_way(time: float | None, number: int | None) -> None:
    with pytest.raises(ValueError, match="one of the two"):
        AsOf(time=time, publication=number)
