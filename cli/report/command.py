"""``weald report``: what a stream or a fit found, as one page and its pictures."""

# ruff: noqa: PLR0913 - one parameter for each flag of the command

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weald.answers.numbers import number
from weald.cli.errors import NotReadyError, UsageError, writing
from weald.cli.terminal.options import Config, Output, Set, StreamName, example
from weald.cli.terminal.output import Column, Form, write_record

if TYPE_CHECKING:
    from weald.answers.diagnostics.trust import Trust
    from weald.answers.exploration import Exploration
    from weald.answers.report_data import NetworkSubject, Sampled, Subject

    from .page import Section

__all__ = ["add_to", "write_explorer", "write_report"]

ANOMALIES_SHOWN = 15
LARGEST_SHOWN = 30
VERTICES_SHOWN = 6
DEFAULT_LIMIT = 20_000


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald report",
            "weald report --out today.html --pictures pictures/",
            "weald fit points.npz --chains 4 --trace trace.npz "
            "&& weald report points.npz --trace trace.npz",
            "weald fit edges.csv --family irm --trace trace.npz "
            "&& weald report edges.csv --trace trace.npz",
        )
    )(report)


def report(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA]", help="A file that was fitted, with --trace; a stream without."
        ),
    ] = None,
    *,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE.npz", help="What `weald fit --trace` wrote."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE.html", help="The page.")] = Path(
        "weald-report.html"
    ),
    pictures: Annotated[
        Path | None,
        typer.Option("--pictures", metavar="DIR", help="Write the pictures as PNG files, too."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=2, help="Draw at most so many observations.")
    ] = DEFAULT_LIMIT,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """Draw clusters, their sizes and lineage, the tree above them, traces and anomalies.

    One HTML page that asks no server for anything, readable in light and dark and on a phone. Its
    map, groups, members and distributions follow each other, and can be searched and linked to.
    Of a stream the newest observations are drawn, of a network its blocks. R-hat and effective
    sample sizes are of a fit: a stream's posterior grows while it is sampled, so that its draws
    have none.
    """
    from weald.cli.terminal.progress import step

    if (data is None) != (trace is None):
        raise UsageError(
            "a report of a fit needs the file and its trace",
            next_step="weald fit DATA --trace trace.npz && weald report DATA --trace trace.npz",
        )
    _require_matplotlib()
    with step("reading"):
        subject = _subject(data, trace, limit, (config, set_, stream))
    with step("drawing"):
        written = write_report(subject, out, pictures)
    write_record({"page": str(out), "pictures": written, **subject.facts}, output)


def _require_matplotlib() -> None:
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise NotReadyError("drawing needs matplotlib", next_step="pip install 'weald[plots]'")


def _subject(
    data: Path | None,
    trace: Path | None,
    limit: int,
    where: tuple[Path | None, list[str] | None, str | None],
) -> Sampled:
    if data is not None and trace is not None:
        from .of_fit import subject_of_fit

        return subject_of_fit(data, trace, limit)
    from weald.cli.terminal.opened import reading

    from .of_stream import subject_of_stream

    with reading(*where, undivided=False) as state:
        return subject_of_stream(state, limit)


def write_explorer(subject: Sampled, found: Exploration, trust: Trust, out: Path) -> None:
    """Write a page to explore what was found.

    Raises
    ------
    CommandError
        When the file cannot be written.
    """
    from .page import render

    sections = [_diagnostics(subject), _moves(subject)]
    page = render(subject, [], sections, found, trust)
    with writing(out):
        out.write_text(page, encoding="utf-8")


def write_report(subject: Sampled, out: Path, pictures: Path | None) -> list[str]:
    """Write the page, and the pictures where a folder is given; return the pictures' paths.

    Raises
    ------
    CommandError
        When a file cannot be written.
    """
    from .page import render, trust_in
    from .pictures import pictures_of

    drawn = pictures_of(subject)
    found = _explored(subject)
    # On the page the map is in place of its picture.
    still = drawn if found is None else [each for each in drawn if each.name != "clusters"]
    page = render(subject, still, _sections(subject), found, trust_in(subject))
    written = []
    with writing(out):
        out.write_text(page, encoding="utf-8")
    if pictures is not None:
        with writing(pictures):
            pictures.mkdir(parents=True, exist_ok=True)
            for picture in drawn:
                for suffix, png in (("", picture.light), ("-dark", picture.dark)):
                    file = pictures / f"{picture.name}{suffix}.png"
                    file.write_bytes(png)
                    written.append(str(file))
    return written


def _explored(subject: Sampled) -> Exploration | None:
    import numpy as np

    from weald.answers.exploration import exploration_of
    from weald.answers.report_data import Subject

    if not isinstance(subject, Subject):
        return None
    return exploration_of(subject, np.random.default_rng(0))


def _sections(subject: Sampled) -> list[Section]:
    from weald.answers.report_data import NetworkSubject, Subject

    shared = [_diagnostics(subject), _moves(subject)]
    if isinstance(subject, NetworkSubject):
        return [_blocks(subject), *shared]
    if isinstance(subject, Subject):
        return [*_clusters(subject), *shared, _anomalies(subject)]
    return shared


