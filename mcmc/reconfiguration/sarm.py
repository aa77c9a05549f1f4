"""Simplified adaptive reconfiguration: Herlau, Mørup, Schmidt and Teh, section 3.6.2.

As :mod:`weald.mcmc.reconfiguration.arm`, with guides that choose the pair and the pieces that come
with it, but no other piece moves whole: all other atoms of their blocks are placed one by one. Same
claim, same guides. (``split-merge-samplers.md`` section 2.8.)
"""

from weald.mcmc.assignment.scratch import Walk
from weald.mcmc.contract import Entry, PartitionState
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.sweeps import Sampler

from .arm import sweep
from .guided import guided

__all__ = ["PLAN", "kernel", "sweep"]

PLAN = Walk(guided=1, whole=0)


def kernel(entry: Entry) -> Sampler[PartitionState[BlockState]]:
    """The kernel, as the registry names it."""
    return guided(entry, sweep, PLAN, PLAN)
