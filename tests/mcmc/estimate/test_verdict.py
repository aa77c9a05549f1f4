"""What makes a partition doubtful, reason by reason."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from weald.mcmc.estimate.evidence import Gain
from weald.mcmc.estimate.verdict import Grouped, told_by_groups, verdict_of

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
    assert "independent runs disagree" in reason
    # Clusters are of no account where all runs make the same groups, unless that is one of all.
    same = Grouped(1.0, 0.5, settled=True)
    assert verdict_of(sizes(50, 50), CLEAR, chains, same).status == "ok"
    one = Grouped(1.0, 1.0, Gain(0.1, 0.1), settled=True)
    assert verdict_of(sizes(50, 50), CLEAR, chains, one).reasons == [reason]


def test_chains_that_find_one_cluster_agree_whatever_few_rows_are_apart() -> None:
    chains = [np.zeros(1000, dtype=np.int64) for _ in range(2)]
    chains[0][:90] = np.arange(90) % 2 + 1
    one = Grouped(1.0, 1.0, settled=True)
    assert verdict_of(sizes(1000), None, chains, one).status == "ok"
    (reason,) = verdict_of(sizes(1000), None, chains, replace(one, settled=False)).reasons
    assert "independent runs disagree (two of them agree to 0.00" in reason
    chains[0][:110] = 1
    assert verdict_of(sizes(1000), None, chains, one).reasons == [reason]


def test_groups_that_differ_from_draw_to_draw() -> None:
    (reason,) = verdict_of(sizes(50, 50), CLEAR, grouped=Grouped(0.4)).reasons
    assert "groups differ each time that they are told (they agree to 0.40, where" in reason
    assert verdict_of(sizes(50, 50), CLEAR, grouped=Grouped(0.9)).status == "ok"


def test_one_group_of_all_is_doubted_where_clusters_predict_better() -> None:
    (reason,) = verdict_of(sizes(50, 50), CLEAR, grouped=Grouped(1.0, 0.95, CLEAR)).reasons
    assert "one group holds 95% of the rows, though its clusters make each 2.72 times" in reason
    for fine in (Grouped(1.0, 0.85, CLEAR), Grouped(1.0, 1.0, Gain(0.1, 0.1))):
        assert verdict_of(sizes(50, 50), CLEAR, grouped=fine).status == "ok"


def test_groups_that_one_value_parts() -> None:
    (reason,) = verdict_of(sizes(50, 50), CLEAR, grouped=Grouped(1.0, parted_by=["a", "b"])).reasons
    assert "one value that no other comes near, in a, b" in reason
    marked = np.arange(200) % 2 == 0
    assert told_by_groups(marked, marked.astype(np.int64))
    # Groups may part the others further, and one row in a hundred may be elsewhere.
    finer = np.where(marked, 0, 1 + np.arange(200) % 4)
    assert told_by_groups(marked, finer)
    finer[0] = 1
    assert told_by_groups(marked, finer)
    finer[:20] = 1
    assert not told_by_groups(marked, finer)
    assert not told_by_groups(marked, np.zeros(200, dtype=np.int64))


def test_one_cluster_is_an_answer_and_a_handful_of_rows_says_nothing() -> None:
    assert verdict_of(sizes(100)).status == "ok"
    assert verdict_of(sizes(*[1] * 10), Gain(0.0, 1.0)).status == "ok"
