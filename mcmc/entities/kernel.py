"""Kernels of the entity/mention model: Wang and Russell (2015), with K drawn beside the partition.

The number of entities K is drawn from its law given the partition (an exact Gibbs step); then the
kernel of that name moves the mentions among the K entities, the empty ones included, where a split
may be the birth of an empty entity and a merge its death; then K is forgotten, so that kernels
under which it is integrated out may have the next turn.

All exact and irreducible alone. Cost: as the kernel's own, and a pass over the numbers that K may
have. (``split-merge-samplers.md`` section 2.6.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from numpy.random import Generator

from weald.mcmc.contract import Entry, MixtureState, SweptState
from weald.mcmc.schedule.registry import ENTITIES
from weald.mcmc.split_merge import rgsm, rm, sdds, ss
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.state.entity_state import EntityState
from weald.mcmc.sweeps import Sampler, Tally, sampler
from weald.treecore.compiled.draw import choose
from weald.treecore.errors import ParameterError
from weald.treecore.partition.partition import Model
from weald.treecore.prior import UniformAssignment

from .entities import entity_seating, make_entity_state

__all__ = ["kernel"]

T = TypeVar("T")
_OF_BLOCKS = {"rgsm": rgsm, "sdds": sdds, "ss": ss, "rm": rm}
_Move = Callable[[Generator, SweptState[BlockState]], Tally]


@dataclass(frozen=True)
class _EntitiesOf:
    """A mixture's atoms with entities for blocks, for one sweep."""

    state: EntityState
    model: Model
    n_atoms: int

    def run(self, _rng: Generator, sweep: Callable[[EntityState], T]) -> T:
        return sweep(self.state)


def _with_entities(rng: Generator, at: MixtureState) -> _EntitiesOf:
    """The present partition with a number of entities drawn given it."""
    prior, n_atoms = at.prior, at.n_atoms
    if not isinstance(prior, UniformAssignment):
        raise ParameterError(f"entities may be empty under the prior emm only, not {prior.name}")
    n_observations = int(at.atoms.size.sum())
    state = at.flat()
    n_blocks = int(state.partition.n_blocks[0])
    law = prior.log_entities_given(n_blocks, n_observations)
    number = n_blocks + choose(rng, law, law.shape[0])
    held = make_entity_state(state, number, prior.log_entities())
    return _EntitiesOf(held, at.model._replace(seating=entity_seating(n_atoms)), n_atoms)


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""
    plain = _OF_BLOCKS[entry.name.removesuffix(ENTITIES)].kernel(entry)

    def moving(move: _Move) -> Callable[[Generator, MixtureState], Tally]:
        return lambda rng, at: move(rng, _with_entities(rng, at))

    least = None if plain.least is None else moving(plain.least)
    return sampler(entry, moving(plain.sweep), plain.parts, least)
