"""Whether a background component earns its place: held-out density and index with and without it.

    python -m benchmarks.background wine breast-cancer --seeds 2

Each row is background with a learned probability ~ Beta(1, 19), under one wide Student density with
three degrees of freedom at the table's robust location, ``--width`` times its robust scale; the
others are a Dirichlet process mixture of Gaussians whose base measure is learned. A sweep is two
Gibbs scans, in which each row weighs background against every block and a new one, and sequential
split-merge among the others. The same sampler without background runs beside it on the same rows
(those of ``benchmarks.real``, 1,200 at most).

Weald has no such component, as it did not earn its keep here: see ``docs/choosing.md``.
"""

import argparse
import warnings
from typing import NamedTuple

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import multivariate_t
from sklearn.metrics import adjusted_rand_score

from benchmarks.real import prepared
from weald.mcmc.estimate.consensus import consensus_partition
from weald.mcmc.estimate.groups import group_tree
from weald.mcmc.estimate.predictive import Predictive
from weald.mcmc.gibbs.gibbs import log_alone, seating_weights
from weald.mcmc.hyperparameters.learner import learner_of
from weald.mcmc.offline.fit import FitSettings, family_for
from weald.mcmc.offline.resolution import within_resolution
from weald.mcmc.offline.start import atoms_of
from weald.mcmc.split_merge import sams
from weald.mcmc.state.atom_state import State, make_state, make_tally, set_labels
from weald.treecore.compiled.compile import compiled
from weald.treecore.compiled.draw import choose
from weald.treecore.compiled.reference import by_reference
from weald.treecore.family.gaussian.robust_spread import without_extremes
from weald.treecore.family.interface.base import workspace
from weald.treecore.family.totals import totals_of_groups
from weald.treecore.partition.partition import (
    Model,
    close_all_blocks,
    lift,
    make_atoms,
    open_block,
    place,
)
from weald.treecore.prior import DirichletProcess
from weald.treecore.prior.sequential import canonical_labels

Values = NDArray[np.float64]
Labels = NDArray[np.int64]

MOST_ROWS = 1200
SWEEPS, RESTS = 100, 10
STARTING_BLOCKS = 10
FREEDOM = 3
# Beta prior of the background's share.
IN, OUT = 1.0, 19.0
NOBODY = -1e300


class Found(NamedTuple):
    """Background (n, -1) and clusters of the rows, groups of these, held-out log densities (q)."""

    clusters: Labels
    groups: Labels
    densities: Values


@compiled
def scan(
    rng: Generator,
    state: State,
    model: Model,
    log_background: Values,
    n_background: int,
    alpha: float,
) -> int:
    """Redraw every row among background (label -1), the blocks and a new one.

    Returns how many rows are background then. Seating weights of a Dirichlet process lack its
    normaliser, which counts here as the number of the others is not fixed.
    """
    state, model = by_reference(state), by_reference(model)
    partition, weights = state.partition, state.log_weights
    n = log_background.shape[0]
    for i in range(n):
        if partition.label[i] >= 0:
            lift(state.atoms, partition, i)
        else:
            n_background -= 1
        k = seating_weights(state, model, i, log_alone(state, model, i))
        others = n - 1 - n_background
        weights[k + 1] = np.log(IN + n_background) + log_background[i]
        weights[k + 1] -= np.log(OUT + others) - np.log(alpha + others)
        chosen = choose(rng, weights, k + 2)
        if chosen == k + 1:
            n_background += 1
        else:
            slot = open_block(partition) if chosen == k else partition.slots[chosen]
            place(state.atoms, partition, i, slot)
    return n_background


def numbered(labels: Labels) -> Labels:
    """The same rows together, blocks from 0 on and background -1."""
    found = np.full(labels.size, -1)
    inside = labels >= 0
    found[inside] = canonical_labels(labels[inside])
    return found


