"""Slice sampler for mixtures over normalised random measures: Griffin and Walker (2011).

The weights of the measure are drawn, not integrated out: a Gamma jump for each block, and beside
them all further jumps that are larger than the smallest of the atoms' slice variables, of which
there are finitely many. Each atom then chooses among the jumps above its own slice by likelihood
alone. New blocks appear when an atom chooses a jump that nobody had; no proposal is rejected.

Exact and irreducible for priors of product form (Dirichlet process, Pitman-Yor given its auxiliary
variable, normalised generalised gamma given u). Labels move one at a time given the parameters, so
well separated blocks rarely split or merge. Cost: one product of all atoms with all jumps.
Sources: Griffin and Walker (2011), Journal of Computational and Graphical Statistics 20; Lee and
Choi (2015), section 2.4.
"""

from math import exp, expm1, lgamma, log

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.sweeps import Sampler, redraws
from weald.treecore.errors import ParameterError
from weald.treecore.family.parameter_draws import draw_parameters
from weald.treecore.partition.partition import Atoms, Model

from .labels import Labels, block_sums, choose_each, compact, require_dense

__all__ = ["kernel", "sweep", "unattached_jumps"]

_CHUNK = 4096


def unattached_jumps(
    rng: Generator, log_mass: float, discount: float, floor: float
) -> NDArray[np.float64]:
    """Points above ``floor`` of a Poisson process, by thinning.

    Its intensity is ``exp(log_mass) / Gamma(1 - discount) w ** (-1 - discount) exp(-w)``.
    """
    mass = exp(log_mass - lgamma(1.0 - discount))
    # Above 1 the exponential alone bounds the intensity, below 1 the power does.
    start = max(floor, 1.0)
    high = start + rng.exponential(size=rng.poisson(mass * exp(-start)))
    kept = [high[rng.random(high.size) < high ** (-1.0 - discount)]]
    if floor < 1.0:
        log_floor = log(floor)
        # Of w ** (-1 - discount) between the floor and 1; -log_floor where the discount is 0.
        area = -log_floor if discount == 0.0 else expm1(-discount * log_floor) / discount
        uniform = rng.random(rng.poisson(mass * exp(-floor) * area))
        if discount == 0.0:
            low = np.exp(uniform * log_floor)
        else:
            low = (1.0 + uniform * discount * area) ** (-1.0 / discount)
        kept.append(low[rng.random(low.size) < np.exp(floor - low)])
    return np.concatenate(kept)


def sweep(rng: Generator, atoms: Atoms, labels: Labels, model: Model) -> Labels:
    """Redraw weights, slices, parameters and all labels (n); returns labels 0 to k - 1.

    Raises ParameterError for a prior that is not of product form.
    """
    seating = model.seating
    if not (seating.is_product and seating.scale == 1.0 and -1.0 < seating.shift <= 0.0):
        raise ParameterError("slice needs a prior of product form: dp, pitman-yor or nggp")
    rows = require_dense(atoms.rows)
    labels = compact(labels)
    n, k = labels.shape[0], int(labels.max()) + 1
    counts = np.bincount(labels, weights=atoms.size, minlength=k)
    log_jumps = np.log(rng.gamma(counts + seating.shift))
    # The largest of an atom's slice variables, one for each of its observations.
    log_slice = log_jumps[labels] + np.log1p(-rng.random(n)) / atoms.size
    floor = max(exp(float(log_slice.min())), 1e-300)
    free = unattached_jumps(rng, float(seating.slope), -seating.shift, floor)
    log_jumps = np.concatenate([log_jumps, np.log(free)])
    sums = np.concatenate([block_sums(rows, labels, k), np.zeros((free.size, rows.shape[1]))])
    natural = draw_parameters(model.family, sums, rng).natural
    chosen = np.empty(n, dtype=np.int64)
    for start in range(0, n, _CHUNK):
        part = slice(start, start + _CHUNK)
        log_p = rows[part] @ natural.T
        log_p[log_jumps[None, :] <= log_slice[part, None]] = -np.inf
        chosen[part] = choose_each(rng, log_p)
    return compact(chosen)


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""
    return redraws(entry, sweep)
