"""Results as data frames, for notebooks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from weald.mcmc.estimate.predictive import Predictive
from weald.mcmc.offline.fit import FitResult
from weald.stream.publication.publication import LineageEvent
from weald.stream.record.fields.originals import original_summaries
from weald.stream.record.schema import Schema
from weald.treecore.family import FeatureSummary, spec_of

__all__ = ["assignment_frame", "cluster_frame", "lineage_frame", "trace_frame"]


def assignment_frame(
    labels: NDArray[np.int64], certainty: Mapping[str, NDArray[np.float64]]
) -> pd.DataFrame:
    """One row an observation, in order: its cluster, then the columns of ``certainty``."""
    frame = pd.DataFrame({"cluster": labels, **certainty})
    return frame.rename_axis("row")


def cluster_frame(
    predictive: Predictive,
    sizes: NDArray[np.int64],
    features: Sequence[str],
    schema: Schema | None = None,
) -> pd.DataFrame:
    """One row a cluster, largest first: size, share, then what is typical of each feature.

    Parameters
    ----------
    predictive : Predictive
    sizes : ndarray of int64, shape (k,)
        Observations in each cluster: copies of rows count, whose statistics are of originals alone.
    features : sequence of str, length d
        Their names.
    schema : Schema, optional
        What the features were made by: they are told as they came in.
    """
    describe = spec_of(predictive.family).describe
    names: list[str] = []
    rows = []
    for statistics in predictive.rows[:-1]:
        summaries = describe(predictive.family, statistics, features)
        owners = [(name, "") for name in features]
        if schema is not None:
            owners, summaries = _owners(schema), original_summaries(schema, summaries)
        cells = [
            cell
            for owner, each in zip(owners, summaries, strict=True)
            for cell in _cells(owner, each)
        ]
        names = [name for name, _ in cells]
        rows.append([value for _, value in cells])
    frame = pd.DataFrame(
        [[size, size / sizes.sum(), *row] for size, row in zip(sizes, rows, strict=True)],
        columns=["size", "share", *names],
        index=pd.Index(predictive.clusters, name="cluster"),
    )
    # Of counts of words there is no spread.
    told = frame.notna().any().to_numpy() | ~frame.columns.str.endswith(".spread")
    return frame.loc[:, told].iloc[np.lexsort((predictive.clusters, -sizes))]


def _owners(schema: Schema) -> list[tuple[str, str]]:
    """Whose each summary is that is told, and which of several numbers; none is of a text."""
    owners: list[tuple[str, str]] = []
    for field in schema.fields:
        if field.kind == "time":
            owners += [(field.name, "")] * len(field.settings.periods)
        elif field.size is not None:
            owners += [(field.name, f".{at}") for at in range(field.size)]
        elif field.kind != "text":
            owners.append((field.name, ""))
    return owners


def _cells(owner: tuple[str, str], summary: FeatureSummary) -> Iterator[tuple[str, Any]]:
    """What is typical of a feature in a cluster, each under the feature's name and a word.

    The word after the last point keeps names apart, whatever features are called.
    """
    name, place = owner
    if summary.kind in ("number", "count"):
        yield f"{name}.centre{place}", summary.centre
        yield f"{name}.spread{place}", summary.spread
    else:
        # A share of a flag, the moment of a period, the commonest of a category.
        word = "commonest" if summary.kind == "category" else summary.kind
        yield f"{name}.{word}", summary.centre


def lineage_frame(events: Iterable[LineageEvent]) -> pd.DataFrame:
    """One row an event, in order; clusters count from 0, as an estimator's labels do."""
    names = list(LineageEvent.__dataclass_fields__)
    rows = [
        {**asdict(event), "cluster": event.cluster - 1, "parents": _from_zero(event.parents)}
        for event in events
    ]
    frame = pd.DataFrame(rows, columns=names)
    return frame.assign(time=pd.to_datetime(frame["time"], unit="s", utc=True))


def trace_frame(result: FitResult) -> pd.DataFrame:
    """One row an iteration of each chain: log joint, clusters, seconds and hyperparameters."""
    frames = [
        pd.DataFrame(
            {
                "chain": index,
                "log_joint": trace.log_joint,
                "n_clusters": trace.n_clusters,
                "seconds": trace.seconds,
                **trace.hyper,
            }
        ).rename_axis("iteration")
        for index, trace in enumerate(result.traces)
    ]
    return pd.concat(frames).set_index("chain", append=True).swaplevel()


def _from_zero(clusters: Iterable[int]) -> tuple[int, ...]:
    return tuple(cluster - 1 for cluster in clusters)
