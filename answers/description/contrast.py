"""What makes a cluster different, in a few words, and how surprising its observations are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from weald.answers.numbers import spread_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weald.answers.prediction import PublishedPredictive
    from weald.answers.stored_stream import StoredStream
    from weald.storage.queries.base import ClusterRow, ObservationRow
    from weald.stream.record.fields.originals import Original

__all__ = ["ClusterContrast"]

# Observations of a cluster, and of the whole stream, that are looked at.
LOOKED_AT, REFERENCE = 20, 400
# Newest observations among which clusters are compared, and of one cluster at least.
SAMPLE, LEAST_SEEN = 5000, 200


class Compared(NamedTuple):
    """Some of the observations of a cluster, or of several, among others.

    Attributes
    ----------
    columns:
        Values as they came in.
    texts:
        Of each, where they have texts; else empty.
    inside:
        Which of them are theirs.
    share:
        Of theirs in the whole stream.
    """

    columns: list[Original]
    texts: list[str]
    inside: NDArray[np.bool_]
    share: float


class ClusterContrast:
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
    def _sample(self) -> Sequence[ObservationRow]:
        """The stream's newest observations."""
        return self._state.reader.newest(self._state.stream, limit=SAMPLE)

    def _compared(self, clusters: Sequence[int]) -> Compared | None:
        """Observations of clusters beside all others, as they came in; None if there are none."""
        import numpy as np

        from weald.stream.record.fields.originals import originals_of

        if self._state.network:
            return None
        own = [each for each in self._sample if each.cluster in clusters]
        others = [each for each in self._sample if each.cluster not in clusters]
        size = sum(self._sizes.get(each, 0) for each in clusters)
        total = sum(self._sizes.values())
        if len(own) < min(size, LEAST_SEEN):
            members, name = self._state.reader.members, self._state.stream
            own = [row for each in clusters for row in members(name, each, limit=LEAST_SEEN)]
        if not own or not others or size >= total:
            return None
        rows = [*others, *own]
        schema = self._state.schema
        columns = originals_of(schema, np.stack([each.values for each in rows]))
        texts = [each.text or "" for each in rows] if schema.has_text else []
        return Compared(columns, texts, np.arange(len(rows)) >= len(others), size / total)

    @cached_property
    def _sizes(self) -> dict[int, int]:
        return {row.cluster: row.n_observations for row in self._everything}

    def contrast(self, cluster: int) -> list[dict[str, Any]]:
        """Return one row per column: the cluster, the rest, and what tells them apart.

        ``information`` is how much the best sentence on that column alone tells of who is in the
        cluster, from 0 to 1; the largest first.
        """
        from .sentences import sentence_of

        found = self._compared([cluster])
        if found is None:
            return []
        rows = []
        for column in found.columns:
            sentence = sentence_of(column, found.inside, share=found.share)
            typical, spread = column.typical(found.inside)
            rest, rest_spread = column.typical(~found.inside)
            rows.append(
                {
                    "feature": column.name,
                    "typical": typical,
                    "spread": spread,
                    "rest": rest,
                    "rest_spread": rest_spread,
                    "information": sentence.information if sentence else 0.0,
                    "sentence": str(sentence) if sentence else None,
                }
            )
        return sorted(rows, key=lambda row: -row["information"])

    def description(self, *clusters: int) -> str:
        """Say what sets a cluster, or some together, apart: what is so inside, less elsewhere."""
        from .sentences import told
        from .texts import explain_rows, teller_of

        found = self._compared(clusters)
        if found is None:
            return told([])
        teller = teller_of(found.texts, self._state.schema)
        return told(explain_rows(found.columns, teller, found.inside, share=found.share))

    @cached_property
    def predictive(self) -> PublishedPredictive:
        """The published clusters, ready to be asked."""
        from weald.answers.prediction import PublishedPredictive

        return PublishedPredictive.of(self._state)

    def surprise(self, members: Sequence[ObservationRow]) -> NDArray[np.float64]:
        """Return minus the log predictive density of each observation under the whole mixture."""
        import numpy as np

        values = np.stack([each.values for each in members])
        return -self.predictive.clusters.log_density(values)

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


def contrast_text(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the cluster's and the rest's value as people read them."""
    own = {"centre": row["typical"], "spread": row["spread"]}
    rest = {"centre": row["rest"], "spread": row["rest_spread"]}
    return spread_text(own), spread_text(rest)
