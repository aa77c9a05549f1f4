"""What a look found: groups and clusters with what sets each apart, and a page of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.answers.description.sentences import Sentence, told
from weald.answers.description.texts import explain_rows, teller_of
from weald.cli.fit.fitted_rows import of_all_rows

if TYPE_CHECKING:
    from weald.answers.exploration import Exploration, Part
    from weald.answers.report_data import Sampled
    from weald.mcmc.offline.fit import FitResult

    from .rows import FileRows
    from .seen import Seen

__all__ = ["Found", "exploration_of", "found_in", "sampled_of"]

_NAMED_BY = 2


class Found(NamedTuple):
    """Clusters and groups of rows, each numbered by size from 1.

    Attributes
    ----------
    cluster, group:
        Of each row (n).
    clusters, groups:
        One row of plain values each, largest first.
    cluster_sentences, group_sentences:
        What sets each of them apart.
    """

    cluster: NDArray[np.int64]
    group: NDArray[np.int64]
    clusters: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    cluster_sentences: list[Sequence[Sentence]]
    group_sentences: list[Sequence[Sentence]]


def found_in(rows: FileRows, seen: Seen, result: FitResult, groups: NDArray[np.int64]) -> Found:
    """Describe the clusters of a fit of ``rows``, and the groups (k) that these make."""
    everyone = of_all_rows(result, seen.values, seen.chosen, seen.original)
    probability = everyone.probability
    cluster, group = _by_size(everyone.labels), _by_size(groups[everyone.labels])
    teller = teller_of(rows.texts, rows.schema)

    @cache
    def said(inside: bytes) -> Sequence[Sentence]:
        # A group of one cluster is told once.
        return explain_rows(rows.columns, teller, np.frombuffer(inside, dtype=np.bool_))

    cluster_sentences, group_sentences = (
        [said((parts == part).tobytes()) for part in range(1, int(parts.max()) + 1)]
        for parts in (cluster, group)
    )
    clusters = _described(probability, (cluster, cluster_sentences), "cluster")
    for row in clusters:
        row["group"] = int(group[cluster == row["cluster"]][0])
    told_groups = _described(probability, (group, group_sentences), "group")
    for row in told_groups:
        row["n_clusters"] = len(np.unique(cluster[group == row["group"]]))
    return Found(cluster, group, clusters, told_groups, cluster_sentences, group_sentences)


def _by_size(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same parts numbered from 1, largest first."""
    _, place, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(1, len(sizes) + 1)
    numbered: NDArray[np.int64] = rank[place]
    return numbered


def _described(
    probability: NDArray[np.float64],
    explained: tuple[NDArray[np.int64], list[Sequence[Sentence]]],
    name: str,
) -> list[dict[str, Any]]:
    found = []
    for part, sentences in enumerate(explained[1], start=1):
        inside = explained[0] == part
        named = ", ".join(each.what for each in sentences[:_NAMED_BY])
        found.append(
            {
                name: part,
                "size": int(inside.sum()),
                "share": float(inside.mean()),
                "probability": float(probability[inside].mean()),
                "name": named or f"{name} {part}",
                "description": told(sentences),
            }
        )
    return found


def exploration_of(rows: FileRows, seen: Seen, result: FitResult, found: Found) -> Exploration:
    """Return what the page lets people explore."""
    from weald.answers.exploration import Exploration
    from weald.answers.projection import plane_of
    from weald.mcmc.estimate.predictive import Predictive
    from weald.treecore.family.totals import add_observations, empty_totals

    totals = empty_totals(result.family, len(found.clusters))
    add_observations(result.family, seen.fitted, found.cluster[seen.chosen] - 1, totals)
    ids = np.arange(1, len(found.clusters) + 1, dtype=np.int64)
    predictive = Predictive.of(result.family, result.prior, ids, totals)
    return Exploration(
        plane=plane_of(_filled(rows.values), found.cluster, rows.schema.features, rows.schema),
        keys=rows.keys,
        clusters=found.cluster,
        density=predictive.log_density(_filled(seen.values)),
        columns=rows.columns,
        texts=rows.texts,
        called=rows.called,
        parts=_parts("cluster", found.clusters, found.cluster_sentences),
        groups=_parts("group", found.groups, found.group_sentences),
        n_all=rows.n_read,
    )


def _parts(
    kind: str,
    described: list[dict[str, Any]],
    sentences: list[Sequence[Sentence]],
) -> list[Part]:
    from weald.answers.exploration import Part

    return [
        Part(
            id=row[kind],
            size=row["size"],
            share=row["share"],
            sure=row["probability"],
            sentences=said,
            group=row["group"] if kind == "cluster" else None,
        )
        for row, said in zip(described, sentences, strict=True)
    ]


def sampled_of(rows: FileRows, result: FitResult, found: Found) -> Sampled:
    """Return the headlines of the page, and what was followed while sampling."""
    from weald.answers.report_data import Chains, Sampled, headline
    from weald.cli.fit.outputs import kernel_rows

    n = min(len(trace.log_joint) for trace in result.traces)
    lines = {
        "log joint": np.array([trace.log_joint[:n] for trace in result.traces]),
        "clusters": np.array([trace.n_clusters[:n] for trace in result.traces], dtype=np.float64),
    }
    keys = rows.keys
    n_groups, n_clusters = len(found.groups), len(found.clusters)
    return Sampled(
        title=headline(n_groups, n_clusters, len(keys)),
        subtitle=f"a look at {rows.name}",
        facts={
            "rows": f"{rows.n_read:,}",
            **({} if rows.n_read == len(keys) else {"looked at": f"{len(keys):,}"}),
            "groups": f"{n_groups:,}",
            "clusters": f"{n_clusters:,}",
        },
        keys=keys,
        clusters=found.cluster,
        draws=np.empty((0, len(keys)), dtype=np.int64),
        chains=Chains("iteration", lines, burnt=n // 2, stationary=True),
        moves=kernel_rows(result),
    )


def _filled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values with the mean of their column where there is a gap: a picture needs a place."""
    gaps = np.isnan(values)
    if not gaps.any():
        return values
    filled = np.where(gaps, 0.0, values).sum(0) / np.maximum((~gaps).sum(0), 1)
    placed: NDArray[np.float64] = np.where(gaps, np.rint(filled), values)
    return placed
