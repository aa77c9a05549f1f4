"""Rows that a family cannot take, because numbers of them are missing, put where they fit best.

A Gaussian cluster with a full covariance knows the distribution of any of its columns: of a
normal-inverse-Wishart measure those of some features are one again, with as many fewer degrees of
freedom as features are left out. So a row is predicted, exactly, by what it has. What it has says
nothing about the clusters in turn: these are those of the rows that are whole.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from weald.treecore.family import FAMILIES, spec_of
from weald.treecore.family.interface.base import Family
from weald.treecore.family.totals import log_predictives, single_rows, totals_of_groups
from weald.treecore.prior.base import PartitionPrior

__all__ = ["placed"]

Values = NDArray[np.float64]
Labels = NDArray[np.int64]


def placed(
    family: Family,
    prior: PartitionPrior,
    whole: tuple[Values, Labels],
    partly: Values,
) -> tuple[Labels, Values]:
    """The most probable cluster of each row (q), and how probable it is among the clusters.

    Parameters
    ----------
    family, prior : NamedTuple
    whole : ndarray of float64, shape (n, d), and of int64, shape (n,)
        Rows that the family takes, and their clusters from 0 on.
    partly : ndarray of float64, shape (q, d)
        Rows with gaps (NaN) in columns of which the family wants all.
    """
    values, labels = whole
    k = int(labels.max()) + 1
    weights = prior.log_predictive(np.bincount(labels, minlength=k))[:k]
    joint = np.tile(weights, (len(partly), 1))
    for name, columns, params in _parts(family, values.shape[1]):
        own, asked = values[:, columns], partly[:, columns]
        known = ~np.isnan(asked) if name == "gaussian" else np.ones(asked.shape, dtype=np.bool_)
        for pattern in np.unique(known, axis=0):
            rows = np.flatnonzero((known == pattern).all(axis=1))
            if not pattern.any():
                continue
            told = _marginal(params, pattern) if name == "gaussian" else params
            there = np.ascontiguousarray(own[:, pattern])
            part = FAMILIES[name].build(told, there)
            single = single_rows(part, np.ascontiguousarray(asked[np.ix_(rows, pattern)]))
            joint[rows] += log_predictives(part, single, totals_of_groups(part, there, labels, k))
    found = joint.argmax(axis=1).astype(np.int64)
    return found, np.exp(joint.max(axis=1) - logsumexp(joint, axis=1))


def _parts(family: Family, d: int) -> list[tuple[str, list[int], dict[str, Any]]]:
    """Name, columns and parameters of each of the independent parts of a family."""
    spec = spec_of(family)
    params = spec.parameters(family)
    if spec.name != "mixed":
        return [(spec.name, list(range(d)), params)]
    return [(part["family"], part["columns"], part["params"]) for part in params["parts"]]


def _marginal(params: dict[str, Any], known: NDArray[np.bool_]) -> dict[str, Any]:
    """Parameters of the measure over some of the features (d)."""
    told = dict(params, nu=params["nu"] - int((~known).sum()))
    for name in ("mean", "origin"):
        if name in params:
            told[name] = np.asarray(params[name])[known].tolist()
    told["psi"] = np.asarray(params["psi"])[np.ix_(known, known)].tolist()
    return told
