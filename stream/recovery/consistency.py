"""Whether the parts of a restored model agree with each other."""

import numpy as np

from weald.stream.model.shard import Shard

__all__ = ["faults_of"]


def faults_of(shard: Shard) -> list[str]:
    """Say what does not agree between the model's parts; nothing when all is well.

    Linear in the atoms, and fast enough for every start.
    """
    chain, atom_table, present = shard.chain, shard.atom_table, shard.atom_table.present
    counts = chain.n_atoms, chain.n_observations
    if counts != (len(present), atom_table.n_observations) or counts[1] > shard.seq:
        known = f"{len(present)} of {atom_table.n_observations}, among {shard.seq} observations"
        return [f"{counts[0]} atoms of {counts[1]} observations, known as {known}"]
    if len(present) == 0:
        return []
    faults, labels = [], chain.labels[present]
    if (labels < 0).any() or len(np.unique(labels)) != chain.n_blocks:
        faults.append("the chain's blocks are not those that its observations are in")
    rows = chain.atom_rows(present)
    if not np.isfinite(rows).all():
        return [*faults, "the statistics of an observation are not finite"]
    return faults + shard.table.faults(atom_table.cluster[present], rows)
