"""Clusters and groups of real labelled tables by default, beside scikit-learn, betula and k-means.

    python -m benchmarks.real                    every table that is here: half an hour
    python -m benchmarks.real wine digits        these
    python -m benchmarks.real --write            and put the table into docs/real-tables.md
    python -m benchmarks.real letter --components 150    mixtures may have so many

Every method sees the same rows: 3,000 at most, four fifths to fit and the others for the density,
without columns that say nothing, each column standardised; more than 16 columns along the principal
components that `weald fit` takes. All are on their defaults, except that the variational mixture
may have 30 components and that BIC chooses among 1 to 20 of four covariances. K-means alone is told
how many classes there are. Seconds are the processor's, on one thread, with kernels there. Sets
that Weald's own rules were set on are marked.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks.labelled_tables import TABLES, TUNED_ON, drawn
from weald.answers.diagnostics.fit_diagnostics import held_out_density
from weald.cli.fit.outputs import judged
from weald.mcmc.offline.chains import chains_for
from weald.mcmc.offline.copies import are_originals, originals, place_of_original
from weald.mcmc.offline.family_choice import choose_family
from weald.mcmc.offline.fit import FitSettings, combine, run_chain
from weald.mcmc.offline.fit_groups import groups_of_fit
from weald.mcmc.offline.preparation import informative_columns
from weald.mcmc.offline.transformation import Transformation
from weald.mcmc.settings import FeatureSettings

Values = NDArray[np.float64]
Labels = NDArray[np.int64]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "real-tables.md"
MOST_ROWS = 3000
TOLD = "k-means, told K"
LEVELS = ("Weald, clusters", "Weald, groups")
BETTER = "the better of the two"
_HANGING = {"initial_indent": "- ", "subsequent_indent": "  "}
_FEW_TIMES, _LOW, _ALMOST_ALL = 3, 0.3, 0.9


class Found(NamedTuple):
    """Labels of the fitted rows, and the mean log density of the others where there is one.

    ``doubted`` says that the method itself warns of what it found.
    """

    labels: Labels
    density: float = np.nan
    error: float = np.nan
    doubted: bool = False


Method = Callable[[Values, Values, int], list[tuple[str, Found]]]


class Row(NamedTuple):
    """What a method found on a table.

    ``largest`` is the share of the rows in its largest cluster, ``largest_class`` that of the
    largest class.
    """

    table: str
    method: str
    n_clusters: int
    index: float
    information: float
    density: float
    error: float
    doubted: bool
    seconds: float
    largest: float
    largest_class: float


def weald(rows: Values, others: Values, _: int) -> list[tuple[str, Found]]:
    """The clusters that `weald fit` shows, and its groups."""
    original = originals(rows)
    seen = np.ascontiguousarray(rows[are_originals(original)])
    settings = FitSettings(chains=chains_for(*seen.shape))
    family = choose_family(seen, settings, time.perf_counter).family
    settings = replace(settings, family=family)
    chains = range(settings.chains)
    traces = [run_chain(seen, settings, index, time.perf_counter) for index in chains]
    result = combine(settings, traces, seen)
    told = held_out_density(seen, others, result)
    labels = result.labels.astype(np.int64)[place_of_original(original)]
    found = groups_of_fit(result, seen)
    groups = found.group[labels]
    density = told["mean_log_density"], told["standard_error"]
    table = seen, [f"x{column}" for column in range(seen.shape[1])]
    doubted = judged(seen, result, found, table)["verdict"]["status"] == "warn"
    return [
        (LEVELS[0], Found(labels, *density, doubted)),
        (LEVELS[1], Found(groups, doubted=doubted)),
    ]


def _of(name: str, model: Any, seen: Values, others: Values) -> list[tuple[str, Found]]:
    labels = model.fit(seen).predict(seen)
    density = model.score_samples(others)
    error = float(density.std(ddof=1) / np.sqrt(density.size))
    return [(name, Found(labels, float(density.mean()), error))]


def variational(kind: str, components: int) -> Method:
    """scikit-learn's variational Dirichlet process mixture of so many components at most."""

    def fitted(seen: Values, others: Values, _: int) -> list[tuple[str, Found]]:
        model = BayesianGaussianMixture(
            n_components=min(components, len(seen)),
            covariance_type=kind,
            max_iter=500,
            random_state=0,
        )
        return _of(f"variational, {kind}", model, seen, others)

    return fitted


