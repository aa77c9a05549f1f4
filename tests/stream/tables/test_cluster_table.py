"""Rows of clusters that end, as SQL is to have them."""

import numpy as np

from tests.stream.scenario import values_of
from weald.stream.tables.cluster_table import ClusterTable
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import observe, statistics_width


def test_a_cluster_that_ends_and_is_back_is_told_of_as_it_is() -> None:
    values = values_of(3)
    family = FAMILIES["gaussian"].build({}, values)
    rows = np.zeros((3, statistics_width(family)))
    for r in range(3):
        observe(family, values, r, rows, r)
    table, ids = ClusterTable(family), np.array([7, 7])
    table.add(ids, rows[:2], 1)
    table.take_off(ids, rows[:2], shown=False)
    assert table.clear({7}, ids[:0], 2) == [(7, 2)]
    table.add(ids[:1], rows[2:], 2)
    told = [(row.n_observations, row.retired_publication) for row in table.take_changes(1)]
    assert told == [(1, None)]