def _blocks(subject: NetworkSubject) -> Section:
    import numpy as np

    from .page import Section

    rows = []
    ids = subject.ids or range(len(subject.mean))
    for k in subject.largest[:LARGEST_SHOWN]:
        inside = np.flatnonzero(subject.clusters == k)
        closest = int(np.argmax(subject.mean[k]))
        rows.append(
            {
                "block": ids[k],
                "size": len(inside),
                "within": float(subject.mean[k, k]),
                "closest": ids[closest],
                "to_closest": float(subject.mean[k, closest]),
                "vertices": ", ".join(subject.keys[int(v)] for v in inside[:VERTICES_SHOWN]),
            }
        )
    columns = (
        Column("block", "block", "right"),
        Column("size", "vertices", "right"),
        Column("within", "edge within", "right", number),
        Column("closest", "closest block", "right"),
        Column("to_closest", "edge to it", "right", number),
        Column("vertices", "some of them"),
    )
    remark = "Expected edges, by the partition that the report shows."
    return Section("Largest blocks", remark, columns, rows)


def _clusters(subject: Subject) -> list[Section]:
    from weald.cli.terminal.describe import LINEAGE_COLUMNS, cluster_columns

    from .page import Section

    statistics = subject.predictive.rows[: len(subject.largest)]
    total = max(float(statistics[:, 0].sum()), 1.0)
    clusters = []
    for cluster, row in zip(subject.largest[:LARGEST_SHOWN], statistics, strict=False):
        told = {"cluster": cluster, "size": round(float(row[0])), "share": row[0] / total}
        told["group"] = subject.groups.get(cluster)
        told["description"] = subject.descriptions.get(cluster, "")
        for each in subject.summaries(row):
            told[f"features.{each.name}"] = {"centre": each.centre, "spread": each.spread}
        clusters.append(told)
    remark = (
        f"The {LARGEST_SHOWN} largest of {len(subject.largest)}."
        if len(subject.largest) > LARGEST_SHOWN
        else ""
    )
    left_out = ("stability",) if subject.groups else ("stability", "group")
    columns = [each for each in cluster_columns(subject.told) if each.key not in left_out]
    if subject.descriptions:
        columns.append(Column("description", "description"))
    return [
        Section("Largest clusters", remark, columns, clusters),
        Section("What happened last", "Without births.", LINEAGE_COLUMNS, subject.events),
    ]


def _diagnostics(subject: Sampled) -> Section:
    from weald.answers.diagnostics.convergence import (
        AGREEING,
        LEAST_SIZE,
        diagnose,
        may_be_quoted,
    )

    from .page import Section

    columns = (
        Column("name", "quantity"),
        Column("mean", "mean", "right"),
        Column("sd", "sd", "right"),
        Column("r_hat", "R-hat", "right", _three),
        Column("ess_bulk", "bulk ESS", "right", _whole),
        Column("ess_tail", "tail ESS", "right", _whole),
    )
    rows = diagnose(subject.chains)
    n_chains = max((len(values) for values in subject.chains.values.values()), default=1)
    short = [row["name"] for row in rows if not may_be_quoted(row, n_chains)]
    said = (
        f"it takes more iterations to quote {', '.join(short)} (groups settle before such numbers)"
        if short
        else "all of these may be quoted"
    )
    remark = (
        f"Of the second half of the chains. R-hat should be at most {AGREEING}, and effective "
        f"sample sizes {LEAST_SIZE} or more for each chain: {said}."
    )
    return Section("In statistical words: convergence", remark, columns, rows, folded=True)


def _moves(subject: Sampled) -> Section:
    from .page import Section

    rows = [
        {**move, "rate": move["accepted"] / move["proposed"] if move["proposed"] else None}
        for move in subject.moves
    ]
    columns = (
        Column("move", "move"),
        Column("proposed", "proposed", "right"),
        Column("accepted", "accepted", "right"),
        Column("rate", "rate", "right", lambda rate: "" if rate is None else f"{rate:.1%}"),
    )
    return Section("In statistical words: moves of the sampler", "", columns, rows, folded=True)


def _anomalies(subject: Subject) -> Section:
    import numpy as np

    from .page import Section

    density = subject.log_density
    rows: list[dict[str, Any]] = []
    for at in np.argsort(density, kind="stable")[:ANOMALIES_SHOWN].tolist():
        told = {"key": subject.keys[at], "cluster": int(subject.clusters[at])}
        told["text"] = subject.texts[at] if subject.texts else ""
        rows.append({**told, **subject.values_at(at)})
    columns = [
        Column("key", "observation"),
        Column("cluster", "cluster", "right"),
        *([Column("text", "text")] if subject.texts else []),
        *(Column(name, name, "right", number) for name in subject.told),
    ]
    remark = "The oddest first."
    return Section("Least like anything", remark, columns, rows)


def _three(value: float) -> str:
    return f"{value:.3f}" if isfinite(value) else ""


def _whole(value: float) -> str:
    return f"{value:.0f}" if isfinite(value) else ""
