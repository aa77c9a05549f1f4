"""Where records that were not stored would go, by the published clusters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from weald.mcmc.estimate import predictive
from weald.treecore.prior import PartitionPrior, build_prior

from .errors import NoAnswerYetError

if TYPE_CHECKING:
    from .stored_stream import StoredStream

__all__ = ["PublishedPredictive"]


@dataclass(frozen=True)
class PublishedPredictive:
    """The published clusters of a stream, ready to be asked, and the prior that weighs them."""

    clusters: predictive.Predictive
    prior: PartitionPrior

    @classmethod
    def of(cls, state: StoredStream) -> PublishedPredictive:
        """Read the published clusters of a stream.

        Raises
        ------
        NotReadyError
            If it has none yet.
        """
        found = state.reader.clusters(state.stream)
        if not found:
            raise NoAnswerYetError(
                f"stream {state.stream} has no clusters yet", next_step="weald status"
            )
        ids = np.array([each.cluster for each in found], dtype=np.int64)
        rows = np.vstack([each.statistics for each in found])
        # As the chain had learned them by the newest publication, whose clusters these are.
        published = state.reader.publications(state.stream, limit=1)
        learned = published[-1].prior_params if published else {}
        prior = build_prior(state.spec.prior, learned or state.spec.prior_params)
        asked = predictive.Predictive.of(state.family, prior, ids, rows, state.transformation)
        return cls(replace(asked, takes=state.first_family), prior)

    def __call__(self, values: NDArray[np.float64]) -> list[dict[str, Any]]:
        """Return one answer per row of ``values`` float64[q, d].

        ``cluster`` is the most probable one (None for a new one), ``probability`` its posterior
        probability, ``new_probability`` that of a new one, ``log_density`` the log predictive
        density of the row.
        """
        return [self._answer(row) for row in self.clusters.log_joint(values)]

    def _answer(self, log_joint: NDArray[np.float64]) -> dict[str, Any]:
        log_density = float(logsumexp(log_joint))
        probability = np.exp(log_joint - log_density)
        best = int(np.argmax(probability))
        ids = self.clusters.clusters
        return {
            "cluster": int(ids[best]) if best < len(ids) else None,
            "probability": float(probability[best]),
            "new_probability": float(probability[-1]),
            "log_density": log_density,
        }
