"""Joining trees that are one cluster after all."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.treecore.forests import Setting, clumps, gaussian, grown, play, roots_of, setting
from tests.treecore.invariants import describe, forest_faults
from weald.treecore.forest.compaction import forest_order, recompute
from weald.treecore.forest.consolidation import consolidate
from weald.treecore.forest.forest import Forest, log_dissimilarity
from weald.treecore.forest.insertion import PREDICTIVE, PUBLISHED

N = 150


def better_together(posed: Setting, forest: Forest) -> list[tuple[int, int]]:
    """Pairs of roots whose join would be one cluster."""
    return [
        (a, b)
        for a, b in combinations(roots_of(forest), 2)
        if log_dissimilarity(posed.model, forest, a, b) < -1e-9
    ]


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, N), later=st.integers(0, N))
def test_any_forest(seed: int, n: int, later: int) -> None:
    values = clumps(np.random.default_rng(seed), N, k=6)
    posed = setting(gaussian(values), values)
    forest = grown(posed, PREDICTIVE, list(range(n)))
    before = len(roots_of(forest))
    joins = consolidate(posed.model, forest)
    assert describe(forest_faults(posed.model, forest)) == []
    assert len(roots_of(forest)) == before - joins
    assert better_together(posed, forest) == []
    assert consolidate(posed.model, forest) == 0
    play(posed, forest, list(range(n, max(n, later))), PREDICTIVE)
    play(posed, forest, [-1 - i for i in range(0, n, 3)], PREDICTIVE)
    assert describe(forest_faults(posed.model, forest)) == []


def test_groups_that_began_apart() -> None:
    """Outlying observations first: each becomes a tree that later ones choose between."""
    rng = np.random.default_rng(4)
    angle = rng.uniform(0.0, 2.0 * np.pi, size=40)
    ring = 3.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    values = np.concatenate([ring, rng.normal(size=(110, 2))])
    posed = setting(gaussian(values), values)
    forest = grown(posed, PREDICTIVE)
    before = len(roots_of(forest))
    assert consolidate(posed.model, forest) > 0
    assert len(roots_of(forest)) < before


@pytest.mark.parametrize("alpha", [1e12, 1.0])
def test_more_roots_than_are_compared_at_a_time(alpha: float, rng: np.random.Generator) -> None:
    values = clumps(rng, 600)
    apart = setting(gaussian(values), values, ("dp", {"alpha": 1e12}))
    forest = grown(apart, PUBLISHED)
    assert forest.n_roots[0] == 600
    posed = setting(gaussian(values), values, ("dp", {"alpha": alpha}))
    recompute(posed.model, forest, forest_order(forest), marginals_known=False)
    joins = consolidate(posed.model, forest)
    assert len(roots_of(forest)) == 600 - joins
    assert describe(forest_faults(posed.model, forest)) == []
    if alpha == 1e12:
        assert joins == 0
    else:
        assert len(roots_of(forest)) <= 20
        assert better_together(posed, forest) == []
