"""``weald fit --engine``: a table that is larger than one process, in shards."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weald.cli.errors import CommandError, NotFoundError, UsageError, writing
from weald.cli.terminal.output import Form, note

if TYPE_CHECKING:
    from weald.mcmc.offline.fit import FitSettings
    from weald.stream.shards.engine import ShardEngine
    from weald.stream.shards.fit_snapshots import FitSnapshots
    from weald.stream.shards.row_files import RowFiles
    from weald.stream.shards.sharded_fit import ShardedFit

    from .engines import EngineName

__all__ = ["fit_table_in_shards"]

AUTO = "auto"
# What is taken where it was not said.
FULL = "gaussian"


def fit_table_in_shards(
    data: Path,
    settings: FitSettings,
    engine: tuple[EngineName, int],
    work: tuple[Path | None, bool],
    told: tuple[Sequence[str] | None, float, Path | None, str],
    form: Form,
) -> None:
    """Cluster a table in shards, and tell of it.

    Parameters
    ----------
    data : Path
        A Parquet file, a folder of them, or an ``.npy``.
    settings : FitSettings
    engine : (EngineName, int)
        Which one, and how many shards.
    work : (Path or None, bool)
        Where their files are kept, and whether a fit that was ended there goes on.
    told : (names or None, float, Path or None, str)
        Columns that are taken, the valley of density that parts groups, where assignments are
        written, and what tables show.
    form : Form

    Raises
    ------
    CommandError
        If the files, or what is in them, cannot be taken, or a shard goes away for good.
    """
    from weald.stream.errors import SourceError
    from weald.stream.shards.engine import ShardFaultError, ShardLostError
    from weald.treecore.errors import ObservationError, ParameterError

    columns, valley, out, level = told
    if settings.family == AUTO:
        settings = replace(settings, family=FULL)
    try:
        files = _files(data, columns)
        shares = _shares(files, engine[1])
        given, resume = work
        with (
            _folder(given, resume=resume) as folder,
            _snapshots(folder if given else None, files, shares, settings) as snapshots,
            _running(engine[0], files, shares, folder) as shards,
        ):
            found = _fitted(shards, files, settings, snapshots)
            groups = _groups(found, valley)
            if out is not None:
                with writing(out):
                    _write_assignments(out, shards, found, groups, files.n)
            summary = _summary(settings, files, (engine[0], shards), found, groups)
    except (SourceError, ObservationError, ParameterError) as error:
        raise UsageError(str(error)) from error
    except (ShardFaultError, ShardLostError) as error:
        raise CommandError(str(error)) from error
    _tell(summary, level, form)


def _files(data: Path, columns: Sequence[str] | None) -> RowFiles:
    from weald.cli.files.folder import files_of
    from weald.stream.shards.row_files import row_files

    if not data.exists():
        raise NotFoundError(f"{data}: no such file")
    paths = files_of(data)
    if not all(path.suffix in (".parquet", ".npy") for path in paths):
        raise UsageError(f"{data}: --engine reads .parquet, a folder of them, or .npy")
    files = row_files(paths, columns)
    if files.left_out and columns is None:
        note(f"columns without numbers, left out: {', '.join(files.left_out)}")
    if files.n == 0:
        raise UsageError(f"{data}: no rows")
    return files


def _shares(files: RowFiles, n_shards: int) -> list[tuple[int, int]]:
    from weald.mcmc.sharded.fixed_order import CHUNK, shares_of_rows

    shares = shares_of_rows(files.n, n_shards)
    if len(shares) < n_shards:
        note(f"{files.n} rows make {len(shares)} shards of {CHUNK} rows at least")
    return shares


@contextmanager
def _folder(given: Path | None, *, resume: bool) -> Iterator[Path]:
    """Where shards keep their files: a folder that goes when the fit is done, unless given."""
    if given is not None:
        with writing(given):
            given.mkdir(parents=True, exist_ok=True)
        if not resume and any(given.iterdir()):
            raise UsageError(
                f"{given}: not empty; shards want a folder of their own, or --resume to go on there"
            )
        yield given
        return
    if resume:
        raise UsageError("--resume needs the --work of the fit that was ended")
    with tempfile.TemporaryDirectory(prefix="weald-shards-") as made:
        yield Path(made)


@contextmanager
def _snapshots(
    folder: Path | None,
    files: RowFiles,
    shares: Sequence[tuple[int, int]],
    settings: FitSettings,
) -> Iterator[FitSnapshots | None]:
    """Snapshots where somebody could go on from them."""
    from weald.stream.shards.fit_snapshots import FitSnapshots
    from weald.stream.shards.sharded_fit import fit_terms

    if folder is None:
        yield None
        return
    snapshots = FitSnapshots(folder, fit_terms(files, shares, settings))
    try:
        yield snapshots
    finally:
        snapshots.close()


@contextmanager
def _running(
    engine: EngineName, files: RowFiles, shares: Sequence[tuple[int, int]], folder: Path
) -> Iterator[ShardEngine]:
    from weald.cli.terminal.progress import step
    from weald.mcmc.sharded.fixed_order import CHUNK
    from weald.stream.shards.engine import ShardEngine
    from weald.stream.shards.links import linked

    with linked(engine) as connect:
        with step("reading the rows"):
            shards = ShardEngine(files, shares, CHUNK, folder, connect)
        try:
            yield shards
        finally:
            shards.close()


def _fitted(
    shards: ShardEngine, files: RowFiles, settings: FitSettings, snapshots: FitSnapshots | None
) -> ShardedFit:
    from weald.cli.terminal.progress import counting
    from weald.stream.shards.sharded_fit import fit_in_shards

    total = settings.iterations if settings.seconds is None else None
    with counting("sweeps", total) as advance:

        def progress(done: int, _most: int | None, n_clusters: int) -> None:
            advance(done, f"{n_clusters} clusters")

        return fit_in_shards(shards, files.n, settings, progress, snapshots)


def _groups(found: ShardedFit, valley: float) -> NDArray[np.int64]:
    """Group of each cluster, by rows that were looked at."""
    from weald.mcmc.estimate.groups import group_tree

    values, clusters = found.looked_at
    return group_tree(found.state.family, values, clusters).cut(valley)


def _write_assignments(
    path: Path, shards: ShardEngine, found: ShardedFit, groups: NDArray[np.int64], n: int
) -> None:
    """Write ``row,cluster,group,probability,stability``, one line for each row."""
    from weald.stream.shards.sharded_fit import items_of_rows

    from .outputs import ASSIGNMENT_COLUMNS

    shown = found.shown
    # A row's line but for its number is that of its item.
    columns = (shown.cluster, groups[shown.cluster], shown.probability, shown.stability)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    first = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(ASSIGNMENT_COLUMNS)
        for items in items_of_rows(shards, n):
            writer.writerows(
                (row, *rows[item]) for row, item in enumerate(items.tolist(), start=first)
            )
            first += len(items)


def _summary(
    settings: FitSettings,
    files: RowFiles,
    engine: tuple[EngineName, ShardEngine],
    found: ShardedFit,
    groups: NDArray[np.int64],
) -> dict[str, Any]:
    from weald.answers.diagnostics.convergence import diagnose
    from weald.answers.diagnostics.fit_diagnostics import settled_by_r_hat
    from weald.answers.report_data import Chains
    from weald.treecore.family import spec_of

    state, trace, shown = found.state, found.trace, found.shown
    followed = {
        "log joint": trace.log_joint,
        "clusters": trace.n_clusters,
        "sum of squared shares": trace.sum_of_squares,
        **{name: values for name, values in trace.hyper.items() if np.ptp(values) > 0.0},
    }
    chain = {name: np.array([values], dtype=np.float64) for name, values in followed.items()}
    n_sweeps = len(trace.seconds)
    diagnostics = diagnose(Chains("iteration", chain, burnt=n_sweeps // 2, stationary=True))
    clusters = _rows(files, found, np.arange(shown.n_clusters), "cluster")
    weight = np.bincount(shown.cluster, weights=shown.weight)
    for row in clusters:
        inside = shown.cluster == row["cluster"]
        row["group"] = int(groups[row["cluster"]])
        for name, sure in (("probability", shown.probability), ("stability", shown.stability)):
            row[name] = float(sure[inside] @ shown.weight[inside] / weight[row["cluster"]])
    told = _rows(files, found, groups, "group")
    for row in told:
        row["n_clusters"] = int((groups == row["group"]).sum())
    return {
        "n_observations": files.n,
        "n_features": len(files.columns),
        "family": settings.family,
        "params": spec_of(state.family).parameters(state.family),
        "prior": settings.prior,
        "hyper": {name: float(np.mean(values)) for name, values in trace.hyper.items()},
        "seed": settings.seed,
        "engine": str(engine[0]),
        "shards": engine[1].n_shards,
        "chains": 1,
        "iterations": [n_sweeps],
        "sweeps_made_again": trace.n_remade,
        "seconds": trace.seconds[-1],
        "bytes_a_sweep": int(np.median(trace.bytes)),
        "n_clusters": shown.n_clusters,
        "consensus": settings.consensus,
        "draws_compared": len(shown.sweeps),
        "log_joint": max(trace.log_joint),
        "n_groups": int(groups.max()) + 1,
        "kernels": _kernel_rows(trace.tally),
        "settled": settled_by_r_hat(diagnostics),
        "diagnostics": diagnostics,
        "groups": told,
        "clusters": clusters,
    }


def _kernel_rows(tally: NDArray[np.float64]) -> list[dict[str, Any]]:
    from weald.mcmc.sharded.sharded_chain import MOVES

    from .outputs import kernel_row

    moves = zip(MOVES, tally.tolist(), strict=True)
    return [kernel_row("subc", move, "exact", moved) for move, moved in moves]


def _rows(
    files: RowFiles, found: ShardedFit, number: NDArray[np.int64], name: str
) -> list[dict[str, Any]]:
    """One row for each of what the clusters are numbered by, largest first."""
    from weald.treecore.family import spec_of

    family = found.state.family
    sums = np.zeros((int(number.max()) + 1, found.sums.shape[1]))
    np.add.at(sums, number, found.sums)
    rows = []
    for at in np.argsort(-sums[:, 0], kind="stable").tolist():
        features = spec_of(family).describe(family, sums[at], files.columns)
        told = {feature.name: asdict(feature) for feature in features}
        rows.append({name: at, "size": round(sums[at, 0]), "features": told})
    return rows


def _tell(summary: dict[str, Any], level: str, form: Form) -> None:
    from .outputs import tell_summary

    tell_summary(summary, list(summary["clusters"][0]["features"]), level, form)
