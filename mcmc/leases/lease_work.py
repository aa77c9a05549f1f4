"""What a worker does with a lease: a fixed number of moves, and the way back."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from weald.mcmc.chain.position import Position
from weald.mcmc.conditional.labels import processor_seconds
from weald.mcmc.contract import Kernel, MixtureState
from weald.mcmc.schedule.kernel_report import KernelReport
from weald.mcmc.schedule.ledger import Ledger
from weald.mcmc.schedule.stream_kernels import stream_kernels
from weald.mcmc.split_merge import sams
from weald.mcmc.state.atom_state import make_tally
from weald.mcmc.sweeps import Sampler, Tally, moves_of
from weald.treecore.family.interface.base import workspace
from weald.treecore.partition.partition import make_atoms
from weald.treecore.prior.apart import with_marks
from weald.treecore.prior.base import log_size

from .leases import Lease
from .restricted_guide import regrow

__all__ = ["Returned", "lease_kernels", "squared_jump", "work"]


@dataclass(frozen=True, eq=False)
class Returned:
    """A new partition of the lease's atoms: canonical labels (u), and what each kernel did.

    The kernels' seconds are those of processors, of however many at the same time.
    """

    labels: NDArray[np.int64]
    kernels: tuple[KernelReport, ...]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays, for :meth:`from_arrays`."""
        reports = json.dumps([asdict(each) for each in self.kernels]).encode()
        return {"labels": self.labels, "kernels": np.frombuffer(reports, dtype=np.uint8)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Undo :meth:`arrays`."""
        reports = json.loads(arrays["kernels"].tobytes())
        return cls(arrays["labels"], tuple(KernelReport(**each) for each in reports))


def lease_kernels(names: str) -> list[Kernel[Position]]:
    """What a lease is worked on with, by a comma-joined list of names."""
    return list(stream_kernels(names))


def _pair_kernel(lease: Lease) -> Kernel[MixtureState]:
    """Law B allows no other move than those that split or merge the anchors' blocks."""

    def sweep(rng: Generator, at: MixtureState) -> Tally:
        tally = make_tally()
        plan, anchors = sams.SamsPlan(), lease.anchors
        at.run(rng, lambda state: sams.sweep(rng, state, at.model, plan, anchors, tally))
        return moves_of(tally)

    return Sampler("sams", "exact", ("sams",), sweep)


def _position(lease: Lease) -> Position:
    size, rows = lease.size, lease.rows
    if len(lease.apart):
        size, rows = with_marks(size, rows, lease.apart)
    atoms = make_atoms(lease.family, rows, size, workspace(lease.family))
    position = Position(
        lease.family,
        atoms,
        lease.labels,
        lease.prior,
        lambda model: regrow(model, atoms, lease.form),
    )
    position.model = position.model._replace(seating=lease.seating())
    return position


def _log_weight(position: Position) -> float:
    """Log of prior times likelihood of the part, up to a constant of the round."""
    sizes = position.sizes()
    seating = position.model.seating
    value = position.log_likelihood() + float(seating.log_blocks[sizes.shape[0]])
    return value + sum(float(log_size(seating, int(size))) for size in sizes)


def work(lease: Lease, rng: Generator | None = None) -> Returned:
    """Spend the lease's budget. The same lease gives the same answer, whoever works on it.

    ``rng`` is by default made from the budget's seed.
    """
    source = Generator(PCG64(lease.budget.seed)) if rng is None else rng
    position = _position(lease)
    kernels: Sequence[Kernel[Position]] = lease_kernels(lease.budget.kernels)
    if len(lease.anchors):
        kernels = [_pair_kernel(lease)]
    ledger = Ledger(_log_weight(position))
    for _ in range(lease.budget.sweeps):
        for kernel in kernels:
            began = processor_seconds()
            tally = kernel.sweep(source, position)
            ledger.note(kernel, tally, _log_weight(position), processor_seconds() - began)
    return Returned(position.labels(), ledger.reports())


def squared_jump(lease: Lease, labels: NDArray[np.int64], n: int) -> float:
    """Squared change, by a lease that came back, of the sum of squared shares of its blocks.

    Shares are those of all ``n`` observations of the round. The statistic is a slow one: what moves
    it far for its time mixes well, whatever becomes of the log joint
    (``split-merge-samplers.md`` section 5.4).
    """
    before, after = (np.bincount(each, weights=lease.size) / n for each in (lease.labels, labels))
    return float((after @ after - before @ before) ** 2)
