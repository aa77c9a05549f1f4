"""Whether a kernel, its hyperparameters' moves and the drawing of data agree about one joint law.

``python -m tests.exact.calibration`` runs both tests at length for every exact kernel; the suite
runs a short form. They need no more than the ability to draw data from the model, so they hold for
kernels with drawn parameters too, which no enumeration reaches.

- Geweke's joint test: draw data given the partition, move the partition given the data, and so on.
  The partition and the hyperparameters must come out as the prior has them, which is enumerated.
  Geweke (2004), Journal of the American Statistical Association 99, section 3.
- Simulation-based calibration: a partition from the prior and data from it; among draws given the
  data its log joint has every rank equally often. Talts et al. (2018), algorithm 2.
"""

import argparse
import sys
from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.stats import chi2

from tests.exact.enumeration import Shape, partitions
from weald.mcmc.chain.position import Position
from weald.mcmc.contract import Kernel
from weald.mcmc.offline.start import atoms_of, grow_forest
from weald.mcmc.schedule.kernels import KERNELS
from weald.mcmc.schedule.registry import PAST
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import observe, spec_of, statistics_width
from weald.treecore.guide.guide import freeze
from weald.treecore.prior import PartitionPrior, build_prior

N = 5
N_BATCHES = 25
# Draws that a rank is one among.
N_RANKED = 9
_FAMILY = {"mean": [0.0], "kappa": 0.5, "nu": 3.0, "psi": [[1.0]]}
# Learned concentration: shape and rate of its Gamma law.
_SHAPE, _RATE = 2.0, 1.5

Values = NDArray[np.float64]
Labels = NDArray[np.int64]


def concentrations() -> tuple[Values, Values]:
    """A grid over the concentration with its probabilities a priori."""
    grid = np.exp(np.linspace(-9.0, 4.0, 131))
    weight = grid**_SHAPE * np.exp(-_RATE * grid)
    return grid, weight / weight.sum()


def dirichlet(alpha: float) -> PartitionPrior:
    """Dirichlet process that learns its concentration."""
    given = {"alpha": alpha, "learn": True, "shape": _SHAPE, "rate": _RATE}
    return build_prior("dp", given)


def prior_table() -> dict[Shape, float]:
    """Probability of every partition a priori, the concentration integrated out."""
    shapes = partitions(N)
    table = np.zeros(len(shapes))
    for alpha, weight in zip(*concentrations(), strict=True):
        prior = dirichlet(float(alpha))
        table += weight * np.exp([prior.log_probability(np.bincount(each)) for each in shapes])
    return dict(zip(shapes, (table / table.sum()).tolist(), strict=True))


def summary(labels: Labels) -> list[float]:
    """Blocks, squared sizes, and whether the first two are together."""
    sizes = np.bincount(labels)
    return [float(sizes.shape[0]), float((sizes**2).sum()), float(labels[0] == labels[1])]


def draw_values(rng: Generator, family: Any, labels: Labels) -> Values:
    """Observations (n, 1) given the partition, one after another from the predictives."""
    rows = np.zeros((N + 1, statistics_width(family)))
    values = np.zeros((N, 1))
    for i in range(N):
        values[i] = spec_of(family).draw(family, rows[labels[i]], rng, 1)[0]
        observe(family, values, i, rows, N)
        rows[labels[i]] += rows[N]
    return values


def stand(
    rng: Generator, family: Any, values: Values, labels: Labels, prior: PartitionPrior
) -> Position:
    """A chain on these data; its guides are drawn without a look at the partition."""
    atoms = atoms_of(family, values)
    forest = grow_forest(family, build_prior("dp", {"alpha": 1.0}), atoms)
    position = Position(family, atoms, labels, prior, lambda model: freeze(model, forest))
    position.guides = tuple(rng.integers(0, 3, (2, N)))
    return position


def move(rng: Generator, position: Position, kernels: Sequence[Kernel[Position]]) -> None:
    position.resample(rng)
    for kernel in kernels:
        kernel.sweep(rng, position)


