"""The posterior predictive of the published clusters, for records that were not stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ..treecore.family import base
from .errors import NotReadyError

if TYPE_CHECKING:
    from .state import State

__all__ = ["Predictive"]


@dataclass(frozen=True)
class Predictive:
    """Densities of the published clusters, ready to be asked.

    Parameters
    ----------
    family : NamedTuple
    clusters : list of int
        Their ids.
    log_weights : float64[k + 1]
        Log probability of joining each cluster, and last of starting a new one, before the
        record's values are looked at.
    table : float64[k + 1, p]
        A row for each cluster, and last one for an empty cluster.
    """

    family: Any
    clusters: list[int]
    log_weights: NDArray[np.float64]
    table: NDArray[np.float64]

    @classmethod
    def of(cls, state: State) -> Predictive:
        """Read the published clusters of a stream.

        Raises
        ------
        NotReadyError
            If it has none yet.
        """
        from ..treecore.prior import build_prior

        found = state.reader.clusters(state.stream)
        if not found:
            raise NotReadyError(
                f"stream {state.stream} has no clusters yet", next_step="weald status"
            )
        family = state.family
        rows = np.vstack([each.statistics for each in found])
        rows = np.vstack([rows, np.zeros((1, rows.shape[1]))])
        table = np.zeros((len(rows), base.predictive_width(family)))
        work = base.workspace(family)
        for k in range(len(rows)):
            base.fill_predictive(family, rows, k, table, k, work)
        prior = build_prior(state.spec.prior, state.spec.prior_params)
        sizes = np.array([each.n_observations for each in found], dtype=np.int64)
        ids = [each.cluster for each in found]
        return cls(family, ids, prior.log_predictive(sizes), table)

    def __call__(self, values: NDArray[np.float64]) -> list[dict[str, Any]]:
        """Return one answer per row of ``values`` float64[q, d].

        ``cluster`` is the most probable one (None for a new one), ``probability`` its posterior
        probability, ``new_probability`` that of a new one, ``log_density`` the log predictive
        density of the row.
        """
        return [self._answer(row) for row in self._log_joint(values)]

    def _log_joint(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = np.zeros((1, base.statistics_width(self.family)))
        out = np.empty((len(values), len(self.table)))
        for q in range(len(values)):
            base.observe(self.family, values, q, rows, 0)
            for k in range(len(self.table)):
                density = base.log_predictive(self.family, self.table, k, rows, 0)
                out[q, k] = self.log_weights[k] + density
        return out

    def _answer(self, log_joint: NDArray[np.float64]) -> dict[str, Any]:
        log_density = float(logsumexp(log_joint))
        probability = np.exp(log_joint - log_density)
        best = int(np.argmax(probability))
        return {
            "cluster": self.clusters[best] if best < len(self.clusters) else None,
            "probability": float(probability[best]),
            "new_probability": float(probability[-1]),
            "log_density": log_density,
        }
