"""A report's subject from a file that was fitted, and the trace of the fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.answers.report_data import Chains, NetworkSubject, Sampled, Subject, headline
from weald.cli.errors import NotFoundError, UsageError
from weald.cli.fit.columns import Columns
from weald.cli.fit.reading import Manner, read_again

__all__ = ["subject_of_fit"]

# Draws kept for the matrix, evenly spread over the second half of all chains.
DRAWS = 200
NETWORKS = "irm"
NEEDED = {"about", "shown", "labels", "log_joint", "n_clusters", "hyper", "hyper_names"}
NEEDED |= {"n_iterations"}


def subject_of_fit(data: Path, trace: Path, limit: int) -> Sampled:
    """Read a fit again: the file that was fitted, and what ``weald fit --trace`` wrote.

    Raises
    ------
    NotFoundError
        If a file is missing.
    UsageError
        If the trace is not one, or of another file.
    """
    saved = _load(trace)
    about = json.loads(str(saved["about"]))
    if about["family"] == NETWORKS:
        return _network(data, trace, saved, about)
    return _observations(data, trace, limit, saved, about)


def _network(
    data: Path, trace: Path, saved: dict[str, NDArray[Any]], about: dict[str, Any]
) -> NetworkSubject:
    from weald.cli.files.network import load_network
    from weald.mcmc.relational.fit import blocks_of
    from weald.treecore.relational.edges import beta_edges, gamma_edges
    from weald.treecore.relational.network import make_network

    loaded = load_network(data)
    labels, n = saved["labels"], len(loaded.names)
    _same_size(data, trace, labels.shape[2], n)
    directed, counts = about["directed"], about["counts"]
    network = make_network(n, loaded.links, directed=directed, counts=counts)
    family = (gamma_edges if counts else beta_edges)(**about["params"])
    blocks = blocks_of(family, network, saved["shown"].astype(np.int64))
    real = (loaded.links.weight > 0) & (loaded.links.source != loaded.links.target)
    return NetworkSubject(
        title=f"{len(blocks.mean)} blocks of {n} vertices",
        subtitle=f"fit of {data.name}, infinite relational model, prior {about['prior']}",
        facts={
            "vertices": f"{n:,}",
            "edges": f"{int(real.sum()):,}",
            "blocks": f"{len(blocks.mean):,}",
            **_facts(saved),
        },
        keys=loaded.names,
        clusters=blocks.label,
        draws=_draws(labels, saved["n_iterations"]),
        chains=_chains(saved, [str(name) for name in saved["hyper_names"]]),
        moves=_moves(saved),
        edges=(loaded.links.source[real], loaded.links.target[real]),
        directed=directed,
        mean=blocks.mean,
    )


def _same_size(data: Path, trace: Path, traced: int, found: int) -> None:
    if traced != found:
        raise UsageError(
            f"{trace} is of {traced} rows, {data} has {found}",
            next_step=f"weald fit {data} --trace {trace}",
        )


def _facts(saved: dict[str, NDArray[Any]]) -> dict[str, str]:
    return {
        "chains": str(saved["labels"].shape[0]),
        "iterations": ", ".join(map(str, saved["n_iterations"].tolist())),
    }


def _observations(
    data: Path, trace: Path, limit: int, saved: dict[str, NDArray[Any]], about: dict[str, Any]
) -> Subject:
    from weald.cli.fit.outputs import SEEN
    from weald.mcmc.chain.growing import taken_from
    from weald.mcmc.estimate.predictive import Predictive
    from weald.mcmc.offline.preparation import too_far
    from weald.mcmc.offline.transformation import Transformation
    from weald.treecore.family import FAMILIES
    from weald.treecore.family.totals import add_observations, empty_totals
    from weald.treecore.prior import build_prior

    manner = None if about.get("manner") is None else Manner(**about["manner"])
    columns = Columns(about["features"], about.get("logs", []))
    table = read_again(data, manner, columns, missing=True)
    learned = None
    if arrays := taken_from(saved, SEEN):
        learned = Transformation.of_arrays(arrays)
    labels = saved["labels"]
    whole = saved.get("whole", np.ones(labels.shape[2], dtype=np.bool_))
    if len(table.values) > len(whole):
        # A fit refuses rows with a number that is too far from the others.
        table = table.of_rows(~np.asarray(too_far(table.values).any(axis=1)))
    _same_size(data, trace, len(whole), len(table.values))
    table = table.of_rows(whole)
    seen = table.values if learned is None else learned.seen(table.values)
    family = FAMILIES[about["family"]].build(about["params"], seen)
    ids, place, sizes = np.unique(saved["shown"], return_inverse=True, return_counts=True)
    rank = np.empty(len(ids), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(ids))
    clusters = rank[place]
    totals = empty_totals(family, len(ids))
    add_observations(family, seen, clusters, totals)
    names = [str(name) for name in saved["hyper_names"]]
    prior = build_prior(about["prior"], about["prior_params"])
    kept = slice(0, limit)
    places = np.arange(len(clusters)) if table.rows is None else table.rows
    return Subject(
        title=headline(0, len(ids), len(clusters)),
        subtitle=f"fit of {data.name}, family {about['family']}, prior {about['prior']}",
        facts={
            "observations": f"{len(clusters):,}",
            **({} if whole.all() else {"copies or with gaps, not shown": f"{(~whole).sum():,}"}),
            "clusters": f"{len(ids):,}",
            **_facts(saved),
        },
        names=table.names,
        values=table.values[kept],
        keys=[f"row {row}" for row in places.tolist()][kept],
        clusters=clusters[kept],
        predictive=Predictive.of(
            family, prior, np.arange(len(ids), dtype=np.int64), totals, learned
        ),
        prior=prior,
        draws=_draws(labels, saved["n_iterations"])[:, kept],
        chains=_chains(saved, names),
        moves=_moves(saved),
        schema=manner.compiled() if manner is not None and manner.kinds else None,
    )


def _load(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise NotFoundError(f"{path}: no such file", next_step=f"weald fit DATA --trace {path}")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            saved = {name: arrays[name] for name in arrays.files}
    except (ValueError, OSError) as error:
        raise UsageError(f"{path}: not a trace of weald fit: {error}") from error
    if not set(saved) >= NEEDED:
        raise UsageError(
            f"{path}: not a trace of this weald: {', '.join(sorted(NEEDED - set(saved)))} missing",
            next_step=f"weald fit DATA --trace {path}",
        )
    return saved


def _draws(labels: NDArray[np.int32], n_iterations: NDArray[np.int64]) -> NDArray[np.int64]:
    halves = [chain[n // 2 : n] for chain, n in zip(labels, n_iterations.tolist(), strict=True)]
    every = np.concatenate(halves)
    spread = np.unique(np.linspace(0, len(every) - 1, DRAWS).astype(int))
    drawn: NDArray[np.int64] = every[spread].astype(np.int64)
    return drawn


def _chains(saved: dict[str, NDArray[Any]], names: list[str]) -> Chains:
    n = int(saved["n_iterations"].min())
    values = {
        "log joint": saved["log_joint"][:, :n],
        "clusters": saved["n_clusters"][:, :n].astype(np.float64),
    }
    for at, name in enumerate(names):
        column = saved["hyper"][:, :n, at]
        if np.ptp(column) > 0.0:
            values[name] = column
    return Chains("iteration", values, burnt=n // 2, stationary=True)


def _moves(saved: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    proposed = np.nansum(saved["proposed"], axis=(0, 1))
    accepted = np.nansum(saved["accepted"], axis=(0, 1))
    return [
        {"move": str(move), "proposed": int(tried), "accepted": int(taken)}
        for move, tried, taken in zip(saved["moves"], proposed, accepted, strict=True)
    ]
