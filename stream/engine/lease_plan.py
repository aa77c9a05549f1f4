"""Whom the leases of a round are meant for: the roles of the workers that are alive.

A role says which kernels a lease gets, never what it is sampled from. Roles are dealt to the
numbers of leases before coins deal blocks to the same numbers, so that which kernels a block meets
depends on who is there, and not on the partition.
"""

from collections.abc import Iterable, Mapping

from weald.mcmc.schedule.registry import ROLES
from weald.storage.redis.lease_queue import WorkerRow

__all__ = ["by_role", "planned"]


def by_role(alive: Iterable[WorkerRow]) -> dict[str, int]:
    """Workers of each role, 0 where there are none; of a role that is not known none count."""
    counts = dict.fromkeys(ROLES, 0)
    for row in alive:
        if row.role in counts:
            counts[row.role] += 1
    return counts


def planned(alive: Mapping[str, int], n_leases: int, round_number: int) -> list[str]:
    """Return the role of each lease of a round.

    Parameters
    ----------
    alive : mapping of str to int
        Workers of each role, of which there must be some.
    n_leases : int
        How many leases; 0 for one to each worker. Fewer than there are workers go round from one
        round to the next, so that every worker has its turn.
    round_number : int
    """
    roles = [role for role, n in alive.items() for _ in range(n)]
    return [roles[(round_number + at) % len(roles)] for at in range(n_leases or len(roles))]
