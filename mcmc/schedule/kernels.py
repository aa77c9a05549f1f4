"""Kernels by the names of the registry, each loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from weald.mcmc.contract import Data, Entry, Kernel
from weald.treecore.errors import ParameterError
from weald.treecore.prior import PartitionPrior, UniformAssignment

from .registry import SCHEDULES, entries

if TYPE_CHECKING:
    from weald.mcmc.chain.position import Position
    from weald.mcmc.relational.position import VertexPosition

__all__ = ["KERNELS", "NETWORK_KERNELS", "Kernels", "require_every_partition", "require_prior"]

S = TypeVar("S")


@cache
def _load(entry: Entry, *, beside_gibbs: bool) -> Kernel[Any]:
    """The kernel of a line of the registry.

    A module may have another one, `beside_gibbs(entry)`, for schedules with Gibbs sampling.
    """
    module = import_module(entry.module)
    other = getattr(module, "beside_gibbs", None) if beside_gibbs else None
    made: Kernel[Any] = (other or module.kernel)(entry)
    return made


class Kernels(Mapping[str, Kernel[S]], Generic[S]):
    """The registry's kernels of mixtures or of networks, by name, in its order."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def __getitem__(self, name: str) -> Kernel[S]:
        return _load(entries(self.data)[name], beside_gibbs=False)

    def __iter__(self) -> Iterator[str]:
        return iter(entries(self.data))

    def __len__(self) -> int:
        return len(entries(self.data))

    def named(
        self, names: str, schedules: Mapping[str, tuple[str, ...]] | None = None
    ) -> list[Kernel[S]]:
        """Kernels of a comma-joined list of names, in order.

        Schedules are those of fits unless others are given. Beside Gibbs sampling, tree-guided
        moves leave single atoms to it.

        Raises ParameterError for an unknown one.
        """
        known, schedules = entries(self.data), schedules or SCHEDULES[self.data]
        found: list[Entry] = []
        for name in (part.strip() for part in names.split(",")):
            for single in schedules.get(name, (name,)):
                if single not in known:
                    every = ", ".join(sorted({*known, *schedules}))
                    raise ParameterError(f"there is no kernel {single!r}: choose among {every}")
                found.append(known[single])
        beside_gibbs = any(entry.name == "gibbs" for entry in found)
        return [_load(entry, beside_gibbs=beside_gibbs) for entry in found]


KERNELS: Kernels[Position] = Kernels("mixture")
NETWORK_KERNELS: Kernels[VertexPosition] = Kernels("network")


def require_prior(kernels: Sequence[Kernel[S]], prior: PartitionPrior) -> None:
    """Raise ParameterError for a kernel that cannot run with the prior."""
    for kernel in kernels:
        if "product" in kernel.needs and not prior.seating(2, 2).is_product:
            raise ParameterError(
                f"{kernel.name} needs a prior of product form (dp, pitman-yor, nggp), "
                f"not {prior.name}"
            )
        if "entities" in kernel.needs and prior.name != UniformAssignment.name:
            raise ParameterError(
                f"{kernel.name} moves entities that may be empty, which the prior "
                f"{UniformAssignment.name} has, not {prior.name}"
            )


def require_every_partition(kernels: Sequence[Kernel[S]]) -> None:
    """Raise ParameterError for kernels that together do not reach every partition.

    Those that take guides move only what the guides tell apart or together.
    """
    if all(kernel.guided for kernel in kernels):
        names = ",".join(kernel.name for kernel in kernels)
        raise ParameterError(
            f"{names} alone does not reach every partition: add another, such as {names},gibbs"
        )
