"""A cluster's observations hang on one tree or on many, and are cut into as many parts as asked."""

import numpy as np
import pytest

from weald.answers.subtree import SnapshotForest


def forest_of(sizes: list[int]) -> SnapshotForest:
    """Trees of these sizes, each a comb, over observations 1, 2, and so on."""
    columns: list[list[int]] = [[], [], [], [], []]
    left, right, parent, size, atom = columns

    def node(sides: tuple[int, int], of: int, own: int) -> int:
        for column, value in zip(
            (left, right, parent, size, atom), (*sides, -1, of, own), strict=True
        ):
            column.append(value)
        at = len(size) - 1
        for side in sides:
            if side >= 0:
                parent[side] = at
        return at

    n = 0
    for each in sizes:
        top = node((-1, -1), 1, n)
        for own in range(n + 1, n + each):
            top = node((top, node((-1, -1), 1, own)), size[top] + 1, -1)
        n += each
    arrays = {
        f"chain.forest_{name}": np.array(column)
        for name, column in zip(
            ("left", "right", "parent", "node_size", "atom"),
            (left, right, parent, size, atom),
            strict=True,
        )
    }
    arrays |= {"roster.seq": np.arange(1, n + 1), "shown": np.array([0, 0, 0, n])}
    return SnapshotForest(arrays)


@pytest.mark.parametrize("sizes", [[6], [9, 1], [20, 3, 2, 2, 1, 1], [1] * 12], ids=str)
def test_there_are_as_many_parts_as_were_asked_for(sizes: list[int]) -> None:
    n = sum(sizes)
    for n_parts in range(1, n + 3):
        leaves = [each for each in forest_of(sizes).parts(range(1, n + 1), n_parts) if each.leaf]
        assert len(leaves) == min(n_parts, n)
        together = np.sort(np.concatenate([each.members for each in leaves]))
        np.testing.assert_array_equal(together, np.arange(1, n + 1))


def test_the_smallest_trees_are_one_part() -> None:
    parts = forest_of([20, 3, 2, 2, 1, 1]).parts(range(1, 30), 3)
    told = [(len(each.members), each.depth, each.leaf, each.n_trees) for each in parts]
    assert told == [(20, 0, False, 1), (19, 1, True, 1), (1, 1, True, 1), (9, 0, True, 5)]
