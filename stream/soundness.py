"""A model as it was saved: its cadence in numbers, and whether its parts agree with each other."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..mcmc.settings import RefinementSettings

if TYPE_CHECKING:
    from .shard import Shard

__all__ = ["cadence_of", "cadence_row", "faults_of"]

_MODES: tuple[Literal["inline", "workers"], ...] = ("inline", "workers")


def cadence_row(cadence: RefinementSettings) -> NDArray[np.int64]:
    """Say a cadence in numbers."""
    counts = (cadence.every_records, cadence.publish_every_records, cadence.rounds)
    return np.array([*counts, _MODES.index(cadence.mode)], dtype=np.int64)


def cadence_of(row: NDArray[Any]) -> RefinementSettings:
    """Undo `cadence_row`."""
    every, publish_every, rounds, mode = row.tolist()
    return RefinementSettings(every, publish_every, rounds, _MODES[mode])


def faults_of(shard: "Shard") -> list[str]:
    """Say what does not agree between the model's parts; nothing when all is well.

    Linear in the atoms, and fast enough for every start.
    """
    chain, roster, present = shard.chain, shard.roster, shard.roster.present
    counts = chain.n_atoms, chain.n_observations
    if counts != (len(present), roster.n_observations) or counts[1] > shard.seq:
        known = f"{len(present)} of {roster.n_observations}, among {shard.seq} observations"
        return [f"{counts[0]} atoms of {counts[1]} observations, known as {known}"]
    if len(present) == 0:
        return []
    faults, labels = [], chain.labels[present]
    if (labels < 0).any() or len(np.unique(labels)) != chain.n_blocks:
        faults.append("the chain's blocks are not those that its observations are in")
    rows = chain.atom_rows(present)
    if not np.isfinite(rows).all():
        return [*faults, "the statistics of an observation are not finite"]
    return faults + shard.table.faults(roster.cluster[present], rows)
