"""Groups of clusters: a valley is between humps, and nowhere else."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.sparse import csr_matrix
from scipy.spatial.distance import pdist, squareform

from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.estimate.groups import (
    GroupTree,
    average_linkage,
    group_tree,
    groups_of_draws,
    shared_groups,
)
from weald.mcmc.estimate.valleys import valleys as valleys_of_rows
from weald.mcmc.offline.fit import FitSettings, run_chain
from weald.treecore.family import FAMILIES
from weald.treecore.family.totals import single_rows

Values = NDArray[np.float64]
Labels = NDArray[np.int64]


def valleys(family: Any, values: Values, labels: Labels, k: int) -> Values:
    order = np.argsort(labels, kind="stable")
    rows = single_rows(family, values[order])
    return valleys_of_rows(family, rows, labels[order], k)


def two(rng: Generator, apart: float, n: int = 300) -> tuple[Values, Labels]:
    """Two normal clusters in three features."""
    labels = np.arange(n) % 2
    values = rng.normal(size=(n, 3))
    values[:, 0] += apart * labels
    return values, labels


def skewed(rng: Generator, n: int) -> Values:
    """One kind that no Gaussian fits: it ends sharply on one side, and slowly on the other."""
    return np.asarray(rng.lognormal(0.0, 0.8, size=(n, 2)))


@pytest.mark.parametrize("name", ["gaussian", "diagonal"])
@pytest.mark.parametrize(("apart", "least", "most"), [(0.0, 0.9, 1.0), (8.0, 0.0, 0.1)])
def test_a_valley_is_deep_where_there_are_two_humps(
    name: str, apart: float, least: float, most: float, rng: Generator
) -> None:
    values, labels = two(rng, apart)
    family = FAMILIES[name].build({}, values)
    found = valleys(family, values, labels, 2)
    assert least <= found[0, 1] == found[1, 0] <= most
    assert found.diagonal().tolist() == [1.0, 1.0]


def test_one_hump_cut_in_two_has_no_valley(rng: Generator) -> None:
    """Where two sides touch, as when a cluster is cut for no reason, density is highest."""
    values = rng.normal(size=(400, 4))
    labels = (values[:, 0] > 0.0).astype(np.int64)
    family = FAMILIES["gaussian"].build({}, values)
    assert valleys(family, values, labels, 2)[0, 1] > 0.9


def test_the_valley_is_a_function_of_density_alone(rng: Generator) -> None:
    """Units and the numbers of clusters do not matter."""
    values, labels = two(rng, 3.5)
    plain = valleys(FAMILIES["gaussian"].build({}, values), values, labels, 2)[0, 1]
    other = values @ np.diag([100.0, 1e-3, 1.0]) + 7.0
    scaled = valleys(FAMILIES["gaussian"].build({}, other), other, 1 - labels, 2)[0, 1]
    assert 0.1 < plain < 0.9
    # A tenth of the covariance is made spherical, which units do change, and little.
    assert abs(plain - scaled) < 0.05


def test_a_handful_shows_no_valley(rng: Generator) -> None:
    """What is nearly a gap among hundreds may be chance among ten."""
    found = []
    for n in (12, 60, 600):
        values, labels = two(rng, 6.0, n)
        found.append(valleys(FAMILIES["gaussian"].build({}, values), values, labels, 2)[0, 1])
    assert found[0] > 0.5 > found[1] > found[2]


@pytest.mark.parametrize("n_each", [4, 40])
@pytest.mark.parametrize("name", ["gaussian", "diagonal"])
def test_values_that_are_repeated_have_lines_between_them(name: str, n_each: int) -> None:
    """Clusters without scatter; of two equal numbers even rounding leaves none."""
    places = np.array([[-512.0, 16.0], [-256.0, 512.0], [256.0, -512.0], [512.0, -16.0]])
    labels = np.repeat(np.arange(4), n_each)
    family = FAMILIES[name].build({}, places[labels])
    apart = valleys(family, places[labels], labels, 4)[~np.eye(4, dtype=np.bool_)]
    # No density between them, as far as so few can tell.
    np.testing.assert_allclose(apart, 2.0 / (np.sqrt(2.0) * n_each + 2.0), rtol=1e-6)


def test_larger_clusters_count_for_more() -> None:
    """With clusters of one size the tree is that of scipy; else its means are over rows."""
    rng = np.random.default_rng(0)
    apart = squareform(pdist(rng.normal(size=(30, 2))))
    alike = average_linkage(apart, np.full(30, 7))
    np.testing.assert_allclose(alike, linkage(squareform(apart), "average"), atol=1e-12)
    three = np.array([[0.0, 0.1, 0.4], [0.1, 0.0, 1.0], [0.4, 1.0, 0.0]])
    joins = average_linkage(three, np.array([30, 10, 5]))
    assert joins[-1, 2] == pytest.approx((30 * 0.4 + 10 * 1.0) / 40)


def test_groups_join_what_makes_one_kind(rng: Generator) -> None:
    """Two skewed kinds of several clusters each, and two outliers, are two groups."""
    kind = np.repeat([0, 1], 300)
    values = np.concatenate([skewed(rng, 300), 20.0 + skewed(rng, 300)])
    values = np.concatenate([values, [[-3.0, 8.0], [15.0, 25.0]]])
    result = run_chain(values, FitSettings(iterations=30), 0, lambda: 0.0)
    labels = result.draws[-1]
    assert np.count_nonzero(np.bincount(labels) >= 5) > 2
    tree = group_tree(result.last[0], values, labels)
    groups = tree.cut()[labels]
    assert adjusted_rand_index(groups[:600], kind) == 1.0
    assert groups[600:].tolist() == [groups[0], groups[300]]


def test_a_cut_says_how_deep_valleys_are(rng: Generator) -> None:
    """Deeper valleys part fewer groups, and the cuts are nested."""
    at = np.arange(500) % 5
    values = rng.normal(size=(500, 2))
    values[:, 0] += np.array([0.0, 3.6, 20.0, 24.5, 50.0])[at]
    tree = group_tree(FAMILIES["gaussian"].build({}, values), values, at)
    cuts = [tree.cut(valley) for valley in (0.15, 0.5, 0.65, 0.98)]
    counts = [int(cut.max()) + 1 for cut in cuts]
    assert counts == sorted(counts)
    assert counts[0] == 3
    assert counts[-1] == 5
    for coarse, fine in pairwise(cuts):
        for group in range(fine.max() + 1):
            assert np.unique(coarse[fine == group]).size == 1


def test_of_many_groups_each_is_parted_by_a_deeper_valley() -> None:
    """A valley that parts two kinds joins some of twenty; `valley` is that of two."""

    def n_groups(valley: float, n: int) -> int:
        apart = np.full((n, n), 1.0 - valley)
        apart[0, 1] = apart[1, 0] = 0.4
        joins = average_linkage(apart, np.full(n, 10))
        return int(GroupTree(np.arange(n), joins).cut(0.5).max()) + 1

    assert n_groups(0.45, 3) == 2
    assert [n_groups(0.45, n) for n in (4, 20)] == [3, 1]
    assert [n_groups(0.3, n) for n in (3, 4, 20)] == [2, 3, 19]
    joins = np.array([[0.0, 1.0, 0.52, 2.0], [2.0, 3.0, 0.6, 3.0]])
    assert GroupTree(np.arange(3), joins).cut(0.5).tolist() == [0, 0, 1]


def test_few_rows_are_groups_of_their_own(rng: Generator) -> None:
    values = rng.normal(size=(6, 2))
    labels = np.arange(6) // 2
    family = FAMILIES["gaussian"].build({}, values)
    assert group_tree(family, values, labels).cut().tolist() == [0, 1, 2]
    one = np.zeros(6, dtype=np.int64)
    assert group_tree(family, values, one).cut().tolist() == [0]


def mixed(names: str, values: Values) -> Any:
    """Independent columns, each of the family with its letter in ``names``."""
    letter = {"n": "diagonal", "f": "bernoulli", "c": "poisson"}
    parts = [{"family": letter[each], "columns": [at]} for at, each in enumerate(names)]
    return FAMILIES["mixed"].build({"parts": parts}, values)


def bells_and_flags(rng: Generator, apart: float, shares: list[float]) -> tuple[Values, Labels]:
    """Two normal clusters of a number, the second wider, and flags which are set less in it."""
    labels = np.arange(800) % 2
    number = np.where(labels, 10.0, 1.0) * rng.normal(size=800) + apart * labels
    flags = [rng.random(800) < np.where(labels, 1.0 - share, share) for share in shares]
    return np.column_stack([number, *flags]).astype(np.float64), labels


@pytest.mark.parametrize(
    ("apart", "shares", "least", "most"),
    [
        # A narrow kind inside a wide one, told by flags, and what is one hump in all columns.
        (0.0, [0.95, 0.95, 0.95], 0.0, 0.25),
        (0.0, [0.5, 0.5, 0.5], 0.7, 1.0),
        # One flag that says little is no gap, though nothing lies between 0 and 1.
        (0.0, [0.7], 0.7, 1.0),
        (100.0, [0.5], 0.0, 0.1),
    ],
)
def test_flags_count_by_how_far_two_clusters_overlap(
    apart: float, shares: list[float], least: float, most: float, rng: Generator
) -> None:
    values, labels = bells_and_flags(rng, apart, shares)
    family = mixed("n" + "f" * len(shares), values)
    found = valleys(family, values, labels, 2)
    assert least <= found[0, 1] == found[1, 0] <= most


def test_flags_weigh_as_bells_do_that_overlap_as_far(rng: Generator) -> None:
    """Six flags of .1 and .9 overlap by .6 ** 6, as bells 4.95 apart: their valley, deepened."""
    values, labels = bells_and_flags(rng, 0.0, [0.9] * 6)
    flags = values[:, 1:]
    found = valleys(FAMILIES["bernoulli"].build({}, flags), flags, labels, 2)[0, 1]
    apart = np.sqrt(-8.0 * 6 * np.log(0.6))
    bell = np.exp(-0.5 * np.array([apart / 2, 0.0, apart]) ** 2)
    valley = 2.0 * bell[0] / (bell[1] + bell[2])
    assert found ** (1.0 / 1.5) == pytest.approx(valley, rel=0.25)


def test_counts_that_vary_more_than_poissons_are_one_hump(rng: Generator) -> None:
    """One kind that two rates describe, and one that is far; a gap is no kind."""
    rate = np.concatenate([rng.gamma(4.0, 10.0, 600), rng.gamma(400.0, 1.0, 200)])
    counts = rng.poisson(rate).astype(np.float64)
    labels = np.searchsorted([35.0, 200.0], counts)
    values = np.column_stack([counts, rng.poisson(3.0, 800)])
    values[::9, 1] = np.nan
    family = FAMILIES["poisson"].build({}, values)
    groups = group_tree(family, values, labels).cut()
    assert groups.tolist() == [0, 0, 1]
    # Beside a flag of no use they are as they were.
    flagged = np.column_stack([values, rng.random(800) < 0.5])
    both = group_tree(mixed("ccf", flagged), flagged, labels).cut()
    assert both.tolist() == groups.tolist()


def test_counts_of_words_are_grouped_by_what_predicts_them(rng: Generator) -> None:
    """No distances: the log ratio of the densities is the line; sparse and dense agree."""
    topics = np.array([[0.5, 0.5, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    labels = np.arange(120) % 3
    counts = np.stack([rng.multinomial(20, topics[each]) for each in labels]).astype(np.float64)
    counts = np.concatenate([counts, [[0.0, 0.0, 2.0, 1.0]]])
    labels = np.append(labels, 3)
    family = FAMILIES["multinomial"].build({}, counts)
    for values in (counts, csr_matrix(counts)):
        groups = group_tree(family, values, labels).cut()
        assert groups.tolist() == [0, 0, 1, 1]


def test_missing_values_are_no_hindrance(rng: Generator) -> None:
    values, labels = two(rng, 8.0)
    values = np.where(rng.random(values.shape) < 0.1, np.nan, values)
    tree = group_tree(FAMILIES["diagonal"].build({}, values), values, labels)
    assert tree.cut().tolist() == [0, 1]


def test_draws_that_cut_a_cloud_anywhere_make_other_groups_than_those_shown(rng: Generator) -> None:
    """Groups that the data part are the same however their clusters are drawn."""
    values, sides = two(rng, 12.0, 400)
    family = FAMILIES["gaussian"].build({}, values)
    kinds = [2 * sides + (values[:, 1] > cut) for cut in rng.normal(size=8)]
    found = groups_of_draws([(family, each) for each in kinds], values)
    group, agree = shared_groups(kinds[0], found)
    assert adjusted_rand_index(group[kinds[0]], sides) == 1.0
    assert agree == 1.0
    plain = np.random.default_rng(0).normal(size=(400, 2)) ** 3
    family = FAMILIES["gaussian"].build({}, plain)
    cut_anywhere = [
        np.unique(np.floor(plain @ line).astype(np.int64), return_inverse=True)[1]
        for line in rng.normal(size=(9, 2))
    ]
    drawn = [(family, each) for each in cut_anywhere[1:]]
    assert shared_groups(cut_anywhere[0], groups_of_draws(drawn, plain, 0.95))[1] < 0.75


def test_a_draw_that_comes_again_is_looked_at_once(
    rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, labels = two(rng, 8.0)
    family = FAMILIES["gaussian"].build({}, values)
    other = np.zeros_like(labels)
    looked_at = []

    def noted(*arguments: Any) -> Any:
        looked_at.append(arguments[2])
        return group_tree(*arguments)

    monkeypatch.setattr("weald.mcmc.estimate.groups.group_tree", noted)
    drawn = [(family, each) for each in (labels, other, labels.copy(), other)]
    found = groups_of_draws(drawn, values)
    assert len(looked_at) == 2
    assert (found == np.stack([labels, other, labels, other])).all()


def test_clusters_are_one_group_where_most_draws_have_them_in_one() -> None:
    """Whatever the tree of the shown clusters says; and few rows go where draws have them."""
    shown = np.repeat([0, 1, 2, 3], [20, 20, 20, 3])
    one, other, third = shown // 2, np.array([0, 0, 0, 1])[shown], np.array([0, 1, 1, 0])[shown]
    group, agree = shared_groups(shown, np.stack([one, one, other]))
    assert group.tolist() == [0, 0, 1, 1]
    index = [adjusted_rand_index(each, one) for each in (one, one, other)]
    assert agree == pytest.approx(np.mean(index))
    # Half of the draws is not most of them, and the rows of a cluster may be in several groups.
    halved = np.where(np.arange(63) % 2 == 0, one, third)
    assert shared_groups(shown, np.stack([one, third]))[0].tolist() == [0, 0, 1, 0]
    assert shared_groups(shown, halved[None])[0].max() > 0


def test_groups_of_only_small_clusters_are_these() -> None:
    found, agree = shared_groups(np.arange(4), np.arange(4)[None])
    assert (found.tolist(), agree) == ([0, 1, 2, 3], 1.0)
