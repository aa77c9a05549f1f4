"""What ``weald fit`` tells of its result: a summary, a CSV of the rows, a trace."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.answers.diagnostics.fit_diagnostics import (
    diagnostics,
    is_settled,
    settled_in_words,
    shares_alone,
)
from weald.answers.diagnostics.trust import Trust
from weald.answers.numbers import share_text, spread_text
from weald.cli.terminal.output import Column, Form, write_record
from weald.mcmc.entities.number import number_of_entities
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.estimate.evidence import gain_in_density, left_out_densities
from weald.mcmc.estimate.verdict import Grouped, told_by_groups, verdict_of
from weald.mcmc.offline.copies import are_originals
from weald.mcmc.offline.resolution import as_finely_as_known
from weald.treecore.family import FAMILIES, spec_of
from weald.treecore.family.totals import totals_of_groups

if TYPE_CHECKING:
    from weald.cli.files.table import Table
    from weald.mcmc.offline.family_choice import Choice
    from weald.mcmc.offline.fit import ChainTrace, FitResult, FitSettings
    from weald.mcmc.offline.fit_groups import FitGroups
    from weald.mcmc.offline.transformation import Transformation
    from weald.stream.record.schema import Schema

__all__ = [
    "ASSIGNMENT_COLUMNS",
    "KERNEL_COLUMNS",
    "SEEN",
    "Fitted",
    "judged",
    "kernel_row",
    "kernel_rows",
    "summary_of_fit",
    "tell",
    "tell_summary",
    "write_assignments",
    "write_trace",
]

CLUSTERS_SHOWN = 20
# What leads the summary, beside the reasons to doubt it.
FIRST = ("n_observations", "n_features", "n_groups", "n_clusters", "verdict", "settled")
# Arrays of a trace that are a transformation's.
SEEN = "seen."
ASSIGNMENT_COLUMNS = ("row", "cluster", "group", "probability", "stability")

KERNEL_COLUMNS = (
    Column("kernel", "kernel"),
    Column("move", "move"),
    Column("claim", "claim", gives_way=2),
    Column("proposed", "proposed", "right"),
    Column("accepted", "accepted", "right"),
)


DIAGNOSTIC_COLUMNS = (
    Column("name", "followed"),
    Column("mean", "mean", "right"),
    Column("sd", "sd", "right"),
    Column("r_hat", "R-hat", "right", gives_way=1),
    Column("ess_bulk", "bulk ESS", "right", gives_way=1),
    Column("ess_tail", "tail ESS", "right", gives_way=2),
)


class Fitted(NamedTuple):
    """A table, what a fit saw of it, and what came out.

    Attributes
    ----------
    table:
        In the units of the file.
    seen:
        Values (m, q) that the family describes; of ``table`` itself, or as transformed.
    transformation:
        What was learned of that, where it was.
    groups:
        Of its clusters.
    fitted:
        Rows of the table (n) that were fitted (m of them).
    everyone:
        The result of these, with copies beside them and the others where they fit best.
    original:
        The row that each row (n) is a copy of, itself where it is none.
    choice:
        The family with the reason for it, where it was chosen and not given.
    schema:
        What made the features, where they are told as they came in.
    """

    table: Table
    seen: Any
    transformation: Transformation | None
    settings: FitSettings
    result: FitResult
    groups: FitGroups
    fitted: NDArray[np.bool_]
    everyone: FitResult
    original: NDArray[np.int64]
    choice: Choice | None = None
    schema: Schema | None = None

    @property
    def values(self) -> Any:
        """Values (m, d) of the rows that were fitted, in the units of the file."""
        return self.table.of_rows(self.fitted).values

    @property
    def names(self) -> Sequence[str]:
        """Names of what is told of clusters."""
        from weald.stream.record.fields.originals import original_names

        return self.table.names if self.schema is None else original_names(self.schema)


def tell(fitted: Fitted, level: str, form: Form, held_out: dict[str, float] | None = None) -> None:
    """Write the summary on standard output.

    ``level`` is what a table shows: clusters, groups or both; ``held_out`` is what predicting
    other rows gave.
    """
    summary = _summary(fitted)
    if held_out is not None:
        summary["held_out"] = held_out
    tell_summary(summary, fitted.names, level, form)


def tell_summary(summary: dict[str, Any], names: Sequence[str], level: str, form: Form) -> None:
    """Write a summary on standard output; ``names`` are those of the features of its clusters."""
    if form is not Form.table:
        write_record(summary, form)
        return
    # Under keys of their own: a feature may be called "size".
    features = [
        Column(f"feature {name}", name, "right", spread_text, gives_way=1) for name in names
    ]
    shown = {
        k: v for k, v in summary.items() if k not in ("params", "hyper", "verdict", "log_joint")
    }
    if "verdict" in summary:
        trust = Trust(summary["verdict"]["reasons"], summary["settled"])
        shown["verdict"] = trust.verdict
        for at, reason in enumerate(trust.reasons):
            shown[f"reason {at + 1}"] = reason
    for name in ("groups", "clusters"):
        rows = [
            {**row, **{f"feature {each}": told for each, told in row["features"].items()}}
            for row in summary[name][:CLUSTERS_SHOWN]
        ]
        shown[name] = rows if level in (name, "both") else None
    # First what is asked first, and last how it was sampled.
    first = [name for name in FIRST if name in shown]
    first += [name for name in shown if name.startswith("reason ")]
    last = [name for name in ("kernels", "diagnostics") if name in shown]
    between = [name for name in shown if name not in (*first, *last)]
    shown = {name: shown[name] for name in (*first, *between, *last) if shown[name] is not None}
    sizes = [Column("group", "group", "right"), Column("size", "size", "right")]
    tables = {
        "groups": [*sizes, Column("n_clusters", "clusters", "right"), *features],
        "clusters": [
            Column("cluster", "cluster", "right"),
            *sizes,
            Column("probability", "how sure", "right", share_text, gives_way=2),
            Column("stability", "stability", "right", share_text, gives_way=3),
            *features,
        ],
        "kernels": KERNEL_COLUMNS,
        "diagnostics": DIAGNOSTIC_COLUMNS,
    }
    write_record(shown, form, tables=tables)


def write_assignments(
    path: Path,
    result: FitResult,
    groups: NDArray[np.int64],
    rows: NDArray[np.int64] | None = None,
) -> None:
    """Write ``row,cluster,group,probability,stability``, one line for each row of the data.

    ``groups`` (k) are those of the clusters, ``rows`` (n) where the rows were, if some were
    refused.
    """
    places = np.arange(result.labels.size) if rows is None else rows
    columns = (places, result.labels, groups[result.labels], result.probability, result.stability)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(ASSIGNMENT_COLUMNS)
        writer.writerows(zip(*(column.tolist() for column in columns), strict=True))


def write_trace(
    path: Path,
    result: FitResult,
    settings: FitSettings,
    told: tuple[Sequence[str], dict[str, Any], dict[str, Any]],
    transformation: Transformation | None = None,
    fitted: NDArray[np.bool_] | None = None,
) -> None:
    """Write every iteration of every chain as ``.npz``.

    Arrays are chains x iterations (x more); where one chain made fewer iterations than another
    its rest is -1 in ``labels`` and ``n_clusters`` and NaN elsewhere, and ``n_iterations`` says
    how many it made. ``proposed``, ``accepted`` and ``mean_log_ratio`` have one column for each
    of ``moves``, and ``hyper`` one for each of ``hyper_names``. ``shown`` is the reported
    partition. ``about`` is JSON: family and prior with their parameters as they were learned, the
    names of the features, and what more there is to say; ``told`` are these names, the family's
    parameters, and that. ``seen.…`` are the arrays of the transformation through which the family
    sees rows, where it does. ``whole`` is ``fitted``: which rows of the file were fitted, where
    some were not.
    """
    features, params, more = told
    traces = result.traces
    moves = [(kernel.name, part) for kernel in result.kernels for part in kernel.parts]
    tallies = _padded([_tally(trace, result) for trace in traces], np.nan)
    proposed, accepted, total = tallies[..., 0], tallies[..., 1], tallies[..., 2]
    names = list(traces[0].hyper)
    about = {
        "family": settings.family,
        "params": params,
        "prior": settings.prior,
        "prior_params": result.prior.parameters(),
        "features": list(features),
        **more,
    }
    arrays: dict[str, NDArray[Any]] = {
        "about": np.array(json.dumps(about)),
        "n_iterations": np.array([len(trace.log_joint) for trace in traces]),
        "shown": result.labels.astype(np.int32),
        "labels": _padded([np.array(trace.labels, dtype=np.int32) for trace in traces], -1),
        "log_joint": _padded([np.array(trace.log_joint) for trace in traces], np.nan),
        "n_clusters": _padded([np.array(trace.n_clusters) for trace in traces], -1),
        "seconds": _padded([np.array(trace.seconds) for trace in traces], np.nan),
        "hyper": _padded([_hyper(trace, names) for trace in traces], np.nan),
        "hyper_names": np.array(names, dtype=np.str_),
        "moves": np.array([f"{kernel}.{part}" for kernel, part in moves]),
        "proposed": proposed,
        "accepted": accepted,
        "mean_log_ratio": np.divide(
            total, proposed, out=np.full_like(total, np.nan), where=proposed > 0
        ),
    }
    if transformation is not None:
        learned = transformation.arrays()
        arrays |= {f"{SEEN}{name}": array for name, array in learned.items()}
    if fitted is not None and not fitted.all():
        arrays["whole"] = fitted
    # Untyped, because the stubs take every name for the flag that newer versions have.
    save: Any = np.savez_compressed
    with path.open("wb") as file:
        save(file, **arrays)


def summary_of_fit(
    settings: FitSettings,
    result: FitResult,
    params: dict[str, Any],
    truth: NDArray[np.int64] | None,
) -> dict[str, Any]:
    """Return what every fit tells of itself, whatever its data are.

    ``params`` are the family's, ``truth`` labels to compare the clusters with.
    """
    best = max(result.traces, key=lambda trace: trace.best_log_joint)
    summary: dict[str, Any] = {
        "family": settings.family,
        "params": params,
        "prior": settings.prior,
        "hyper": {name: float(np.mean(values)) for name, values in best.hyper.items()},
        "seed": settings.seed,
        "chains": len(result.traces),
        "chains_trusted": len(result.trusted),
        "iterations": [len(trace.log_joint) for trace in result.traces],
        "seconds": max(trace.seconds[-1] for trace in result.traces),
        "n_clusters": result.n_clusters,
        "consensus": settings.consensus,
        "log_joint": best.best_log_joint,
    }
    counted = number_of_entities([result.traces[at] for at in result.trusted])
    if counted is not None:
        summary["n_entities"], summary["n_entities_sd"] = counted
    if truth is not None:
        labels = result.labels.astype(np.int64)
        summary["adjusted_rand_index"] = adjusted_rand_index(labels, truth)
    return summary


def _summary(fitted: Fitted) -> dict[str, Any]:
    table, settings, result, groups = (
        fitted.table,
        fitted.settings,
        fitted.result,
        fitted.groups.group,
    )
    everyone = fitted.everyone
    params = spec_of(result.family).parameters(result.family)
    summary: dict[str, Any] = {
        "n_observations": table.values.shape[0],
        "n_features": table.values.shape[1],
    }
    if n_copies := int((~are_originals(fitted.original)).sum()):
        summary["n_copies"] = n_copies
    if (learned := fitted.transformation) is not None and learned.axes is not None:
        summary["n_components"] = learned.width
        summary["variance_along_components"] = learned.share
    summary |= summary_of_fit(settings, everyone, params, table.truth)
    if fitted.choice is not None:
        summary["chosen_because"] = fitted.choice.reason
    summary["n_groups"] = int(groups.max()) + 1
    if table.truth is not None:
        of_all = groups[everyone.labels]
        summary["adjusted_rand_index_of_groups"] = adjusted_rand_index(of_all, table.truth)
    one_each = np.arange(len(groups))
    clusters = _rows(fitted, one_each, "cluster")
    for row in clusters:
        inside = everyone.labels == row["cluster"]
        row["group"] = int(groups[row["cluster"]])
        row["probability"] = float(everyone.probability[inside].mean())
        row["stability"] = float(everyone.stability[inside].mean())
    told = _rows(fitted, groups, "group")
    for row in told:
        row["n_clusters"] = int((groups == row["group"]).sum())
    return {
        **summary,
        **judged(fitted.seen, result, fitted.groups, (fitted.values, table.names)),
        "kernels": kernel_rows(result),
        "diagnostics": diagnostics(result),
        "groups": told,
        "clusters": clusters,
    }


def judged(
    seen: Any,
    result: FitResult,
    found: FitGroups,
    table: tuple[Any, Sequence[str]],
) -> dict[str, Any]:
    """What the rows (n, q) say for clusters and groups, and whether to believe either.

    ``table`` are the values (n, d) that the family may have seen otherwise, and the names of their
    columns.
    """
    grouped = found.group[result.labels]
    levels = (result.labels, grouped, np.zeros_like(grouped))
    rows = as_finely_as_known(result.family, seen)
    clusters, groups, one = (left_out_densities(result.family, rows, each) for each in levels)
    gain, over_groups = gain_in_density(clusters, one), gain_in_density(clusters, groups)
    trusted = [result.traces[at] for at in result.trusted]
    alone = shares_alone(found.drawn, grouped)
    chains = [trace.draws[-1] for trace in trusted if trace.draws]
    about = Grouped(
        found.agree,
        float(np.bincount(grouped).max()) / grouped.size,
        over_groups,
        _parted_by(grouped, *table),
        is_settled(alone),
    )
    verdict = verdict_of(np.bincount(result.labels), gain, chains, about)
    return {
        "clusters_over_one": f"they make a row {gain}",
        "clusters_over_groups": f"they make a row {over_groups}",
        "supported_level": "clusters" if over_groups.is_clear else "groups",
        "groups_agree": about.agree,
        "verdict": {"status": verdict.status, "reasons": verdict.reasons},
        "settled": settled_in_words(alone, len(trusted)),
    }


def _parted_by(groups: NDArray[np.int64], values: Any, names: Sequence[str]) -> list[str]:
    """Columns of values (n, d) of which one value, which stands apart, tells groups (n)."""
    from weald.mcmc.offline.preparation import values_apart

    if not isinstance(values, np.ndarray):
        return []
    apart = values_apart(values)
    return [names[c] for c, value in apart.items() if told_by_groups(values[:, c] == value, groups)]


def kernel_rows(result: FitResult) -> list[dict[str, Any]]:
    """Return one row for each move of each kernel: proposed, accepted, mean log ratio."""
    rows = []
    for kernel in result.kernels:
        moved = sum(
            (np.sum(trace.tally[kernel.name], axis=0) for trace in result.traces),
            start=np.zeros((len(kernel.parts), 3)),
        )
        for part, each in zip(kernel.parts, moved.tolist(), strict=True):
            rows.append(kernel_row(kernel.name, part, kernel.claim, each))
    return rows


def kernel_row(name: str, move: str, claim: str, moved: Sequence[float]) -> dict[str, Any]:
    """Return the row of one move: ``moved`` are proposed, accepted, and the sum of log ratios."""
    proposed, accepted, total = moved
    return {
        "kernel": name,
        "move": move,
        "claim": claim,
        "proposed": int(proposed),
        "accepted": int(accepted),
        "mean_log_ratio": total / proposed if proposed else None,
    }


def _rows(fitted: Fitted, part: NDArray[np.int64], name: str) -> list[dict[str, Any]]:
    """One row for each part that clusters (k) are in, largest first."""
    family, table, values = fitted.result.family, fitted.table, fitted.values
    if fitted.transformation is not None:
        # In the units of the file, feature by feature: what it expects is not asked for.
        family = FAMILIES["diagonal"].build({"kappa": 1.0, "rate": 1.0}, values)
    from weald.stream.record.fields.originals import original_summaries

    spec = spec_of(family)
    sizes = np.bincount(part[fitted.everyone.labels])
    totals = totals_of_groups(family, values, part[fitted.result.labels], sizes.size)
    rows = []
    for each in np.argsort(-sizes, kind="stable").tolist():
        features = spec.describe(family, totals[each], table.names)
        if fitted.schema is not None:
            features = original_summaries(fitted.schema, features)
        told = {feature.name: asdict(feature) for feature in features}
        rows.append({name: each, "size": int(sizes[each]), "features": told})
    return rows


def _tally(trace: ChainTrace, result: FitResult) -> NDArray[np.float64]:
    """Return the moves of a chain, float64 (iterations, moves of all kernels, 3)."""
    return np.concatenate([np.array(trace.tally[k.name]) for k in result.kernels], axis=1)


def _hyper(trace: ChainTrace, names: Sequence[str]) -> NDArray[np.float64]:
    columns = [trace.hyper[name] for name in names]
    return np.array(columns).T.reshape(len(trace.log_joint), len(names))


def _padded(arrays: Sequence[NDArray[Any]], filler: float) -> NDArray[Any]:
    longest = max(len(array) for array in arrays)
    shape = (len(arrays), longest, *arrays[0].shape[1:])
    padded = np.full(shape, filler, dtype=arrays[0].dtype)
    for row, array in zip(padded, arrays, strict=True):
        row[: len(array)] = array
    return padded
