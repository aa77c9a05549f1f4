"""Tells a demo's findings: a table, a picture, a page, and what to try next."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weald.answers.numbers import moment_text
from weald.cli.terminal.describe import cluster_columns, flattened
from weald.cli.terminal.output import Column, Form, write_rows

if TYPE_CHECKING:
    from weald.answers.report_data import Subject

    from .findings import Findings
    from .home import Home
    from .streams import BundledStream

__all__ = ["tell", "write_page", "write_picture"]

SHOWN = 12
REFINEMENTS_SHOWN = 5
# Clusters of fewer observations share one faint colour.
LEAST_COLOURED = 8

PUBLICATION_COLUMNS = (
    Column("publication", "publication", "right"),
    Column("seq", "observations", "right"),
    Column("n_clusters", "clusters", "right"),
    Column("n_moved", "moved", "right"),
)


def tell(place: Home, bundled: BundledStream, findings: Findings, commands: Sequence[str]) -> None:
    """Write the findings on standard output."""
    clusters, rows = findings.clusters, _table_rows(findings)
    _line(f"\n{len(clusters)} clusters of {len(findings.assigned)} observations")
    if findings.n_dead:
        _line(f"{findings.n_dead} records were set aside, each with its reason: see weald status")
    _line("")
    write_rows(rows[:SHOWN], _columns(bundled, "group"), Form.table)
    if len(clusters) > SHOWN:
        _line(f"and {len(clusters) - SHOWN} smaller ones\n")
    _line("How many observations each publication put into another cluster:\n")
    write_rows(findings.publications[-REFINEMENTS_SHOWN:], PUBLICATION_COLUMNS, Form.table)
    _line("")
    if place.picture.exists():
        _line(f"picture  {place.picture}")
    else:
        _line("no picture: pip install 'weald[plots]'")
    _line(f"page     {place.page}")
    _line("\nNext, try:")
    for command in commands:
        _line(f"  {command}")


def write_picture(place: Home, bundled: BundledStream, findings: Findings) -> None:
    """Write the picture into the demo's folder."""
    from .picture import LIGHT, Scatter, draw

    names = [feature.name for feature in bundled.features]
    plane = [names.index(name) for name in bundled.plane]
    named = [
        (row["cluster"], f"{row['cluster']}  {row['place']} ({row['size']})")
        for row in findings.clusters
        if row["size"] >= LEAST_COLOURED
    ]
    scatter = Scatter(
        points=findings.values[:, plane],
        cluster=findings.assigned,
        named=named,
        axes=(bundled.features[plane[0]].title, bundled.features[plane[1]].title),
        title=f"{len(findings.clusters)} clusters: {bundled.title}",
    )
    place.picture.write_bytes(draw(scatter, bundled.windows, LIGHT))


def write_page(
    place: Home,
    bundled: BundledStream,
    findings: Findings,
    subject: Subject,
    commands: Sequence[str],
) -> None:
    """Write the page into the demo's folder, to explore what the stream's ``subject`` tells."""
    import numpy as np

    from weald.answers.exploration import exploration_of
    from weald.answers.report_data import headline
    from weald.cli.report.page import Section, render, trust_in

    explored = exploration_of(subject, np.random.default_rng(0))
    places = {row["cluster"]: row["place"] for row in findings.clusters}
    parts = [replace(part, name=places.get(part.id, "")) for part in explored.parts]
    groups = [
        replace(each, name=findings.group_places.get(each.id, "")) for each in explored.groups
    ]
    explored = replace(explored, parts=parts, groups=groups)
    headed = replace(
        subject,
        title=headline(len(explored.groups), len(findings.clusters), len(findings.assigned)),
        subtitle=bundled.title,
        facts={
            "records": f"{findings.n_received:,}",
            "unreadable": f"{findings.n_dead:,}",
            "groups": f"{len(explored.groups):,}",
            "clusters": f"{len(findings.clusters):,}",
            "publications": f"{len(findings.publications):,}",
        },
    )
    lives = subject.timeline
    sections = [
        Section("Clusters", "", _columns(bundled), _table_rows(findings)),
        Section(
            "How the clusters changed",
            "At each publication: how many observations it put into another cluster.",
            [
                PUBLICATION_COLUMNS[0],
                Column("when", "newest event by then"),
                *PUBLICATION_COLUMNS[1:],
            ],
            _dated(findings.publications, {} if lives is None else lives.moments),
        ),
        Section("Next", "", [Column("type", "type")], [{"type": each} for each in commands]),
    ]
    page = render(headed, [], sections, explored, trust_in(subject))
    place.page.write_text(page, encoding="utf-8")


def _dated(rows: Sequence[dict[str, Any]], moments: Mapping[int, float]) -> list[dict[str, Any]]:
    """Publications with when each was, in the data."""
    return [
        {**row, "when": moment_text(moments[row["publication"]])}
        if row["publication"] in moments
        else row
        for row in rows
    ]


def _columns(bundled: BundledStream, *left_out: str) -> list[Column]:
    """Put the place after the size, and the units into the headings."""
    titles = {f"features.{feature.name}": feature.title for feature in bundled.features}
    columns = cluster_columns([feature.name for feature in bundled.features])
    named = [
        replace(each, title=titles.get(each.key, each.title))
        for each in columns
        if each.key not in ("share", *left_out)
    ]
    after = [each.key for each in named].index("size") + 1
    return [*named[:after], Column("place", "where"), *named[after:]]


def _table_rows(findings: Findings) -> list[dict[str, Any]]:
    return flattened(findings.clusters, Form.table)


def _line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