def fitted(seen: Values, others: Values, seed: int, width: float | None) -> Found:
    """Sample and summarise; without ``width`` nobody is background."""
    rng = Generator(PCG64(seed))
    seen = within_resolution(seen)
    n, clean = len(seen), without_extremes(seen)
    family = family_for(seen, FitSettings(family="gaussian"))
    prior, learner, work = DirichletProcess(learn=True), learner_of(family, seen), workspace(family)
    scale = np.atleast_2d(np.cov(clean.T)) * (width or 1.0) ** 2 * (FREEDOM - 2) / FREEDOM
    wide = multivariate_t(clean.mean(axis=0), scale, df=FREEDOM)
    log_background = np.full(n, NOBODY) if width is None else np.asarray(wide.logpdf(seen))
    atoms = atoms_of(family, seen)
    labels, n_background = canonical_labels(rng.integers(0, STARTING_BLOCKS, n)), 0
    draws, densities = [], []
    for sweep in range(SWEEPS):
        state = make_state(family, atoms, np.zeros(n, dtype=np.int64))
        close_all_blocks(state.partition)
        set_labels(atoms, state.partition, labels)
        blocks = state.partition.slots[: int(state.partition.n_blocks[0])]
        prior = prior.resample(rng, state.partition.size[blocks])
        if sweep >= RESTS:
            family = learner.step(rng, family, state.partition.rows[blocks])
            atoms = make_atoms(family, atoms.rows, atoms.size, work)
            state = state._replace(atoms=atoms)
            close_all_blocks(state.partition)
            set_labels(atoms, state.partition, labels)
        model = Model(family, prior.seating(n, n), work)
        for _ in range(2):
            n_background = scan(rng, state, model, log_background, n_background, prior.alpha)
            live = np.flatnonzero(state.partition.label[:n] >= 0)
            sams.sweep(rng, state, model, sams.SamsPlan(20), live, make_tally())
        labels = numbered(state.partition.label[:n])
        if 2 * sweep < SWEEPS:
            continue
        draws.append(labels)
        inside, k = labels >= 0, int(labels.max()) + 1
        totals = totals_of_groups(family, seen[inside], labels[inside], k)
        mixture = Predictive.of(family, prior, np.arange(k), totals).log_joint(others)
        density = np.asarray(logsumexp(mixture, axis=1))
        if width is not None:
            share = (IN + n_background) / (IN + OUT + n)
            density = np.logaddexp(np.log1p(-share) + density, np.log(share) + wide.logpdf(others))
        densities.append(density)
    clusters = shown(np.stack(draws))
    groups, inside = np.full(n, -1), clusters >= 0
    tree = group_tree(family, seen[inside], clusters[inside])
    groups[inside] = tree.cut()[clusters[inside]]
    found = logsumexp(np.stack(densities), axis=0) - np.log(len(densities))
    return Found(clusters, groups, np.asarray(found))


def shown(draws: Labels) -> Labels:
    """The partition of least expected loss of draws (t, n); background where half of them say so.

    A row that is background in some draws is alone in these.
    """
    apart = draws.copy()
    for draw in apart:
        alone = np.flatnonzero(draw < 0)
        draw[alone] = draw.max() + 1 + np.arange(alone.size)
    inside = (draws < 0).mean(axis=0) <= 0.5
    found = np.full(draws.shape[1], -1)
    kept = np.stack([canonical_labels(draw[inside]) for draw in apart])
    found[inside] = consensus_partition(kept, "vi", [])
    return found


def main() -> None:
    """Both samplers on the tables that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--width", type=float, default=2.0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("table              background  clusters     groups  in none   gain in density")
    for name in asked.tables:
        table = prepared(name)
        if table is None:
            continue
        seen, others, labels = table
        seen, labels = np.ascontiguousarray(seen[:MOST_ROWS]), labels[:MOST_ROWS]
        for seed in range(asked.seeds):
            without = fitted(seen, others, seed, None)
            found = fitted(seen, others, seed, asked.width)
            gain = found.densities - without.densities
            for word, each in (("without", without), ("with", found)):
                indices = [adjusted_rand_score(labels, of) for of in (each.clusters, each.groups)]
                line = f"{name:18} {word:10} {indices[0]:9.2f}  {indices[1]:9.2f}"
                line += f"  {np.mean(each.clusters < 0):7.2f}"
                if each is found:
                    error = gain.std(ddof=1) / np.sqrt(gain.size)
                    line += f"   {gain.mean():+.3f} +- {error:.3f}"
                print(line, flush=True)


if __name__ == "__main__":
    main()
