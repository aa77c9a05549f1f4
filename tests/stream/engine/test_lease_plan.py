"""Whom the leases of a round are meant for."""

from weald.storage.redis.lease_queue import WorkerRow
from weald.stream.engine.lease_plan import by_role, planned


def test_every_worker_has_one_and_fewer_leases_go_round() -> None:
    alive = by_role(
        WorkerRow(str(at), 0.0, 0, role)
        for at, role in enumerate(("subc", "all", "sdds", "subc", "of a later version"))
    )
    assert alive == {"all": 1, "tgmcmc": 0, "sdds": 1, "subc": 2}
    assert sorted(planned(alive, 0, 5)) == ["all", "sdds", "subc", "subc"]
    # With one lease of everything each worker's turn comes, and with six some have two.
    alone = [planned(alive, 1, number)[0] for number in range(8)]
    assert alone == ["all", "sdds", "subc", "subc"] * 2
    assert sorted(planned(alive, 6, 0)) == ["all", "all", "sdds", "sdds", "subc", "subc"]
