"""``weald fit --family irm``: the blocks of a network, predicted links, and a picture of both."""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weald.cli.errors import UsageError
from weald.cli.terminal.output import Column, Form, note, write_record

if TYPE_CHECKING:
    from weald.cli.files.network import LoadedNetwork
    from weald.mcmc.offline.fit import FitResult, FitSettings
    from weald.treecore.relational.network import Network

__all__ = [
    "NetworkRequest",
    "area_under_curve",
    "fit_file",
    "tell_network",
    "write_vertices",
]

CLUSTERS_SHOWN = 20
NAMES_SHOWN = 4
# Unobserved pairs are predicted one by one up to here; beyond, only the most likely are told.
MOST_PREDICTED = 2_000_000

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class NetworkRequest:
    """What is asked of a network besides a fit.

    Parameters
    ----------
    hide : float
        Share of the pairs that are hidden from the fit and then predicted, for the area under the
        curve.
    links : Path or None
        Where the pairs without an edge go, with the probability of one.
    picture : Path or None
        Where the picture of the blocks goes.
    """

    hide: float = 0.0
    links: Path | None = None
    picture: Path | None = None


@dataclass(frozen=True)
class _Posed:
    network: Network
    directed: bool
    counts: bool
    hidden: Pairs


def fit_file(
    path: Path, settings: FitSettings, request: NetworkRequest, chains: int | None
) -> tuple[FitResult, list[str], dict[str, bool], dict[str, Any]]:
    """Fit and write what is asked.

    ``chains`` is how many were asked for, if any. Returns the fit, the names of the vertices, how
    the file was read (``directed``, ``counts``), and the summary.
    """
    from weald.cli.files.network import load_network
    from weald.cli.terminal.progress import counting, step
    from weald.mcmc.offline.chains import POPULATION
    from weald.mcmc.relational.fit import blocks_of, fit_network, predict_links
    from weald.mcmc.schedule.kernels import NETWORK_KERNELS, require_every_partition

    loaded = load_network(path)
    if loaded.n_loops:
        note(f"edges from a vertex to itself, left out: {loaded.n_loops}")
    posed, settings = _pose(loaded, settings, request)
    kernels = NETWORK_KERNELS.named(",".join(settings.kernels))
    require_every_partition(kernels)
    if chains is None and any(kernel.guided for kernel in kernels):
        # Guides come from other chains: alone there would be none.
        settings = replace(settings, chains=POPULATION)
    with step("compiling the kernels"):
        few = replace(settings, iterations=1, seconds=None, init="random:2")
        fit_network(posed.network, few, time.perf_counter, counts=posed.counts)
    with counting("sampling, percent", 100) as advance:
        result = fit_network(
            posed.network,
            settings,
            time.perf_counter,
            lambda share: advance(int(100 * share), ""),
            counts=posed.counts,
        )
    blocks = blocks_of(result.family, posed.network, result.labels)
    result = replace(result, labels=blocks.label)
    summary = _summary(loaded, posed, settings, result)
    if request.hide > 0.0:
        scores = predict_links(result.family, posed.network, result.traces, posed.hidden)
        present = _is_edge(loaded, posed)
        summary["n_hidden_pairs"] = len(scores)
        summary["area_under_curve"] = area_under_curve(scores, present)
    summary["clusters"] = _clusters(loaded, result, blocks.mean)
    if request.links is not None:
        _write_links(request.links, loaded, posed, result)
    if request.picture is not None:
        from weald.cli.report.blocks import block_picture

        title = f"{path.name}: {len(blocks.mean)} blocks of {len(loaded.names)} vertices"
        edges = (loaded.links.source, loaded.links.target)
        request.picture.write_bytes(
            block_picture(edges, blocks.label, title, directed=posed.directed)
        )
    manner = {"directed": posed.directed, "counts": posed.counts}
    return result, loaded.names, manner, summary


def _pose(
    loaded: LoadedNetwork, settings: FitSettings, request: NetworkRequest
) -> tuple[_Posed, FitSettings]:
    """The network as the settings want it, and the settings without what says so."""
    from weald.treecore.relational.network import make_network

    params = dict(settings.params)
    directed = _flag(params, "directed", bool(loaded.directed))
    counts = _flag(params, "counts", "shape" in params or "rate" in params)
    n = len(loaded.names)
    hidden = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    if request.hide > 0.0:
        rng = np.random.default_rng(settings.seed)
        n_all = n * (n - 1) // (1 if directed else 2)
        n_hidden = min(max(round(request.hide * n_all), 1), MOST_PREDICTED)
        hidden = _random_pairs(rng, n, n_hidden, directed=directed)
    network = make_network(n, loaded.links, directed=directed, counts=counts, hidden=hidden)
    return _Posed(network, directed, counts, hidden), replace(settings, params=params)


def _flag(params: dict[str, Any], name: str, default: bool) -> bool:  # noqa: FBT001 - a value
    value = params.pop(name, default)
    if not isinstance(value, bool):
        raise UsageError(f"--param {name}={value!r}: expected true or false")
    return value


