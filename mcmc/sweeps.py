"""How a sampler becomes a kernel: its sweep over arrays, and what became of its moves.

A compiled sweep over the arrays of a state, of a mixture or of a network, counts moves by kind;
:func:`proposals` adds them up. A sampler that redraws all labels at once counts nothing;
:func:`redraws` does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.state.block_state import BlockState
from weald.treecore.partition.partition import Atoms, Model

from .contract import Claim, Entry, MixtureState, Need, SweptState, is_guided
from .state.atom_state import NULL, make_tally

__all__ = ["Sampler", "Tally", "moves_of", "proposals", "redrawn", "redraws", "sampler"]

Labels = NDArray[np.int64]
Tally = NDArray[np.float64]
P = TypeVar("P")
Q = TypeVar("Q", bound=SweptState[BlockState])
S = TypeVar("S")


@dataclass(frozen=True)
class Sampler(Generic[S]):
    """A kernel, as :class:`~weald.mcmc.contract.Kernel` describes one."""

    name: str
    claim: Claim
    parts: tuple[str, ...]
    sweep: Callable[[Generator, S], Tally]
    needs: tuple[Need, ...] = ()
    least: Callable[[Generator, S], Tally] | None = None

    @property
    def guided(self) -> bool:
        """Whether it takes reference partitions, so that chains run as a population."""
        return is_guided(self.needs)


def sampler(
    entry: Entry,
    sweep: Callable[[Generator, S], Tally],
    parts: tuple[str, ...] = (),
    least: Callable[[Generator, S], Tally] | None = None,
) -> Sampler[S]:
    """The kernel of a line of the registry; without parts it counts one move, by its own name."""
    return Sampler(entry.name, entry.claim, parts or (entry.name,), sweep, entry.needs, least)


def moves_of(tally: Tally) -> Tally:
    """All moves of a tally but the null ones, as one row."""
    return np.delete(tally, NULL, axis=0).sum(axis=0, keepdims=True)


def redrawn(n: int) -> Tally:
    """What a scan of n draws from full conditionals came to: none is rejected."""
    return np.array([[float(n), float(n), 0.0]])


def proposals(
    entry: Entry,
    sweep: Callable[[Generator, BlockState, Model, P, Labels, Tally], None],
    plan: P,
    least: P,
    order: Callable[[Q], Labels] | None = None,
) -> Sampler[Q]:
    """Kernel of a sweep ``(rng, state, model, plan, live, tally)`` that proposes moves of atoms.

    ``least`` is the plan of one proposal. All atoms come in the order of their numbers, or in
    another that does not depend on the partition.
    """

    def by(chosen: P) -> Callable[[Generator, Q], Tally]:
        def run(rng: Generator, at: Q) -> Tally:
            live = np.arange(at.n_atoms, dtype=np.int64) if order is None else order(at)

            def once(state: BlockState) -> Tally:
                # A sweep that had not enough room is done again.
                tally = make_tally()
                sweep(rng, state, at.model, chosen, live, tally)
                return moves_of(tally)

            return at.run(rng, once)

        return run

    return sampler(entry, by(plan), least=by(least))


def redraws(
    entry: Entry, sweep: Callable[[Generator, Atoms, Labels, Model], Labels]
) -> Sampler[MixtureState]:
    """Kernel of a sweep that takes the labels (n) of all atoms and returns others."""

    def run(rng: Generator, at: MixtureState) -> Tally:
        at.set_labels(sweep(rng, at.atoms, at.labels(), at.model))
        return redrawn(at.n_atoms)

    return sampler(entry, run)
