"""Certainty of what is shown: against a slow count, cut to what changed, whole after a restart."""

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from weald.stream.certainty import DRAWS_KEPT, RecentDraws, judge

Labels = NDArray[np.int64]


def slow(draws: list[NDArray[np.int32]], clusters: Labels, i: int) -> tuple[float, float]:
    """Probability and stability of one observation, by counting."""
    inside, together = [], []
    for draw in draws:
        if i >= len(draw):
            continue
        members = [j for j in range(len(draw)) if clusters[j] == clusters[i]]
        blocks = [int(draw[j]) for j in members]
        largest = max(sorted(set(blocks)), key=blocks.count)
        inside.append(draw[i] == largest)
        mates = [draw[j] == draw[i] for j in members if j != i]
        together.append(np.mean(mates) if mates else 1.0)
    return float(np.mean(inside)), float(np.mean(together))


def test_every_observation_is_judged_as_by_counting(rng: Generator) -> None:
    clusters = rng.integers(3, 9, size=60)
    draws = [rng.integers(0, 5, size=n).astype(np.int32) for n in (20, 45, 60, 60)]
    judged = judge(draws, clusters)
    for i in range(60):
        assert (judged.probability[i], judged.stability[i]) == pytest.approx(
            slow(draws, clusters, i)
        )


def test_what_the_draws_agree_on_is_certain() -> None:
    labels = np.array([0, 0, 1, 1, 1, 2])
    judged = judge([labels.astype(np.int32)] * 3, labels + 7)
    assert (judged.probability == 1.0).all()
    assert (judged.stability == 1.0).all()


def test_only_the_newest_draws_count(rng: Generator) -> None:
    clusters = rng.integers(0, 4, size=30)
    draws = [rng.integers(0, 4, size=30) for _ in range(DRAWS_KEPT + 3)]
    recent = RecentDraws()
    for draw in draws:
        recent.add(draw)
    told = recent.certainty(clusters).chunks[0]
    expected = judge([draw.astype(np.int32) for draw in draws[-DRAWS_KEPT:]], clusters)
    assert told.probability.tolist() == np.rint(100 * expected.probability).tolist()
    assert told.stability.tolist() == np.rint(100 * expected.stability).tolist()


def test_a_chunk_is_told_once_until_it_changes() -> None:
    clusters = np.repeat([1, 2], 4000)
    recent = RecentDraws()
    recent.add(clusters)
    assert [chunk.number for chunk in recent.certainty(clusters).chunks] == [0, 1]
    assert list(recent.certainty(clusters).chunks) == []
    other = clusters.copy()
    other[-1] = 3
    recent.add(other)
    again = RecentDraws.restore(recent.state())
    # One of thousands is less than half a percent of what the others are with.
    assert [chunk.number for chunk in recent.certainty(clusters).chunks] == [1]
    assert [chunk.number for chunk in again.certainty(clusters).chunks] == [0, 1]
    assert again.certainty(clusters).cluster.tolist() == [1, 2]


def test_a_snapshot_from_before_has_no_draws() -> None:
    assert RecentDraws.restore({}).state()["lengths"].tolist() == []
    assert RecentDraws.restore(RecentDraws().state()).state()["labels"].tolist() == []