def by_bic(counts: Sequence[int]) -> Method:
    """The mixture of least BIC of so many components."""

    def fitted(seen: Values, others: Values, _: int) -> list[tuple[str, Found]]:
        models = [
            GaussianMixture(n_components=k, covariance_type=kind, random_state=0).fit(seen)
            for kind in ("full", "tied", "diag", "spherical")
            for k in counts
            if k <= len(seen)
        ]
        best = min(models, key=lambda model: model.bic(seen))
        return _of("mixture by BIC", best, seen, others)

    return fitted


def by_density(seen: Values, _others: Values, _: int) -> list[tuple[str, Found]]:
    """HDBSCAN; what it leaves out is one cluster."""
    return [("HDBSCAN", Found(HDBSCAN(copy=True).fit_predict(seen)))]


def betula(seen: Values, _others: Values, _: int) -> list[tuple[str, Found]]:
    """betula-cluster, where it is installed: its number of components by BIC."""
    try:
        import betula_cluster  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return []
    return [("betula", Found(betula_cluster.fit_predict(seen, n_clusters=0)))]


def told(seen: Values, _others: Values, k: int) -> list[tuple[str, Found]]:
    """K-means with as many clusters as there are classes."""
    return [(TOLD, Found(KMeans(k, n_init=10, random_state=0).fit_predict(seen)))]


def methods(components: int | None) -> list[Method]:
    """All of them; mixtures have at most so many components, or 30 and 20."""
    most = components or 30
    counts = np.unique(np.geomspace(1, components, 20).astype(int)) if components else range(1, 21)
    mixtures = [variational("full", most), variational("diag", most), by_bic(list(counts))]
    return [weald, *mixtures, by_density, betula, told]


def prepared(name: str) -> tuple[Values, Values, Labels] | None:
    """Rows to fit, rows for the density, and the labels of the former."""
    table = drawn(name, MOST_ROWS)
    if table is None:
        return None
    values, labels = table
    values = values[:, informative_columns(values).kept]
    n_held = len(values) // 5
    seen, others = values[n_held:], values[:n_held]
    # A row that is among those that are fitted is not held out.
    fitted = {row.tobytes() for row in seen}
    others = others[[row.tobytes() not in fitted for row in others]]
    learned = Transformation.learned(seen, FeatureSettings(), "gaussian")
    if learned is not None:
        seen, others = learned.seen(seen), learned.seen(others)
    else:
        mean, spread = seen.mean(axis=0), seen.std(axis=0)
        spread[spread == 0.0] = 1.0
        seen, others = (seen - mean) / spread, (others - mean) / spread
    return np.ascontiguousarray(seen), np.ascontiguousarray(others), labels[n_held:]


def rows_of(name: str, components: int | None = None) -> list[Row]:
    """Every method on a table."""
    table = prepared(name)
    if table is None:
        return []
    seen, others, labels = table
    rows = []
    for method in methods(components):
        began = time.process_time()
        found = method(seen, others, np.unique(labels).size)
        seconds = time.process_time() - began
        for told_as, each in found:
            rows.append(
                Row(
                    name,
                    told_as,
                    np.unique(each.labels).size,
                    adjusted_rand_score(labels, each.labels),
                    normalized_mutual_info_score(labels, each.labels),
                    each.density,
                    each.error,
                    each.doubted,
                    seconds,
                    _largest(each.labels),
                    _largest(labels),
                )
            )
            print(
                f"{name:16} {told_as:18} {rows[-1].n_clusters:4} {rows[-1].index:6.2f} "
                f"{rows[-1].information:6.2f} {each.density:9.2f} {seconds:7.1f} s"
                f"{' doubted' * each.doubted}",
                flush=True,
            )
    return rows


