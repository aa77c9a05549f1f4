"""What makes a partition doubtful, reason by reason."""

import numpy as np
import pytest
from numpy.typing import NDArray

from weald.mcmc.estimate.evidence import Gain
from weald.mcmc.estimate.verdict import verdict_of

CLEAR = Gain(1.0, 0.1)


def sizes(*of: int) -> NDArray[np.int64]:
    return np.array(of, dtype=np.int64)


def test_nothing_to_say_of_clusters_that_are_clear() -> None:
    verdict = verdict_of(sizes(50, 40, 10), CLEAR, [np.arange(9) // 3] * 2)
    assert verdict.status == "ok"
    assert verdict.reasons == []


@pytest.mark.parametrize(
    ("found", "gain", "reason"),
    [
        (sizes(95, 5), CLEAR, "one cluster holds 95%"),
        (sizes(20, *[1] * 30), CLEAR, "60% of the rows are in clusters of fewer than 5"),
        (sizes(60, 40), Gain(0.1, 0.1), "no better than one cluster"),
    ],
)
def test_each_reason(found: NDArray[np.int64], gain: Gain, reason: str) -> None:
    verdict = verdict_of(found, gain)
    assert verdict.status == "warn"
    assert len(verdict.reasons) == 1
    assert reason in verdict.reasons[0]


def test_chains_that_disagree() -> None:
    chains = [np.arange(100) % 2, np.arange(100) // 50]
    (reason,) = verdict_of(sizes(50, 50), CLEAR, chains).reasons
    assert "chains disagree" in reason


def test_groups_that_differ_from_draw_to_draw() -> None:
    (reason,) = verdict_of(sizes(50, 50), CLEAR, groups_agree=0.4).reasons
    assert "groups differ from draw to draw (adjusted Rand index 0.40)" in reason
    assert verdict_of(sizes(50, 50), CLEAR, groups_agree=0.9).status == "ok"


def test_one_cluster_is_an_answer_and_a_handful_of_rows_says_nothing() -> None:
    assert verdict_of(sizes(100)).status == "ok"
    assert verdict_of(sizes(*[1] * 10), Gain(0.0, 1.0)).status == "ok"
