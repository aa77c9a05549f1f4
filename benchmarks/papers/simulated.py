"""Simulated data of the papers, from what they print."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.prior import build_prior

__all__ = [
    "N_KINDS",
    "attributes",
    "bernoulli_mixture",
    "mentions",
    "pair_in_doubt",
    "ring",
    "scattered",
]

N_COMPONENTS = 5
N_KINDS = 10
# Jain and Neal (2000), tables 1 to 3: probabilities of a one for the attributes 1 to 4 of each
# component, and for all further ones.
_FIRST = np.array(
    [
        [0.95, 0.95, 0.95, 0.95],
        [0.05, 0.05, 0.05, 0.05],
        [0.95, 0.05, 0.05, 0.95],
        [0.05, 0.05, 0.05, 0.05],
        [0.95, 0.95, 0.95, 0.95],
    ]
)
_FURTHER = np.array([0.95, 0.95, 0.95, 0.05, 0.05])


def attributes(m: int) -> NDArray[np.float64]:
    """Probabilities of a one (5, m): m = 6, 15 and 18 are the paper's examples 1 to 3."""
    return np.hstack([_FIRST, np.tile(_FURTHER[:, None], (1, m - _FIRST.shape[1]))])


def bernoulli_mixture(
    rng: Generator, m: int, n: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Observations (n, m) and their components (n), as many of each, in that order."""
    truth = np.arange(n, dtype=np.int64) * N_COMPONENTS // n
    return (rng.random((n, m)) < attributes(m)[truth]).astype(np.float64), truth


def pair_in_doubt(values: NDArray[np.float64], truth: NDArray[np.int64]) -> tuple[int, int]:
    """Make two observations what the items 13 and 42 of the paper are; returns which they are.

    The one is typical of component 3. The other comes from component 2, but differs in one of the
    four attributes that tell them apart, so that it may as well be of component 3: about half of
    the time they should be together.
    """
    typical = np.round(attributes(values.shape[1]))
    third, second = int(np.flatnonzero(truth == 2)[0]), int(np.flatnonzero(truth == 1)[0])
    values[third] = typical[2]
    values[second] = typical[1]
    values[second, 0] = typical[2, 0]
    return third, second


def mentions(rng: Generator, n: int) -> NDArray[np.int64]:
    """Tokens of n mentions, of 10 kinds (Wang and Russell 2015, section 5.1)."""
    return rng.integers(0, N_KINDS, n)


def ring(rng: Generator, deviation: float, n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points (n, 2) of ten round Gaussians with means 6.2 apart on a circle, and which is whose.

    With a deviation of 1 they are separated, with 2 they overlap.
    """
    angle = 2.0 * np.pi * np.arange(10) / 10
    centres = 10.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    truth = rng.integers(0, 10, n)
    return centres[truth] + deviation * rng.normal(size=(n, 2)), truth


def scattered(
    rng: Generator, n: int, discount: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points (n, 6) of Gaussians with labels (n) from a Pitman-Yor process of concentration 3.

    The larger the discount, the more of them are alone under their label.
    """
    labels = build_prior("pitman-yor", {"alpha": 3.0, "discount": discount}).sample(rng, n)
    k, d = int(labels.max()) + 1, 6
    centres = 4.0 * rng.normal(size=(k, d))
    noise = rng.normal(size=(n, d)) * rng.uniform(0.3, 1.0, size=(k, 1))[labels]
    return centres[labels] + noise, labels