def _largest(labels: Labels) -> float:
    return float(np.unique(labels, return_counts=True)[1].max() / labels.size)


def better_levels(rows: Sequence[Row]) -> list[Row]:
    """The better of the two levels that Weald shows, by index, for each table."""
    tables = list(dict.fromkeys(row.table for row in rows))
    levels = [row for row in rows if row.method in LEVELS]
    return [
        max((row for row in levels if row.table == table), key=lambda row: row.index)._replace(
            method=BETTER
        )
        for table in tables
    ]


def summary(rows: Sequence[Row]) -> list[tuple[str, float, float, float]]:
    """For each method its mean index on all tables and where nothing was set, and seconds."""
    names = list(dict.fromkeys(row.method for row in rows))
    lines = []
    for name in names:
        own = [row for row in rows if row.method == name]
        unseen = [row.index for row in own if row.table not in TUNED_ON]
        lines.append(
            (
                name,
                float(np.mean([row.index for row in own])),
                float(np.mean(unseen)) if unseen else np.nan,
                float(np.mean([row.seconds for row in own])),
            )
        )
    return lines


def sentences(rows: Sequence[Row]) -> list[str]:
    """What the tables say of Weald, its losses included."""
    shown = better_levels(rows)
    peers = [row for row in rows if row.method not in (*LEVELS, TOLD)]
    return [
        _of_means(rows, shown),
        _of_densities(rows),
        _of_counts(shown, peers),
        _of_verdicts(shown),
        _of_shares([row for row in rows if row.method in LEVELS]),
    ]


def _of_means(rows: Sequence[Row], shown: Sequence[Row]) -> str:
    means = summary([*rows, *shown])
    own = next(line for line in means if line[0] == BETTER)
    parts = []
    for where, at in (("all tables", 1), ("those without a star", 2)):
        peers = [line for line in means if line[0] not in (*LEVELS, BETTER, TOLD)]
        best = max(peers, key=lambda line: line[at])
        k_means = next(line for line in means if line[0] == TOLD)
        parts.append(
            f"On {where} the better of its two levels has a mean index of {own[at]:.2f}, "
            f"the best peer that is not told K ({best[0]}) {best[at]:.2f}, and k-means, which is, "
            f"{k_means[at]:.2f}."
        )
    return " ".join(parts) + " (Which level is better nobody knows beforehand: see both columns.)"


def _of_densities(rows: Sequence[Row]) -> str:
    """A method is as good as first if it is within its own standard error of the best."""
    behind = []
    own = [row for row in rows if row.method == LEVELS[0]]
    for row in own:
        others = [each.density for each in rows if each.table == row.table]
        if row.density + row.error < np.nanmax(others):
            behind.append(row.table)
    n_first = len(own) - len(behind)
    return (
        f"Its density of held-out rows is first or within one standard error of the first on "
        f"{n_first} of {len(own)} tables ({n_first / len(own):.0%}){_but(behind)}."
    )


def _of_counts(shown: Sequence[Row], peers: Sequence[Row]) -> str:
    many = []
    for row in shown:
        best = max((peer for peer in peers if peer.table == row.table), key=lambda peer: peer.index)
        if row.n_clusters > _FEW_TIMES * best.n_clusters:
            many.append(f"{row.table} ({row.n_clusters}, {best.method} {best.n_clusters})")
    return (
        "At its better level it has more than three times as many clusters as the best peer that "
        f"is not told K on {len(many)} tables{_named(many)}."
    )


