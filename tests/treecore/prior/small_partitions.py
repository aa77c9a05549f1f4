"""Every partition of a few observations, and every prior to try on them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.treecore.prior import PartitionPrior, build_prior

Labels = tuple[int, ...]

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "dp": ("dp", {"alpha": 1.3}),
    "dp-rare": ("dp", {"alpha": 0.01}),
    "py": ("pitman-yor", {"alpha": 1.0, "discount": 0.5}),
    "py-negative": ("pitman-yor", {"alpha": -0.3, "discount": 0.6, "g": 2.5}),
    "py-dp": ("pitman-yor", {"alpha": 0.7, "discount": 0.0}),
    "nggp": ("nggp", {"alpha": 0.7, "sigma": 0.25}),
    "inverse-gaussian": ("nggp", {"alpha": 1.0, "sigma": 0.5, "log_u": 0.4}),
    "nggp-heavy": ("nggp", {"alpha": 2.5, "sigma": 0.8}),
    "nggp-light": ("nggp", {"alpha": 0.02, "sigma": 0.03}),
    "nggp-dp": ("nggp", {"alpha": 1.3, "sigma": 0.0}),
    "mfm": ("mfm", {"gamma": 1.0, "mean": 4.0}),
    "mfm-sparse": ("mfm", {"gamma": 0.05, "mean": 30.0}),
    "mfm-even": ("mfm", {"gamma": 20.0, "mean": 0.4}),
    "emm": ("emm", {"mu": 0.5, "sigma": 1.0, "kmax": 7}),
    "emm-few": ("emm", {"mu": 1.0, "sigma": 0.3, "kmax": 3}),
    "emm-many": ("emm", {"mu": 3.0, "sigma": 2.0, "kmax": 5000}),
}


def prior_of(case: str) -> PartitionPrior:
    return build_prior(*CASES[case])


def partitions(n: int) -> list[Labels]:
    """Labels of every partition, each numbered in order of appearance."""
    return list(_grown((), n))


def _grown(labels: Labels, n: int) -> Iterator[Labels]:
    if len(labels) == n:
        yield labels
        return
    for label in range(max(labels, default=-1) + 2):
        yield from _grown((*labels, label), n)


def sizes_of(labels: Labels) -> NDArray[np.int64]:
    return np.bincount(np.array(labels, dtype=np.int64)).astype(np.int64)


def log_prior(prior: PartitionPrior, n: int) -> NDArray[np.float64]:
    """Log probability of each of :func:`partitions`."""
    return np.array([prior.log_probability(sizes_of(labels)) for labels in partitions(n)])


def log_seated(prior: PartitionPrior, n: int) -> NDArray[np.float64]:
    """What kernels see of each of :func:`partitions`, from the tables alone."""
    seating = prior.seating(n, n)
    return np.array(
        [
            seating.log_blocks[max(labels) + 1] + seating.size_table[sizes_of(labels)].sum()
            for labels in partitions(n)
        ]
    )
