"""The stored state of one stream, for questions; nothing here writes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .errors import UnsuitableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from weald.mcmc.offline.resolution import Moves
    from weald.mcmc.offline.transformation import Transformation
    from weald.storage.queries.base import ClusterRow, StreamSpec
    from weald.storage.queries.reader import SqlReader
    from weald.stream.record.schema import Schema
    from weald.stream.warm_up.log_moves import LogMoves
    from weald.treecore.family import FeatureSummary

__all__ = ["StoredStream"]

# Clusters of so few have their members looked at, where moves are more than a hundredth of what
# is left of their spread.
_FEW, _FINE = 100, 0.99


@dataclass(frozen=True)
class StoredStream:
    """One stream's stored state.

    Parameters
    ----------
    reader : SqlReader
    stream : str
        Its name.
    """

    reader: SqlReader
    stream: str

    @cached_property
    def spec(self) -> StreamSpec:
        """What the stream is: family, prior and schema as they were when it began."""
        return self.reader.spec(self.stream)

    @cached_property
    def schema(self) -> Schema:
        """What a record looks like."""
        import msgspec

        from weald.stream.record.schema import Schema
        from weald.stream.settings import SchemaSettings

        return Schema.of(msgspec.convert(self.spec.schema, SchemaSettings))

    @property
    def network(self) -> bool:
        """Whether the stream is of edges: vertices are clustered then, which have no values."""
        return self.schema.network

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that clusters are described by."""
        return ("edges",) if self.network else self.schema.features

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the values that an observation is shown with; a text is shown as itself."""
        from weald.stream.record.fields.originals import original_names

        return () if self.network else original_names(self.schema)

    def values(self, values: NDArray[np.float64]) -> list[dict[str, Any]]:
        """Return what people are shown of observations (n, d), by name, as it came in."""
        from weald.stream.record.fields.originals import originals_of

        if self.network:
            return [{} for _ in values]
        columns = [each.plain() for each in originals_of(self.schema, values)]
        return [
            dict(zip(self.columns, row, strict=True))
            for row in (zip(*columns, strict=True) if columns else [()] * len(values))
        ]

    @property
    def n_clustered(self) -> int:
        """How many observations, or vertices, are in the clusters that are shown.

        Fewer than came where some have left: a window, or those that were replaced.
        """
        return sum(each.n_observations for each in self.reader.clusters(self.stream))

    def require_values(self, what: str) -> None:
        """Raise UnsuitableError where the stream is a network, which has nothing of the kind."""
        if self.network:
            raise UnsuitableError(
                f"stream {self.stream} is a network, whose vertices have {what}",
                next_step="weald clusters    lists its clusters; weald predict FILE weighs edges",
            )

    @cached_property
    def groups(self) -> dict[int, int | None]:
        """Group of each cluster by the newest publication; of one that ended, the last."""
        return {each.cluster: each.group for each in self.reader.clusters(self.stream)}

    @cached_property
    def family(self) -> Any:
        """The family with the hyperparameters of the newest publication, as learned by then."""
        from weald.treecore.family.same_kind import with_parameters

        learned = self.reader.learned_family(self.stream)
        return with_parameters(self.first_family, learned) if learned else self.first_family

    @cached_property
    def first_family(self) -> Any:
        """The family with which the stream began, which says what it takes."""
        from weald.stream.warm_up.stored_family import family_of

        return family_of(self.spec)

    @cached_property
    def transformation(self) -> Transformation | None:
        """Through which the family sees the values; None where it sees them as they are."""
        from weald.stream.warm_up.stored_transformation import transformation_of

        return transformation_of(self.spec)

    @cached_property
    def moves(self) -> Moves | None:
        """By which values that the family sees were moved; None where they are not."""
        from weald.stream.warm_up.stored_transformation import moves_of

        return moves_of(self.spec)

    @cached_property
    def log_moves(self) -> LogMoves | None:
        """By which numbers were moved before their logarithms; None where they are not."""
        from weald.stream.warm_up.stored_transformation import log_moves_of

        return log_moves_of(self.spec)

    @cached_property
    def _seen_anew(self) -> int:
        """Number of the publication that was shown when the stream was seen anew; -1 if never."""
        models = self.reader.models(self.stream)
        return models[-1].publication if models else -1

    def log_marginal(self, cluster: ClusterRow) -> float:
        """Return that of the cluster's statistics; of several shards' it is stored nowhere."""
        import math

        import numpy as np

        from weald.treecore.family.totals import log_marginals

        if not math.isnan(cluster.log_marginal):
            return cluster.log_marginal
        return float(log_marginals(self.family, cluster.statistics[np.newaxis])[0])

    def describe(self, *clusters: ClusterRow) -> list[FeatureSummary]:
        """Return what clusters are together, one summary for each of ``columns``, as it came in.

        None of a cluster that had ended when the stream was seen anew: its statistics are of what
        was seen before. Nor of one of several shards that ended at once: only its count is known.
        """
        row, ended = clusters[0].statistics, clusters[0].retired_publication
        if ended is not None and (ended <= self._seen_anew or row.shape[0] == 1):
            return []
        for each in clusters[1:]:
            row = row + each.statistics
        if self.moves is None and self.log_moves is None:
            return self._told(row)
        as_seen, unmoved = self._told(row), self._told(row, moved=True)
        # Moves have a mean as well, which is next to nothing of many or beside a wider spread.
        if ended is None and row[0] <= _FEW and _is_coarse(as_seen, unmoved):
            own = self._unmoved_row(clusters)
            if own is not None and own[0] == row[0]:
                return self._told(own)
        return unmoved

    def _unmoved_row(self, clusters: Sequence[ClusterRow]) -> NDArray[np.float64] | None:
        """Statistics of the clusters' members as they came in; None where there are none."""
        import numpy as np

        from weald.treecore.family.totals import totals_of_groups

        told = [self.reader.member_values(self.stream, each.cluster) for each in clusters]
        found = [values for values in told if values is not None]
        if not found:
            return None
        values = np.concatenate(found)
        if self.transformation is not None:
            values = self.transformation.seen(values)
        nobody_else = np.zeros(len(values), dtype=np.int64)
        total: NDArray[np.float64] = totals_of_groups(self.family, values, nobody_else, 1)[0]
        return total

    def _told(self, row: NDArray[np.float64], *, moved: bool = False) -> list[FeatureSummary]:
        """What a statistics row says, in the values that came in; less the moves' variance."""
        import numpy as np

        from weald.stream.record.fields.originals import original_summaries
        from weald.stream.warm_up.stored_family import family_named

        moves = self.moves if moved else None
        if self.transformation is not None:
            told = self.transformation.describe(self.family, row, self.features, moves)
        else:
            told = family_named(self.spec.family).describe(self.family, row, self.features)
            told = told if moves is None else _less_variance(told, moves.variance())
        if self.network:
            return told
        if moved and self.log_moves is not None:
            centres = np.array([float(each.centre) for each in told])
            told = _less_variance(told, self.log_moves.variance(centres))
        return original_summaries(self.schema, told)


def _is_coarse(as_seen: list[FeatureSummary], unmoved: list[FeatureSummary]) -> bool:
    """Whether moves make up something of what these summaries of numbers say."""
    return any(
        not seen.spread or (less.spread or 0.0) < _FINE * seen.spread
        for seen, less in zip(as_seen, unmoved, strict=True)
        if seen.kind == "number"
    )


def _less_variance(
    told: list[FeatureSummary], variance: NDArray[np.float64]
) -> list[FeatureSummary]:
    """Summaries (d) of what was moved, by moves of such variances (d)."""
    from dataclasses import replace

    return [
        each
        if each.spread is None or less == 0.0
        else replace(each, spread=max(each.spread**2 - less, 0.0) ** 0.5)
        for each, less in zip(told, variance.tolist(), strict=True)
    ]
