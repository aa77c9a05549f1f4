"""Kernels drawn with weights that follow what each of them has moved, beside a fixed cycle of them.

Each turn draws a kernel; the weights do not change within an epoch, where the mixture is as exact
as the kernels are, and epochs double. Then a share (``FLOOR``) is dealt out evenly and the rest by
squared jumps of slow statistics (the logs of the sum of squared sizes and of the number of
clusters) per second of the epoch before; never by log joint, which rewards a climb that is over.
What is drawn depends on the past, so the claim is *adaptive*. It is an experiment of the
benchmarks: ``auto`` is the fixed cycle.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.chain.position import Position
from weald.mcmc.contract import Kernel
from weald.mcmc.sweeps import Sampler

__all__ = ["FIRST_EPOCH", "FLOOR", "Adaptive", "adaptive"]

FLOOR: Final = 0.3
# Turns of the first epoch, in which the weights are equal.
FIRST_EPOCH: Final = 16


def _slow(position: Position) -> NDArray[np.float64]:
    sizes = position.sizes().astype(np.float64)
    return np.asarray(np.log([float(sizes @ sizes), float(sizes.size)]))


class Adaptive:
    """The kernels' weights (sum 1) in one chain; ``clock`` tells what a turn costs.

    Processor time makes no run the same twice; a clock that counts densities would.
    """

    def __init__(
        self, kernels: Sequence[Kernel[Position]], clock: Callable[[], float] = time.process_time
    ) -> None:
        n = len(kernels)
        self.weights = np.full(n, 1.0 / n)
        self._kernels, self._clock = kernels, clock
        self._jumps, self._costs = np.zeros(n), np.zeros(n)
        self._epoch = self._left = FIRST_EPOCH

    def sweep(self, rng: Generator, position: Position) -> NDArray[np.float64]:
        """One turn."""
        position.guide()  # made once, whoever asks first
        at = int(rng.choice(len(self._kernels), p=self.weights))
        before, began = _slow(position), self._clock()
        tally = self._kernels[at].sweep(rng, position)
        self._costs[at] += self._clock() - began
        self._jumps[at] += float(((_slow(position) - before) ** 2).sum())
        self._left -= 1
        if self._left == 0:
            self._adapt()
        return np.asarray(tally.sum(axis=0, keepdims=True))

    def _adapt(self) -> None:
        rates = np.divide(
            self._jumps, self._costs, out=np.zeros_like(self._jumps), where=self._costs > 0.0
        )
        if rates.any():
            self.weights = FLOOR / len(rates) + (1.0 - FLOOR) * rates / rates.sum()
        self._jumps[:] = self._costs[:] = 0.0
        self._epoch *= 2
        self._left = self._epoch


def adaptive(name: str, kernels: Sequence[Kernel[Position]]) -> Sampler[Position]:
    """One kernel, for one chain, that draws from these."""
    return Sampler(name, "adaptive", (name,), Adaptive(kernels).sweep)
