"""Which kernels refine a stream, by the writer or by workers: resolved, and refused in a sentence.

A stream shows what one chain draws, for ever: its kernels are exact, need no other chain, and reach
every partition. A sweep of Gibbs sampling is of some atoms only, so that a round costs less, and
one of sequentially allocated splits and merges makes as many proposals as the atoms leave time for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from weald.mcmc.contract import Kernel
from weald.mcmc.gibbs.kernel import gibbs_on
from weald.mcmc.split_merge.sams import sams_within
from weald.treecore.errors import ParameterError
from weald.treecore.prior import PartitionPrior

from .kernels import KERNELS, NETWORK_KERNELS, Kernels, require_prior
from .registry import ROLES, STREAM_SCHEDULES, entries

if TYPE_CHECKING:
    from weald.mcmc.chain.position import Position
    from weald.mcmc.relational.position import VertexPosition

__all__ = [
    "kernels_of_networks",
    "require_role",
    "require_runnable",
    "role_kernels",
    "stream_kernels",
]

_GIBBS_ATOMS = 1000
# Proposals a sweep, and the most atoms that these look at together where each is in one block.
_SAMS_PROPOSALS, _SAMS_ATOMS = 20, 100_000

S = TypeVar("S")


def _streamed(names: str, kernels: Kernels[S]) -> list[Kernel[S]]:
    found = kernels.named(names, STREAM_SCHEDULES[kernels.data])
    for kernel in found:
        if kernel.guided:
            raise ParameterError(
                f"{kernel.name} takes its guides from other chains, and a stream has one: "
                "choose other kernels (refinement.kernels)"
            )
        if "entities" in kernel.needs:
            raise ParameterError(
                f"{kernel.name} draws the number of entities given all observations, and a stream "
                "refines some at a time: choose other kernels (refinement.kernels)"
            )
        if kernel.claim != "exact":
            raise ParameterError(
                f"{kernel.name} is {kernel.claim}: what a stream shows rests on exact kernels only "
                "(refinement.kernels)"
            )
    return found


def stream_kernels(names: str, share: float = 0.0) -> tuple[Kernel[Position], ...]:
    """Kernels that refine a stream of a mixture, by a comma-joined list of names, in order.

    Gibbs sampling redraws a thousand atoms a sweep, or this share of them where that is more.
    Sequentially allocated splits and merges are twenty a sweep, fewer of more than 5,000 atoms.
    Raises ParameterError for an unknown one, and for one that no stream can have.
    """
    bounded: dict[str, Kernel[Position]] = {
        "gibbs": gibbs_on(_GIBBS_ATOMS, share),
        "sams": sams_within(entries("mixture")["sams"], _SAMS_PROPOSALS, _SAMS_ATOMS),
    }
    return tuple(bounded.get(each.name, each) for each in _streamed(names, KERNELS))


def kernels_of_networks(names: str) -> tuple[Kernel[VertexPosition], ...]:
    """Kernels that refine a stream of edges. Raises as :func:`stream_kernels`."""
    return tuple(_streamed(names, NETWORK_KERNELS))


def require_runnable(names: str, prior: PartitionPrior) -> None:
    """Raise ParameterError where these kernels of mixtures cannot run with the prior."""
    try:
        require_prior(stream_kernels(names), prior)
    except ParameterError as error:
        raise ParameterError(f"{error}: choose other kernels (refinement.kernels)") from error


def role_kernels(role: str, names: str) -> str:
    """Comma-joined kernels of a role's leases, where ``names`` are the stream's own."""
    return ",".join(ROLES[role]) or names


def require_role(role: str, names: str, prior: PartitionPrior) -> None:
    """Raise ParameterError where no worker can have this role: see :func:`require_runnable`."""
    if role not in ROLES:
        raise ParameterError(f"there is no role {role!r}: choose among {', '.join(ROLES)}")
    try:
        require_runnable(role_kernels(role, names), prior)
    except ParameterError as error:
        raise ParameterError(f"no worker can have the role {role}: {error}") from error
