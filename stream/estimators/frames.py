"""Results as data frames, for notebooks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from weald.mcmc.estimate.predictive import Predictive
from weald.mcmc.offline.fit import FitResult
from weald.stream.publication.publication import LineageEvent
from weald.treecore.family import spec_of

__all__ = ["assignment_frame", "cluster_frame", "lineage_frame", "trace_frame"]


def assignment_frame(
    labels: NDArray[np.int64], surety: Mapping[str, NDArray[np.float64]]
) -> pd.DataFrame:
    """One row an observation, in order: its cluster, then the columns of ``surety``."""
    frame = pd.DataFrame({"cluster": labels, **surety})
    return frame.rename_axis("row")


def cluster_frame(predictive: Predictive, features: Sequence[str]) -> pd.DataFrame:
    """One row a cluster, largest first: size, share, then centre and spread of each feature."""
    describe = spec_of(predictive.family).describe
    rows = []
    for cluster, statistics in zip(predictive.clusters.tolist(), predictive.rows, strict=False):
        row: dict[str, Any] = {"cluster": cluster, "size": round(float(statistics[0]))}
        for each in describe(predictive.family, statistics, features):
            row[each.name] = each.centre
            row[f"{each.name}_spread"] = each.spread
        rows.append(row)
    frame = pd.DataFrame(rows)
    frame.insert(2, "share", frame["size"] / frame["size"].sum())
    return frame.sort_values(["size", "cluster"], ascending=[False, True]).set_index("cluster")


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
