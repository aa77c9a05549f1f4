"""The posterior predictive of the published clusters, for records that were not stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ..treecore.prior import build_prior
from ..treecore.totals import add_observations, empty_totals, log_marginals
from .errors import NotReadyError

if TYPE_CHECKING:
    from .state import State

__all__ = ["Predictive"]


# Rows of statistics that one call holds at a time.
CHUNK = 65_536


@dataclass(frozen=True)
class Predictive:
    """The published clusters, ready to be asked.

    Parameters
    ----------
    family : NamedTuple
    clusters : list of int
        Their ids.
    log_weights : float64[k + 1]
        Log probability of joining each cluster, and last of starting a new one, before the
        record's values are looked at.
    rows : float64[k + 1, m]
        Statistics of each cluster, and last those of an empty one.
    log_marginal : float64[k + 1]
        Their log marginal likelihoods.
    """

    family: Any
    clusters: list[int]
    log_weights: NDArray[np.float64]
    rows: NDArray[np.float64]
    log_marginal: NDArray[np.float64]

    @classmethod
    def of(cls, state: State) -> Predictive:
        """Read the published clusters of a stream.

        Raises
        ------
        NotReadyError
            If it has none yet.
        """
        found = state.reader.clusters(state.stream)
        if not found:
            raise NotReadyError(
                f"stream {state.stream} has no clusters yet", next_step="weald status"
            )
        empty = np.zeros_like(found[0].statistics)
        rows = np.vstack([*(each.statistics for each in found), empty])
        # As the chain had learned them by the newest publication, whose clusters these are.
        published = state.reader.publications(state.stream, limit=1)
        learned = published[-1].prior_params if published else {}
        prior = build_prior(state.spec.prior, learned or state.spec.prior_params)
        sizes = np.array([each.n_observations for each in found], dtype=np.int64)
        return cls(
            family=state.family,
            clusters=[each.cluster for each in found],
            log_weights=prior.log_predictive(sizes),
            rows=rows,
            log_marginal=log_marginals(state.family, rows),
        )

    def __call__(self, values: NDArray[np.float64]) -> list[dict[str, Any]]:
        """Return one answer per row of ``values`` float64[q, d].

        ``cluster`` is the most probable one (None for a new one), ``probability`` its posterior
        probability, ``new_probability`` that of a new one, ``log_density`` the log predictive
        density of the row.
        """
        step = max(1, CHUNK // len(self.rows))
        chunks = (values[start : start + step] for start in range(0, len(values), step))
        return [self._answer(row) for chunk in chunks for row in self._log_joint(chunk)]

    def _log_joint(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log weight of each record joining each cluster: p(rows and record) / p(rows)."""
        single = empty_totals(self.family, len(values))
        groups = np.arange(len(values), dtype=np.int64)
        add_observations(self.family, np.ascontiguousarray(values), groups, single)
        joined = (single[:, None, :] + self.rows[None, :, :]).reshape(-1, self.rows.shape[1])
        log_joined = log_marginals(self.family, joined).reshape(len(values), -1)
        log_joint: NDArray[np.float64] = self.log_weights + log_joined - self.log_marginal
        return log_joint

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