def geweke(kernels: Sequence[Kernel[Position]], n_steps: int, seed: int) -> Values:
    """Standard errors by which summaries and the concentration are off the prior (4)."""
    rng = np.random.default_rng(seed)
    family = FAMILIES["gaussian"].build(_FAMILY, np.zeros((1, 1)))
    labels, prior = np.zeros(N, dtype=np.int64), dirichlet(1.0)
    found = np.zeros((n_steps, 4))
    for at in range(n_steps):
        position = stand(rng, family, draw_values(rng, family, labels), labels, prior)
        move(rng, position, kernels)
        labels, prior = position.labels(), position.prior
        found[at] = [*summary(labels), position.hyperparameters()["alpha"]]
    table = prior_table()
    expected = sum(p * np.array(summary(np.array(shape))) for shape, p in table.items())
    expected = np.append(expected, _SHAPE / _RATE)
    batches = found[: n_steps - n_steps % N_BATCHES].reshape(N_BATCHES, -1, 4).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / sqrt(N_BATCHES)
    return np.asarray((batches.mean(axis=0) - expected) / error)


def ranks(kernels: Sequence[Kernel[Position]], n_sets: int, thin: int, seed: int) -> Labels:
    """Rank (n_sets, 0 to ``N_RANKED``) of the true log joint among draws ``thin`` sweeps apart."""
    rng = np.random.default_rng(seed)
    family = FAMILIES["gaussian"].build(_FAMILY, np.zeros((1, 1)))
    table = prior_table()
    shapes, scale = list(table), dirichlet(1.0)
    found = np.zeros(n_sets, dtype=np.int64)
    for at in range(n_sets):
        truth = np.array(shapes[rng.choice(len(shapes), p=list(table.values()))])
        values = draw_values(rng, family, truth)
        position = stand(rng, family, values, truth, scale)
        true = position.log_joint(scale)
        position.set_labels(np.zeros(N, dtype=np.int64))
        # Partitions of one log joint are put in order by lot, the true one among them.
        below, lot = 0.0, rng.random()
        for _ in range(N_RANKED):
            for _ in range(thin):
                move(rng, position, kernels)
            drawn = position.log_joint(scale)
            tied = abs(drawn - true) < 1e-9
            below += rng.random() < lot if tied else drawn < true
        found[at] = below
    return found


def uniformity(found: Labels) -> float:
    """Probability of ranks as uneven as these, were they uniform."""
    counts = np.bincount(found, minlength=N_RANKED + 1)
    expected = found.shape[0] / (N_RANKED + 1)
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), N_RANKED))


def main() -> None:
    """Both tests at length."""
    parser = argparse.ArgumentParser(description=__doc__)
    # The prior here has no entities: what needs them is enumerated only.
    exact = [
        name
        for name, each in KERNELS.items()
        if each.claim == "exact" and not name.endswith(PAST) and "entities" not in each.needs
    ]
    parser.add_argument("--kernel", action="append", choices=list(KERNELS), help="only this one")
    parser.add_argument("--steps", type=int, default=20_000, help="of the joint test")
    parser.add_argument("--sets", type=int, default=2_000, help="of data to rank among")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    said = "off the prior by standard errors (K, squares, pair, alpha)"
    sys.stdout.write(f"{'kernel':<18}{said:<62}ranks: p\n")
    for name in asked.kernel or exact:
        # Gibbs beside kernels that do not reach every partition alone.
        chosen = [KERNELS[name], KERNELS["gibbs"]] if name in _REDUCIBLE else [KERNELS[name]]
        off = geweke(chosen, asked.steps, asked.seed)
        even = uniformity(ranks(chosen, asked.sets, _THIN.get(name, 4), asked.seed))
        shown = "  ".join(f"{each:+6.2f}" for each in off)
        sys.stdout.write(f"{name:<18}{shown:<62}{even:.4f}\n")
        sys.stdout.flush()


# Guided by two partitions that need not disagree on every pair.
_REDUCIBLE = ("accord", "arm", "sarm", "bsm")
# Sweeps between draws of those that leave one cluster, where chains begin, slowly.
_THIN = {"gibbs-supc": 64, "slice": 32}

if __name__ == "__main__":
    main()
