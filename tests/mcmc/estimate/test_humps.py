"""Groups whose members together lie on one hump are one, and no others."""

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from weald.mcmc.estimate import humps
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.estimate.groups import group_tree, groups_of, groups_of_rows, shared_groups
from weald.mcmc.estimate.humps import Members
from weald.mcmc.offline.fit import FitResult, FitSettings, combine, run_chain
from weald.mcmc.offline.fit_groups import draws_of, groups_of_fit
from weald.treecore.family import FAMILIES
from weald.treecore.family.totals import single_rows

Values = NDArray[np.float64]
Labels = NDArray[np.int64]


def cells(rng: Generator, values: Values, k: int) -> Labels:
    """Clusters by the nearest of k rows, as a chain has of what no family fits."""
    centres = values[rng.choice(len(values), k, replace=False)]
    return np.unique(cdist(values, centres).argmin(axis=1), return_inverse=True)[1]


def fitted(values: Values) -> tuple[FitResult, Values]:
    seen = (values - values.mean(axis=0)) / values.std(axis=0)
    settings = FitSettings(iterations=30)
    return combine(settings, [run_chain(seen, settings, 0, lambda: 0.0)], seen), seen


def members_of_all(family: Any, values: Values, labels: Labels) -> Members:
    order = np.argsort(labels, kind="stable")
    return Members(single_rows(family, values[order]), labels[order], np.bincount(labels))


def test_evenly_spread_rows_are_one_group(rng: Generator) -> None:
    """Of four samples; by the trees of their draws alone they are some groups each."""
    shown, by_trees, agree = list[int](), list[int](), list[float]()
    for _ in range(4):
        result, seen = fitted(rng.uniform(size=(2000, 5)))
        found = groups_of_fit(result, seen)
        shown.append(int(found.group.max()) + 1)
        agree.append(found.agree or 0.0)
        draws = draws_of(result.traces[0])
        trees = [group_tree(family, seen, draw).cut()[draw] for family, draw in draws]
        by_trees.append(int(shared_groups(result.labels, np.stack(trees))[0].max()) + 1)
    assert np.mean(by_trees) > 2.5
    assert shown == [1, 1, 1, 1]
    # Draws are asked for what is shown, humps included.
    assert min(agree) > 0.3


def test_long_tails_are_one_group(rng: Generator) -> None:
    result, seen = fitted(rng.lognormal(size=(1000, 8)))
    assert result.labels.max() > 10
    assert groups_of_fit(result, seen).group.max() == 0


@pytest.mark.parametrize("turn", range(3))
def test_kinds_with_a_gap_between_them_are_not_joined(turn: int, rng: Generator) -> None:
    """Two even cubes, each of several clusters: none of their groups has rows of both."""
    rng = np.random.default_rng([turn, int(rng.integers(2**31))])
    kind = np.arange(1000) % 2
    values = rng.uniform(size=(1000, 5))
    values[:, 0] += 1.5 * kind
    result, seen = fitted(values)
    assert result.labels.max() > 3
    group = groups_of_fit(result, seen).group[result.labels]
    assert not set(group[kind == 0].tolist()) & set(group[kind == 1].tolist())


