"""Collapsed Gibbs within super-clusters that are drawn by coins, as a baseline.

Each block goes to one of ``Plan.groups`` super-clusters with equal probability, whatever it holds;
then every super-cluster is scanned by itself, with the weight of a new block divided by the number
of groups. That factor is the law of the coins: with it the scan leaves the posterior invariant, so
unlike its ancestor with a size-biased grouping this form is exact, and irreducible. Atoms of one
cluster whose blocks are apart cannot meet within a scan, so it mixes more slowly than ``gibbs``;
the scans could run in parallel.

Sources: Lovell, Adams and Mansinghka (2012), ClusterCluster; Chang and Fisher (2013), section 6;
``split-merge-samplers.md`` section 6.2, law A.
"""

from functools import partial
from math import log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.gibbs import gibbs
from weald.mcmc.state.atom_state import make_state
from weald.mcmc.sweeps import Sampler, redraws
from weald.treecore.errors import ParameterError
from weald.treecore.partition.partition import Atoms, Model

from .labels import Labels, compact

__all__ = ["GibbsSupcPlan", "kernel", "sweep"]


class GibbsSupcPlan(NamedTuple):
    """``groups``: super-clusters drawn for each sweep."""

    groups: int = 4


def sweep(
    rng: Generator, atoms: Atoms, labels: Labels, model: Model, plan: GibbsSupcPlan
) -> Labels:
    """Scan all atoms (n), group by group; returns labels 0 to k - 1.

    Raises ParameterError for a prior that is not of product form.
    """
    if not model.seating.is_product:
        raise ParameterError("gibbs-supc needs a prior of product form: dp, pitman-yor or nggp")
    labels = compact(labels)
    group = rng.integers(0, plan.groups, int(labels.max()) + 1)[labels]
    slope = model.seating.slope - log(plan.groups)
    found = np.empty_like(labels)
    n_found = 0
    for g in range(plan.groups):
        inside = np.flatnonzero(group == g)
        if inside.size == 0:
            continue
        k = inside.size + 2
        seating = model.seating._replace(log_blocks=slope * np.arange(k, dtype=float), slope=slope)
        own = _some(atoms, inside)
        state = make_state(model.family, own, compact(labels[inside]))
        visited = np.arange(inside.size, dtype=np.int64)
        gibbs.sweep(rng, state, model._replace(seating=seating), visited)
        drawn = compact(state.partition.label[: inside.size])
        found[inside] = n_found + drawn
        n_found += int(drawn.max()) + 1
    return found


def _some(atoms: Atoms, chosen: Labels) -> Atoms:
    size, rows, log_marginal, single = atoms
    return Atoms(size[chosen], rows[chosen], log_marginal[chosen], single[chosen])


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""
    return redraws(entry, partial(sweep, plan=GibbsSupcPlan()))
