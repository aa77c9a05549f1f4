"""How old a group is: by the oldest of its clusters, when they were first published."""

import numpy as np

from weald.answers.group_births import GroupBirth, births_of_groups
from weald.storage.queries.base import ClusterRow

# Publications 1 to 4, of which the first is no longer kept.
TIMES = {2: 200.0, 3: 300.0, 4: 400.0}


def cluster(number: int, publication: int, group: int | None, named: int | None) -> ClusterRow:
    return ClusterRow(
        cluster=number,
        n_observations=10,
        log_marginal=0.0,
        statistics=np.zeros(1),
        version=1,
        born_publication=publication,
        group=group,
        group_born=named,
    )


def test_a_group_of_old_clusters_is_old_whatever_it_is_called() -> None:
    clusters = [cluster(1, 0, 7, 4), cluster(2, 2, 7, 4), cluster(3, 2, 8, 4)]
    born = {1: 50.0, 2: 200.0, 3: 200.0}
    assert births_of_groups(clusters, born, TIMES) == {7: GroupBirth(4, 1), 8: GroupBirth(4, 2)}


def test_what_began_after_a_publication_is_first_told_by_the_next() -> None:
    clusters = [cluster(1, 3, 1, 4), cluster(2, 3, 2, 4), cluster(3, 4, 3, 4)]
    born = {1: 310.0, 2: 300.0, 3: 400.0}
    found = births_of_groups(clusters, born, TIMES)
    assert found == {1: GroupBirth(4, 4), 2: GroupBirth(4, 3), 3: GroupBirth(4, 4)}


def test_a_name_may_be_older_than_all_that_is_left_of_its_clusters() -> None:
    assert births_of_groups([cluster(9, 4, 2, 1)], {9: 400.0}, TIMES) == {2: GroupBirth(1, 1)}


def test_of_an_earlier_version_nothing_is_said() -> None:
    clusters = [cluster(1, 2, 5, None), cluster(2, 4, None, None)]
    assert births_of_groups(clusters, {}, TIMES) == {}