def test_bells_stay_apart_however_many_clusters_they_are(rng: Generator) -> None:
    kind = np.arange(2000) % 4
    values = rng.normal(size=(2000, 5))
    values[:, :2] += 4.5 * np.column_stack([kind % 2, kind // 2])
    labels = np.zeros(2000, dtype=np.int64)
    for each in range(4):
        labels[kind == each] = 5 * each + cells(rng, values[kind == each], 5)
    labels = np.unique(labels, return_inverse=True)[1]
    group = groups_of(FAMILIES["gaussian"].build({}, values), values, labels)
    assert adjusted_rand_index(group[labels], kind) == 1.0


def test_how_clusters_are_numbered_does_not_matter(rng: Generator) -> None:
    for _ in range(3):
        kind = np.arange(1500) % 3
        values = rng.uniform(size=(1500, 3)) + 1.5 * kind[:, None]
        labels = np.zeros(1500, dtype=np.int64)
        for each in range(3):
            labels[kind == each] = 5 * each + cells(rng, values[kind == each], 5)
        labels = np.unique(labels, return_inverse=True)[1]
        family = FAMILIES["gaussian"].build({}, values)
        other = rng.permutation(labels.max() + 1)[labels]
        groups = [groups_of(family, values, each)[each] for each in (labels, other)]
        assert adjusted_rand_index(groups[0], groups[1]) > 0.95


def test_a_swarm_within_a_wide_kind_is_no_part_of_it(rng: Generator) -> None:
    """Density falls all the way from its middle to that of the others: nothing but even is one."""
    inside = np.arange(1200) < 300
    values = rng.normal(size=(1200, 2)) * np.where(inside, 0.02, 1.0)[:, None]
    values[inside, 0] += 1.0
    labels = np.where(inside, 0, 1 + (values[:, 0] > 0.0))
    family = FAMILIES["gaussian"].build({}, values)
    members = members_of_all(family, values, labels)
    near = np.ones((3, 3), dtype=np.bool_)
    # The halves of the others were one group, and the swarm is asked about.
    found, told = humps.joined_on_humps(family, members, np.array([0, 1, 1]), near)
    assert found.tolist() == [0, 1, 1]
    assert next(iter(told.values())) < 0.9


def test_pairs_are_joined_by_depth_and_then_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once at a time: the third group waits for what the first two become."""
    rows = np.zeros((40, 1))
    members = Members(rows, np.repeat(np.arange(4), 10), np.array([10, 30, 20, 10]))
    depth = {frozenset("01"): 0.95, frozenset("12"): 0.95, frozenset("23"): 0.94}
    asked = []

    def told(
        _family: Any, _rows: Values, _owner: Labels, k: int, known: Values, _: Values
    ) -> Values:
        asked.append(k)
        found = known.copy()
        for a, b in zip(*np.nonzero(np.isnan(known)), strict=True):
            found[a, b] = depth.get(frozenset(f"{a}{b}"), 0.0) if k == 4 else 0.5
        return found

    monkeypatch.setattr(humps, "valleys", told)
    near = np.ones((4, 4), dtype=np.bool_)
    family: Any = None
    group, looked = humps.joined_on_humps(family, members, np.arange(4), near)
    # 1 and 2 are 50 observations, 0 and 1 are 40: equally deep, the larger comes first.
    assert group.tolist() == [0, 1, 1, 2]
    assert asked == [4, 3]
    again, same = humps.joined_on_humps(family, members, np.arange(4), near, known=looked)
    assert asked == [4, 3]
    assert (again.tolist(), same) == (group.tolist(), looked)
    apart = np.eye(4, dtype=np.bool_)
    assert humps.joined_on_humps(family, members, np.arange(4), apart)[0].tolist() == [0, 1, 2, 3]
    assert asked == [4, 3]


def test_a_cut_that_parts_more_joins_less(rng: Generator) -> None:
    """Asked for groups parted by nearly any valley, nobody wants them joined across deeper ones."""
    values = rng.uniform(size=(1000, 5))
    labels = cells(rng, values, 20)
    family = FAMILIES["gaussian"].build({}, values)
    members = members_of_all(family, values, labels)
    counts = [int(groups_of_rows(family, members, cut).group.max()) for cut in (0.2, 0.65, 0.99)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_a_group_is_seen_as_its_clusters_are_large() -> None:
    """Of a cluster of which a tenth was seen, no more than a tenth of the others is."""
    owner = np.repeat([0, 1, 2], [100, 200, 7])
    members = Members(np.arange(307.0)[:, None], owner, np.array([1000, 200, 7]))
    rows, whose = humps._members_of_groups(members, np.array([0, 0, 1]))
    kept = rows[whose == 0, 0]
    assert np.unique(rows).size == len(rows)
    assert 95 <= np.count_nonzero(kept < 100) <= 100
    assert 18 <= np.count_nonzero(kept >= 100) <= 22
    assert np.count_nonzero(whose == 1) == 7
    # One observation that stands for a thousand does not hide the others.
    heavy = Members(np.zeros((8, 1)), np.repeat([0, 1], [1, 7]), np.array([1000, 7]))
    assert humps._members_of_groups(heavy, np.zeros(2, dtype=np.int64))[1].size == 8