def _of_verdicts(shown: Sequence[Row]) -> str:
    low = [row for row in shown if row.index < _LOW]
    silent = [row.table for row in low if not row.doubted]
    high = [row for row in shown if row.index >= _LOW]
    return (
        f"Its verdict doubts {len(low) - len(silent)} of the {len(low)} tables on which the better "
        f"index is below {_LOW}{_but(silent)}, and {sum(row.doubted for row in high)} of the other "
        f"{len(high)}."
    )


def _of_shares(levels: Sequence[Row]) -> str:
    huge = [
        f"{row.method.partition(', ')[2]} of {row.table}"
        for row in levels
        if row.largest > _ALMOST_ALL >= row.largest_class
    ]
    return (
        f"More than nine tenths of the rows are in one cluster or group, and in no class, on "
        f"{len(huge)} tables{_named(huge)}."
    )


def _named(names: Sequence[str]) -> str:
    return f": {', '.join(names)}" if names else ""


def _but(names: Sequence[str]) -> str:
    return f", but not {', '.join(names)}" if names else ""


def page(rows: Sequence[Row]) -> str:
    """The document: what the tables say, then a line for each, an index for each method."""
    methods = list(dict.fromkeys(row.method for row in rows))
    tables = list(dict.fromkeys(row.table for row in rows))
    at = {(row.table, row.method): row for row in rows}
    lines = [
        "# Real tables",
        "",
        "Written by `python -m benchmarks.real --write`. Adjusted Rand index with the labels, and",
        "the number of clusters; then the mean log density of held-out rows. All methods are on",
        "their defaults and see the same rows, as the benchmark says; k-means alone is told the",
        "number of classes. Weald's rules were set on the tables with a star. A question mark says",
        "that Weald's own verdict is to doubt what it found.",
        "",
        *(line for said in sentences(rows) for line in wrap(said, 100, **_HANGING)),
        "",
        "| table | " + " | ".join(methods) + " |",
        "|---|" + "---|" * len(methods),
    ]
    for table in tables:
        star = "\\*" if table in TUNED_ON else ""
        cells = [_cell(at.get((table, method))) for method in methods]
        lines.append(f"| {table}{star} | " + " | ".join(cells) + " |")
    told_of = summary(rows)
    lines.append("| **mean** | " + " | ".join(f"**{line[1]:.2f}**" for line in told_of) + " |")
    lines.append("| mean, no star | " + " | ".join(f"{line[2]:.2f}" for line in told_of) + " |")
    lines.append("| seconds | " + " | ".join(f"{line[3]:.1f}" for line in told_of) + " |")
    dense = [m for m in methods if any(np.isfinite(r.density) for r in rows if r.method == m)]
    lines += ["", "| held-out log density | " + " | ".join(dense) + " |"]
    lines.append("|---|" + "---|" * len(dense))
    for table in tables:
        cells = [at[table, method] for method in dense]
        shown = [f"{cell.density:.2f} ± {cell.error:.2f}" for cell in cells]
        lines.append(f"| {table} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def _cell(row: Row | None) -> str:
    return "" if row is None else f"{row.index:.2f} ({row.n_clusters}){'?' * row.doubted}"


def main() -> None:
    """Run what was asked for and print, or write, the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", help="all by default")
    # The page says what mixtures may have by default.
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--write", action="store_true", help="renew docs/real-tables.md")
    either.add_argument("--components", type=int, help="that mixtures may have")
    asked = parser.parse_args()
    # Of the peers, too. The library has read its environment when numpy was loaded.
    threadpool_limits(1, "blas")
    warnings.simplefilter("ignore")
    # What compiles does so before anything is timed.
    weald(np.random.default_rng(0).normal(size=(60, 3)), np.zeros((5, 3)), 1)
    rows = [row for name in asked.tables or TABLES for row in rows_of(name, asked.components)]
    for name, everywhere, unseen, seconds in summary(rows):
        print(f"{name:18} index {everywhere:.3f}, without a star {unseen:.3f}, {seconds:.1f} s")
    if asked.write:
        PAGE.write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
