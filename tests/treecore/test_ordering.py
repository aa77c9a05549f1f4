"""Orders inside compiled code are numpy's."""

import numpy as np
import pytest

from weald.treecore.statistics.ordering import in_order

from .entries import sorted_ids


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 100, 257])
def test_the_order_is_stable(rng: np.random.Generator, n: int) -> None:
    ids = rng.permutation(n)
    values = rng.integers(0, 1 + n // 3, size=n).astype(np.float64)
    expected = ids[np.argsort(values, kind="stable")]
    assert in_order(ids, values).tolist() == expected.tolist()
    assert sorted_ids(ids, values).tolist() == expected.tolist()
