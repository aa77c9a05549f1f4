"""The posterior predictive of the published clusters, for observations that are not stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from weald.treecore.errors import ObservationError
from weald.treecore.family.interface.base import Family, refuse_impossible
from weald.treecore.family.totals import add_observations, empty_totals, log_marginals
from weald.treecore.prior import PartitionPrior

if TYPE_CHECKING:
    from weald.mcmc.offline.transformation import Transformation

__all__ = ["Predictive"]

# Rows of statistics that one call holds at a time.
_CHUNK = 65_536


@dataclass(frozen=True)
class Predictive:
    """The clusters of a partition, ready to be asked; nothing that it is asked changes it.

    Parameters
    ----------
    family : NamedTuple
    clusters : ndarray of int64, shape (k,)
        Their ids.
    log_weights : ndarray of float64, shape (k + 1,)
        Log probability of joining each cluster, and last of starting a new one, before the
        observation's values are looked at.
    rows : ndarray of float64, shape (k + 1, m)
        Statistics of each cluster, and last those of an empty one.
    log_marginal : ndarray of float64, shape (k + 1,)
        Their log marginal likelihoods.
    transformation : Transformation, optional
        Through which the family sees the values that are asked about.
    takes : NamedTuple, optional
        The family with the base measure that says which values there can be; by default ``family``.
    """

    family: Any
    clusters: NDArray[np.int64]
    log_weights: NDArray[np.float64]
    rows: NDArray[np.float64]
    log_marginal: NDArray[np.float64]
    transformation: Transformation | None = None
    takes: Any = None

    @classmethod
    def of(
        cls,
        family: Family,
        prior: PartitionPrior,
        clusters: NDArray[np.int64],
        rows: NDArray[np.float64],
        transformation: Transformation | None = None,
    ) -> Self:
        """Prepare the answers.

        Parameters
        ----------
        family : NamedTuple
        prior : PartitionPrior
        clusters : ndarray of int64, shape (k,)
            Ids, at least one.
        rows : ndarray of float64, shape (k, m)
            Their statistics; the first column counts observations.
        transformation : Transformation, optional
            Through which the family sees the values that are asked about.
        """
        every = np.vstack([rows, np.zeros((1, rows.shape[1]))])
        sizes = np.rint(rows[:, 0]).astype(np.int64)
        weights, marginals = prior.log_predictive(sizes), log_marginals(family, every)
        return cls(family, clusters, weights, every, marginals, transformation)

    def log_joint(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log probability of joining each cluster and having these values, and last of a new one.

        Parameters
        ----------
        values : ndarray of float64, shape (q, d)

        Returns
        -------
        ndarray of float64, shape (q, k + 1)
            See `log_density` for its log-sum-exp over a row.

        Raises
        ------
        ObservationError
            When the family cannot take a row; the message names the row.
        """
        if self.transformation is not None:
            if low := self.transformation.unfit(values):
                row, column = low[0]
                value = float(values[row, column])
                raise ObservationError(
                    f"row {row}: number {column + 1}, {value:g}, has no logarithm"
                )
            values = self.transformation.seen(values)
        takes = self.family if self.takes is None else self.takes
        refuse_impossible(takes, values)
        answers = np.empty((len(values), len(self.rows)))
        step = max(1, _CHUNK // len(self.rows))
        for start in range(0, len(values), step):
            answers[start : start + step] = self._log_joint(values[start : start + step])
        return answers

    def log_density(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log predictive density of each observation under the whole mixture.

        Parameters
        ----------
        values : ndarray of float64, shape (q, d)

        Returns
        -------
        ndarray of float64, shape (q,)

        Raises
        ------
        ObservationError
            When the family cannot take a row; the message names the row.
        """
        density: NDArray[np.float64] = logsumexp(self.log_joint(values), axis=1)
        return density

    def _log_joint(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The density of a row under a cluster is p(cluster and row) / p(cluster)."""
        single = empty_totals(self.family, len(values))
        groups = np.arange(len(values), dtype=np.int64)
        add_observations(self.family, np.ascontiguousarray(values), groups, single)
        joined = (single[:, None, :] + self.rows[None, :, :]).reshape(-1, self.rows.shape[1])
        log_joined = log_marginals(self.family, joined).reshape(len(values), -1)
        log_joint: NDArray[np.float64] = self.log_weights + log_joined - self.log_marginal
        return log_joint
