"""Chains that guide each other, as Herlau et al. run them: on mixtures and on networks."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from weald.mcmc.contract import Kernel
from weald.mcmc.reconfiguration.reference_partitions import History
from weald.mcmc.schedule.registry import PAST

__all__ = ["METHODS", "N_CHAINS", "OURS", "Population"]

OURS = "ours"
METHODS: dict[str, tuple[str, ...]] = {
    "Gibbs": (),
    "SM": ("rgsm",),
    "bSM": ("bsm",),
    "sARM": ("sarm",),
    "ARM": ("arm",),
    OURS: ("accord", "arm"),
}
N_CHAINS, N_FIRST = 8, 50
# Blocks that the first labels are drawn from.
N_DRAWN = 20


class Population:
    """Eight chains on n observations, from the states that 50 Gibbs sweeps reach.

    ``chain`` makes one of labels; ``guides`` are from the "history" of all chains, as in the paper,
    or from the other half of the "population". ``key`` is that of their sources of randomness.
    """

    def __init__(
        self,
        chain: Callable[[NDArray[np.int64]], Any],
        n: int,
        kernels: Mapping[str, Kernel[Any]],
        guides: str,
        key: tuple[int, ...],
    ) -> None:
        self.past = History(N_CHAINS)
        self.from_past = guides == "history"
        self.kernels = kernels
        self.chains: list[tuple[Any, Generator]] = []
        self.moves, self.gibbs = 0.0, 0.0
        for index in range(N_CHAINS):
            rng = Generator(PCG64(SeedSequence(7, spawn_key=(*key, index))))
            self.chains.append((chain(rng.integers(0, N_DRAWN, n)), rng))
            self.chains[-1][0].history = (self.past, index)
            for _ in range(N_FIRST):
                kernels["gibbs"].sweep(rng, self.chains[-1][0])
                self.past.note(index, self.chains[-1][0].labels())

    @property
    def normalised(self) -> float:
        """Effort in units of the Gibbs sweeps that went with the moves."""
        return (self.moves + self.gibbs) / self.gibbs

    def advance(
        self, method: str, *, adapting: bool = True, interlaced: bool = True
    ) -> NDArray[np.float64]:
        """One iteration of every chain: a move, and a Gibbs sweep unless moves are not interlaced.

        Returns what was proposed and accepted.
        """
        moved = np.zeros(2)
        kernels = [self.kernels[name] for name in METHODS[method]]
        if self.from_past:
            named = ((kernel, f"{kernel.name}{PAST}") for kernel in kernels)
            kernels = [self.kernels[past] if k.guided else k for k, past in named]
        half = N_CHAINS // 2
        halves = (self.chains[:half], self.chains[half:])
        for moving, still in (halves, halves[::-1]):
            guides = tuple(position.labels() for position, _ in still)
            for position, rng in moving:
                position.guides = guides
                began = time.process_time()
                for kernel in kernels:
                    # What is compared is the move that the paper counts.
                    tally = kernel.sweep(rng, position)[0, :2]
                    moved += tally if kernel is kernels[-1] else 0.0
                between = time.process_time()
                if interlaced or not kernels:
                    self.kernels["gibbs"].sweep(rng, position)
                self.moves += between - began
                self.gibbs += time.process_time() - between
        if self.from_past and adapting:
            for index, (position, _) in enumerate(self.chains):
                self.past.note(index, position.labels())
        return moved

    def iterate(self, method: str, *, adapting: bool = True) -> list[float]:
        """The same: log joints of the chains, then moves proposed and accepted."""
        moved = self.advance(method, adapting=adapting)
        return [*(position.log_joint() for position, _ in self.chains), *moved.tolist()]

    def labels(self) -> NDArray[np.int64]:
        """Where the chains are (chains, n)."""
        return np.array([position.labels() for position, _ in self.chains])