def _random_pairs(rng: np.random.Generator, n: int, n_wanted: int, *, directed: bool) -> Pairs:
    """Distinct pairs of different vertices, uniformly."""
    found = np.empty(0, dtype=np.int64)
    while found.shape[0] < n_wanted:
        source = rng.integers(0, n, 2 * n_wanted)
        target = rng.integers(0, n, 2 * n_wanted)
        if not directed:
            source, target = np.minimum(source, target), np.maximum(source, target)
        drawn = (source * n + target)[source != target]
        found = np.unique(np.concatenate([found, drawn]))
    chosen = rng.permutation(found)[:n_wanted]
    return chosen // n, chosen % n


def _keys(pairs: Pairs, n: int, *, directed: bool) -> NDArray[np.int64]:
    source, target = pairs
    if not directed:
        source, target = np.minimum(source, target), np.maximum(source, target)
    keys: NDArray[np.int64] = source * n + target
    return keys


def _is_edge(loaded: LoadedNetwork, posed: _Posed) -> NDArray[np.bool_]:
    """Whether each hidden pair has an edge in the file."""
    n, links = len(loaded.names), loaded.links
    real = links.weight > 0
    edges = _keys((links.source[real], links.target[real]), n, directed=posed.directed)
    return np.isin(_keys(posed.hidden, n, directed=posed.directed), edges)


def area_under_curve(scores: NDArray[np.float64], present: NDArray[np.bool_]) -> float | None:
    """Probability that an edge scores above a pair without, ties counted half; None without both.

    This is the area under the receiver operating characteristic (Mann and Whitney's U).
    """
    from scipy.stats import rankdata

    n_present = int(present.sum())
    n_absent = len(present) - n_present
    if not n_present or not n_absent:
        return None
    above = rankdata(scores)[present].sum() - n_present * (n_present + 1) / 2
    return float(above / (n_present * n_absent))


def write_vertices(path: Path, result: FitResult, names: list[str]) -> None:
    """Write ``row,cluster,probability,stability,vertex``, one line for each vertex."""
    columns = (result.labels, result.probability, result.stability)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("row", "cluster", "probability", "stability", "vertex"))
        rows = zip(*(column.tolist() for column in columns), names, strict=True)
        writer.writerows((index, *row) for index, row in enumerate(rows))


def _write_links(path: Path, loaded: LoadedNetwork, posed: _Posed, result: FitResult) -> None:
    """Write the pairs without an edge, the most likely first."""
    from weald.mcmc.relational.fit import predict_links

    n = len(loaded.names)
    if n * n > 2 * MOST_PREDICTED:
        raise UsageError(f"{n} vertices have too many pairs to predict them all")
    if posed.directed:
        source, target = np.nonzero(~np.eye(n, dtype=bool))
    else:
        source, target = np.triu_indices(n, 1)
    links = loaded.links
    edges = _keys((links.source, links.target), n, directed=posed.directed)
    absent = ~np.isin(source * n + target, edges)
    pairs = (source[absent].astype(np.int64), target[absent].astype(np.int64))
    scores = predict_links(result.family, posed.network, result.traces, pairs)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("source", "target", "expected"))
        for at in np.argsort(-scores, kind="stable").tolist():
            ends = (loaded.names[int(pairs[0][at])], loaded.names[int(pairs[1][at])])
            writer.writerow((*ends, float(scores[at])))


def _summary(
    loaded: LoadedNetwork, posed: _Posed, settings: FitSettings, result: FitResult
) -> dict[str, Any]:
    from weald.treecore.relational.edges import edge_numbers

    from .outputs import kernel_rows, summary_of_fit

    about = {
        "n_vertices": len(loaded.names),
        "n_edges": int((loaded.links.weight > 0).sum()) - loaded.n_loops,
        "directed": posed.directed,
        "counts": posed.counts,
    }
    params = edge_numbers(result.family)
    told = summary_of_fit(settings, result, params, loaded.truth)
    return {**about, **told, "kernels": kernel_rows(result)}


def _clusters(
    loaded: LoadedNetwork, result: FitResult, mean: NDArray[np.float64]
) -> list[dict[str, Any]]:
    """One row for each block, largest first, with what links it most strongly."""
    rows = []
    for k in range(result.n_clusters):
        inside = np.flatnonzero(result.labels == k)
        closest = int(np.argmax(mean[k]))
        rows.append(
            {
                "cluster": k,
                "size": len(inside),
                "probability": float(result.probability[inside].mean()),
                "stability": float(result.stability[inside].mean()),
                "within": float(mean[k, k]),
                "closest": closest,
                "to_closest": float(mean[k, closest]),
                "vertices": ", ".join(loaded.names[int(v)] for v in inside[:NAMES_SHOWN]),
            }
        )
    return rows


def tell_network(summary: dict[str, Any], form: Form) -> None:
    """Tell the summary of a fit on standard output."""
    if form is not Form.table:
        write_record(summary, form)
        return
    from .outputs import KERNEL_COLUMNS

    columns = [
        Column("cluster", "block", "right"),
        Column("size", "vertices", "right"),
        Column("probability", "how sure", "right"),
        Column("stability", "stability", "right"),
        Column("within", "edge within", "right"),
        Column("closest", "closest block", "right"),
        Column("to_closest", "edge to it", "right"),
        Column("vertices", "some of them"),
    ]
    shown = {k: v for k, v in summary.items() if k not in ("params", "hyper")}
    shown["clusters"] = summary["clusters"][:CLUSTERS_SHOWN]
    write_record(shown, form, tables={"clusters": columns, "kernels": KERNEL_COLUMNS})
