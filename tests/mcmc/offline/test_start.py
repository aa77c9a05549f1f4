"""Where a fit may begin."""

import numpy as np
import pytest
from numpy.typing import NDArray

from weald.mcmc.offline.start import (
    atoms_of,
    forest_labels,
    grow_forest,
    k_means_labels,
    most_blocks,
    possible_labels,
    starting_labels,
)
from weald.treecore.errors import ParameterError
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import workspace
from weald.treecore.forest.forest import Forest
from weald.treecore.guide.guide import Guide, freeze
from weald.treecore.partition.partition import Model
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels

N = 60
PRIOR = build_prior("dp", {})


@pytest.fixture(scope="module")
def grown() -> tuple[Model, Forest, NDArray[np.int64]]:
    """A forest over four groups that nobody could confuse, and the groups."""
    rng = np.random.default_rng(3)
    groups = np.arange(N) % 4
    values = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0], [50.0, 50.0]])[groups]
    values += rng.normal(size=(N, 2))
    family = FAMILIES["gaussian"].build({"kappa": 0.01, "psi": np.eye(2).tolist()}, values)
    atoms = atoms_of(family, values)
    return (
        Model(family, PRIOR.seating(N, N), workspace(family)),
        grow_forest(family, PRIOR, atoms),
        groups,
    )


Grown = tuple[Model, Forest, NDArray[np.int64]]


def test_named_starts(grown: Grown, rng: np.random.Generator) -> None:
    _, forest, groups = grown
    assert (starting_labels("one", forest, N, rng) == 0).all()
    assert sorted(starting_labels("singletons", forest, N, rng)) == list(range(N))
    random = starting_labels("random:3", forest, N, rng)
    assert set(random.tolist()) == {0, 1, 2}
    ibhc = canonical_labels(starting_labels("ibhc", forest, N, rng))
    assert (ibhc == canonical_labels(groups)).all()


@pytest.mark.parametrize(
    "start", ["", "IBHC", "random", "random:", "random:0", "random:-2", "random:x", "one:2"]
)
def test_unknown_starts(start: str, grown: Grown, rng: np.random.Generator) -> None:
    with pytest.raises(ParameterError, match="singletons"):
        starting_labels(start, grown[1], N, rng)


@pytest.mark.parametrize(
    ("prior", "most"),
    [("dp", N), ("nggp", N), ("pitman-yor", N), ("mfm", N), ("emm", 7)],
)
def test_most_blocks(prior: str, most: int) -> None:
    parameters = {"kmax": 7} if prior == "emm" else {}
    assert most_blocks(build_prior(prior, parameters), N) == most
    assert most_blocks(build_prior(prior, parameters), 5) == 5


def never() -> Guide:
    raise AssertionError("nothing had to be joined")


def test_a_start_within_what_the_prior_allows(grown: Grown) -> None:
    labels = forest_labels(grown[1], N)
    assert possible_labels(labels, "ibhc", 4, never) is labels


@pytest.mark.parametrize("most", [1, 2, 3])
def test_trees_are_joined_down_to_what_the_prior_allows(grown: Grown, most: int) -> None:
    model, forest, groups = grown
    labels = forest_labels(forest, N)
    fewer = possible_labels(labels, "ibhc", most, lambda: freeze(model, forest))
    assert np.unique(fewer).shape[0] == most
    # Whole groups are joined, none is torn.
    assert all(np.unique(fewer[groups == group]).shape[0] == 1 for group in range(4))


@pytest.mark.parametrize("start", ["singletons", "random:9"])
def test_other_starts_beyond_it_are_refused(start: str, rng: np.random.Generator) -> None:
    labels = rng.integers(0, 9, size=N).astype(np.int64)
    with pytest.raises(ParameterError, match="allows 4 at most: choose ibhc, one or random:4"):
        possible_labels(labels, start, 4, never)


@pytest.mark.parametrize("scaled", [False, True])
def test_clusters_of_k_means_lie_within_what_is_apart(
    scaled: bool, rng: np.random.Generator
) -> None:
    groups = np.arange(300) % 3
    values = rng.normal(size=(300, 4)) + 30.0 * groups[:, None]
    labels = k_means_labels(values, 300, rng, scaled=scaled)
    assert 3 <= np.unique(labels).size <= 20
    assert all(np.unique(groups[labels == label]).size == 1 for label in np.unique(labels))


@pytest.mark.parametrize(
    ("n", "distinct", "most", "expected"),
    [(300, 300, 7, 7), (30, 30, 300, 6), (3, 3, 300, 1), (300, 4, 300, 4), (300, 1, 300, 1)],
)
def test_k_means_makes_no_more_clusters_than_there_can_be(
    n: int, distinct: int, most: int, expected: int, rng: np.random.Generator
) -> None:
    values = rng.normal(size=(distinct, 3))[np.arange(n) % distinct]
    for scaled in (False, True):
        labels = k_means_labels(values, most, rng, scaled=scaled)
        assert sorted(set(labels.tolist())) == list(range(expected))
