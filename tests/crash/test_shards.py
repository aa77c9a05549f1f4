"""Three processes that share a stream in shards, killed in turn: the harness in its short form."""

from pathlib import Path

import pytest

from tests.crash.shards import play


@pytest.mark.slow
def test_writers_of_shards_that_are_killed_lose_and_double_nothing(
    tmp_path: Path, kafka_bootstrap: str, empty_postgresql_url: str
) -> None:
    outcome = play(tmp_path, kafka_bootstrap, empty_postgresql_url, 20.0, seed=1)
    assert outcome.faults == []
    assert outcome.n_kills >= 3
    assert outcome.n_rounds >= 1
    assert outcome.n_publications >= 1
