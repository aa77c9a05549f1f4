"""Orders inside compiled code are numpy's."""

import numpy as np
import pytest

from weald.treecore.statistics.ordering import first_at_least, in_order

from .entries import place_of, sorted_ids


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 100, 257])
def test_the_order_is_stable(rng: np.random.Generator, n: int) -> None:
    ids = rng.permutation(n)
    values = rng.integers(0, 1 + n // 3, size=n).astype(np.float64)
    expected = ids[np.argsort(values, kind="stable")]
    assert in_order(ids, values).tolist() == expected.tolist()
    assert sorted_ids(ids, values).tolist() == expected.tolist()


def test_places_are_those_of_a_search(rng: np.random.Generator) -> None:
    values = np.sort(rng.integers(0, 9, size=20).astype(np.float64))
    for bound in np.arange(-1.0, 10.0, 0.5):
        expected = int(np.searchsorted(values, bound))
        assert first_at_least(values, bound) == place_of(values, bound) == expected
