"""What there is to explore of a partition: rows in a plane, groups of clusters, columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weald.answers.description.sentences import Sentence
from weald.answers.description.texts import explain_rows, teller_of
from weald.stream.record.fields.originals import Original, originals_of

from .projection import Plane, plane_of
from .records import mean_sure
from .report_data import Birth, Subject
from .timeline import Timeline

if TYPE_CHECKING:
    from weald.stream.record.schema import Schema

__all__ = ["Exploration", "Part", "exploration_of"]

# Observations that sentences are made from: shares are to a per cent or so.
_EXPLAINED = 5_000


@dataclass(frozen=True)
class Part:
    """A cluster, or a group of clusters.

    Attributes
    ----------
    id : int
    size : int
    share : float
        Of all rows.
    sure : float, optional
        Mean probability that a member belongs here.
    sentences : sequence of Sentence
        What sets it apart, the most telling first.
    pattern : str
        Where there are no sentences: who is in it, or why there are none.
    group : int, optional
        Of a cluster, the group that it is in.
    name : str
        What people call it, where they do.
    since : Birth, optional
        Of a stream, with which publication it came.
    """

    id: int
    size: int
    share: float
    sure: float | None
    sentences: Sequence[Sentence] = ()
    pattern: str = ""
    group: int | None = None
    name: str = ""
    since: Birth | None = None


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """Rows, what they are called, where they lie, what they hold, and the parts that they make.

    Attributes
    ----------
    plane : Plane
    keys : sequence of str, length n
    clusters : int64[n]
    density : float64[n]
        Log predictive density under the clusters: high is typical, low is like nothing else.
    columns : sequence of Original
        Values as they came in.
    texts : sequence of str, length n or none
    parts : sequence of Part
        The clusters, largest first.
    groups : sequence of Part
        The groups, largest first; none where clusters are not grouped.
    n_all : int
        Rows that these n stand for.
    timeline : Timeline, optional
        Of a stream, how its clusters came to be.
    called : str
        What the keys are: a column, or "row".
    """

    plane: Plane
    keys: Sequence[str]
    clusters: NDArray[np.int64]
    density: NDArray[np.float64]
    columns: Sequence[Original]
    texts: Sequence[str]
    parts: Sequence[Part]
    groups: Sequence[Part]
    n_all: int
    timeline: Timeline | None = None
    called: str = "row"

    def sampled(self, most: int, rng: np.random.Generator) -> Exploration:
        """Return the same with at most so many rows, drawn at random; the parts stay whole."""
        n = len(self.clusters)
        if n <= most:
            return self
        return self.of_rows(np.sort(rng.choice(n, most, replace=False)))

    def of_rows(self, kept: NDArray[np.int64]) -> Exploration:
        """Return the same with these rows only; the parts stay whole."""
        rows = kept.tolist()
        return replace(
            self,
            plane=replace(self.plane, points=self.plane.points[kept]),
            keys=[self.keys[at] for at in rows],
            clusters=self.clusters[kept],
            density=self.density[kept],
            columns=[replace(each, values=each.values[kept]) for each in self.columns],
            texts=[self.texts[at] for at in rows] if self.texts else (),
        )


def exploration_of(subject: Subject, rng: np.random.Generator) -> Exploration:
    """Return what there is to explore of a report's subject.

    Sizes and shares of parts are of all observations that the clusters hold; sentences are true of
    the subject's own, or of some thousands drawn from these.
    """
    columns = _columns(subject)
    n = len(subject.clusters)
    at = np.sort(rng.choice(n, min(n, _EXPLAINED), replace=False))
    looked = [replace(each, values=each.values[at]) for each in columns]
    texts = [subject.texts[each] for each in at.tolist()] if subject.texts else []
    tell = partial(explain_rows, looked, teller_of(texts, subject.schema))
    sizes = dict(zip(subject.largest, subject.predictive.rows[:, 0].tolist(), strict=False))
    clusters = [each for each in subject.largest if sizes[each] > 0.0]
    # What was born since the newest publication is in no group yet.
    group = {each: subject.groups[each] for each in clusters if each in subject.groups}
    inside: dict[int, list[int]] = {}
    for each, of in group.items():
        inside.setdefault(of, []).append(each)
    parts = [_part(tell, (subject.clusters[at], each), sizes, [each]) for each in clusters]
    own = np.array([group.get(each, -1) for each in subject.clusters[at].tolist()])
    groups = [_part(tell, (own, each), sizes, inside[each]) for each in sorted(inside)]
    there = np.isin(subject.clusters, clusters)
    return Exploration(
        plane=plane_of(subject.values, subject.clusters, subject.names, subject.schema),
        keys=subject.keys,
        clusters=subject.clusters,
        density=subject.log_density,
        columns=columns,
        texts=subject.texts,
        parts=[
            replace(
                _as_sure(each, subject, [each.id]),
                group=group.get(each.id),
                since=subject.known[each.id].born if each.id in subject.known else None,
            )
            for each in parts
        ],
        groups=[
            replace(
                _as_sure(each, subject, inside[each.id]), since=subject.group_births.get(each.id)
            )
            for each in sorted(groups, key=lambda each: -each.size)
        ],
        n_all=n,
        timeline=subject.timeline,
        called=_called(subject.schema),
    ).of_rows(np.flatnonzero(there))


def _called(schema: Schema | None) -> str:
    """What people call records by; one that has no key is a row."""
    return "row" if schema is None or schema.key is None else ".".join(schema.key)


def _as_sure(part: Part, subject: Subject, clusters: Sequence[int]) -> Part:
    """Return the part of these clusters with how sure a publication is of it."""
    told = [subject.known[each] for each in clusters if each in subject.known]
    return replace(part, sure=mean_sure((each.sure, each.size) for each in told))


def _columns(subject: Subject) -> list[Original]:
    if subject.schema is not None:
        return originals_of(subject.schema, subject.values)
    told = set(subject.told)
    return [
        Original(name, "number", subject.values[:, at])
        for at, name in enumerate(subject.names)
        if name in told
    ]


def _part(
    tell: Callable[[NDArray[np.bool_]], list[Sentence]],
    which: tuple[NDArray[np.int64], int],
    sizes: Mapping[int, float],
    clusters: Sequence[int],
) -> Part:
    """A part (its id and the parts of the rows that ``tell`` knows) of these clusters."""
    of, each = which
    size = sum(sizes[cluster] for cluster in clusters)
    share = size / max(sum(sizes.values()), 1.0)
    there = (of == each).any()
    pattern = "" if there else "none of its observations is among those looked at here"
    return Part(each, round(size), share, None, tell(of == each), pattern)
