"""What makes a cluster different, in a few words, and how surprising its observations are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Any

from .numbers import number, spread_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weald.storage.queries.base import ClusterRow, ObservationRow

    from .prediction import Predictive
    from .stored_stream import StoredStream

__all__ = ["Portraits"]

# A description is of what stands out by at least so many standard deviations of the whole.
STANDS_OUT = 0.5
MOST_WORDS = 3
# Observations of a cluster, and of the whole stream, that are looked at.
LOOKED_AT, REFERENCE = 20, 400

Feature = Mapping[str, Any]


class Portraits:
    """Clusters against the whole of their stream.

    Parameters
    ----------
    state : StoredStream
    everything : sequence of ClusterRow
        All live clusters.
    """

    def __init__(self, state: StoredStream, everything: Sequence[ClusterRow]) -> None:
        self._state = state
        self._everything = everything

    @cached_property
    def _features(self) -> dict[int, dict[str, Feature]]:
        """Summaries of every live cluster's features, without the buckets of texts."""
        state = self._state
        shown = set(state.features if state.network else state.columns)
        return {
            row.cluster: {
                each.name: {"centre": each.centre, "spread": each.spread, "n": each.n}
                for each in (self._state.describe(row) if shown else ())
                if each.name in shown
            }
            for row in self._everything
        }

    def contrast(self, cluster: int) -> list[dict[str, Any]]:
        """Return one row per feature: the cluster, the rest, and by how much they differ.

        ``contrast`` is the difference of the means in standard deviations of the rest, largest
        first; None for categories, which have no mean.
        """
        own = self._features.get(cluster, {})
        rows = []
        for name, feature in own.items():
            others = [each[name] for at, each in self._features.items() if at != cluster]
            rest = _pooled(others)
            rows.append(
                {
                    "feature": name,
                    "typical": feature["centre"],
                    "spread": feature["spread"],
                    "rest": rest["centre"],
                    "rest_spread": rest["spread"],
                    "contrast": _contrast(feature, rest),
                }
            )
        return sorted(rows, key=lambda row: -abs(row["contrast"] or 0.0))

    def description(self, cluster: int) -> str:
        """Say in a few words what the cluster is: a template of its texts, or what stands out."""
        if self._state.schema.has_text:
            from weald.stream.record.words import template

            members = self._state.reader.members(self._state.stream, cluster, limit=LOOKED_AT)
            return template([each.text for each in members if each.text is not None])
        words = []
        for row in self.contrast(cluster):
            if row["contrast"] is None:
                if row["typical"] != row["rest"]:
                    words.append(f"{row['feature']} {row['typical']}")
            elif abs(row["contrast"]) >= STANDS_OUT:
                side = "high" if row["contrast"] > 0 else "low"
                words.append(f"{row['feature']} {side} ({number(row['typical'])})")
        return ", ".join(words[:MOST_WORDS]) or "typical of the stream"

    @cached_property
    def predictive(self) -> Predictive:
        """The published clusters, ready to be asked."""
        from .prediction import Predictive

        return Predictive.of(self._state)

    def surprise(self, members: Sequence[ObservationRow]) -> NDArray[np.float64]:
        """Return minus the log predictive density of each observation under the whole mixture."""
        import numpy as np
        from scipy.special import logsumexp

        values = np.stack([each.values for each in members])
        surprise: NDArray[np.float64] = -logsumexp(self.predictive.clusters.log_joint(values), 1)
        return surprise

    @cached_property
    def _reference(self) -> NDArray[np.float64]:
        import numpy as np

        newest = self._state.reader.newest(self._state.stream, limit=REFERENCE)
        return np.sort(self.surprise(newest))

    def anomaly(self, cluster: int) -> float | None:
        """Return how surprising the cluster's newest observations are, between 0 and 1.

        The mean share of the stream's newest observations that are less surprising; None of a
        network's, which are not surprising one by one.
        """
        import numpy as np

        if self._state.network:
            return None
        members = self._state.reader.members(self._state.stream, cluster, limit=LOOKED_AT)
        if not members:
            return None
        ranks = np.searchsorted(self._reference, self.surprise(members))
        return float(ranks.mean() / len(self._reference))

    def told(self, cluster: int, members: Sequence[ObservationRow]) -> list[dict[str, Any]]:
        """Return how well each observation fits the cluster, the best fitting first."""
        import numpy as np
        from scipy.special import logsumexp

        if not members or self._state.network:
            return []
        values = np.stack([each.values for each in members])
        log_joint = self.predictive.clusters.log_joint(values)
        at = list(map(int, self.predictive.clusters.clusters)).index(cluster)
        total = logsumexp(log_joint, 1)
        rows = [
            {
                "key": each.key,
                "seq": each.seq,
                "log_density": float(density),
                "membership": float(np.exp(density - whole)),
                "text": each.text,
            }
            for each, density, whole in zip(members, log_joint[:, at], total, strict=True)
        ]
        return sorted(rows, key=lambda row: -row["log_density"])


def _pooled(features: Sequence[Feature]) -> Feature:
    """Mean and standard deviation of several groups together; the commonest of categories."""
    filled = [each for each in features if each["n"]]
    n = sum(each["n"] for each in filled)
    if not n:
        return {"centre": None, "spread": None, "n": 0}
    if any(isinstance(each["centre"], str) for each in filled):
        weights: dict[Any, int] = {}
        for each in filled:
            weights[each["centre"]] = weights.get(each["centre"], 0) + each["n"]
        return {"centre": max(weights, key=lambda name: weights[name]), "spread": None, "n": n}
    mean = sum(each["n"] * each["centre"] for each in filled) / n
    between = sum(each["n"] * (each["centre"] - mean) ** 2 for each in filled) / n
    within = sum(each["n"] * _variance(each) for each in filled) / n
    return {"centre": mean, "spread": sqrt(between + within), "n": n}


def _variance(feature: Feature) -> float:
    """Of a flag or a count, which are described without a spread, what their mean implies."""
    if feature["spread"] is not None:
        return float(feature["spread"]) ** 2
    mean = float(feature["centre"])
    return mean * (1.0 - mean) if 0.0 <= mean <= 1.0 else abs(mean)


def _contrast(feature: Feature, rest: Feature) -> float | None:
    if isinstance(feature["centre"], str) or rest["centre"] is None:
        return None
    spread = rest["spread"] or sqrt(_variance(feature))
    return float(feature["centre"] - rest["centre"]) / spread if spread else None


def contrast_text(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the cluster's and the rest's value as people read them."""
    own = {"centre": row["typical"], "spread": row["spread"]}
    rest = {"centre": row["rest"], "spread": row["rest_spread"]}
    return spread_text(own), spread_text(rest)
