"""`weald report`: what its pictures are made of, and the page in a real browser."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from tests.cli.conftest import N_GOOD, Command
from tests.servers.chromium import Browser
from tests.servers.devtools import driven
from weald.answers.cluster_relations import co_clustering, linkage_of
from weald.answers.exploration import exploration_of
from weald.answers.numbers import iso_time
from weald.answers.projection import plane_of
from weald.answers.report_data import PublishedPartition, Subject, headline
from weald.cli.errors import ExitCode
from weald.cli.report.flow import OTHERS, flow_of
from weald.cli.report.of_stream import subject_of_stream
from weald.cli.report.page import render, trust_in
from weald.cli.terminal.opened import reading
from weald.storage.queries.base import AsOf
from weald.stream.record.schema import Schema
from weald.stream.settings import FieldSettings, SchemaSettings

pytestmark = pytest.mark.usefixtures("clean")

PICTURES = {"clusters", "flow", "tree", "traces", "together", "anomalies"}


@pytest.fixture
def subject(filled: Path) -> Subject:
    with reading(filled, None) as state:
        subject = subject_of_stream(state, 10_000)
    assert isinstance(subject, Subject)
    return subject


def test_history_is_what_was_shown_then(filled: Path, subject: Subject) -> None:
    with reading(filled, None) as state:
        for shown in subject.history:
            moment = AsOf(publication=int(shown.title))
            for at in range(0, N_GOOD, 7):
                then = state.reader.assignments(state.stream, [subject.keys[at]], as_of=moment)
                there = [row.cluster for row in then]
                assert there == ([] if shown.clusters[at] < 0 else [shown.clusters[at]])


def test_a_flow_loses_and_invents_nobody(rng: np.random.Generator) -> None:
    history = []
    clusters = rng.integers(1, 15, size=400)
    for column in range(4):
        clusters = np.where(rng.random(400) < 0.3, rng.integers(1, 15, size=400), clusters)
        there = np.arange(400) < 100 * (column + 1)
        history.append(PublishedPartition(str(column), np.where(there, clusters, -1)))
    named = list(range(1, 9))
    flow = flow_of(history, named)
    for column, shown in enumerate(history):
        blocks = {b.cluster: b.high - b.low for b in flow.blocks if b.column == column}
        for cluster in named:
            assert blocks.get(cluster, 0) == (shown.clusters == cluster).sum()
        assert blocks[OTHERS] == (shown.clusters > max(named)).sum()
        leaving = sum(r.n for r in flow.ribbons if r.column == column)
        assert leaving == (100 * (column + 1) if column < 3 else 0)
    one = next(r for r in flow.ribbons if (r.column, r.source, r.target) == (1, 2, 2))
    assert one.n == ((history[1].clusters == 2) & (history[2].clusters == 2)).sum()


def test_the_counts_of_one_text_are_scaled_alike() -> None:
    """Else a word that came once would outweigh those that tell the kinds of lines apart."""
    clusters = np.repeat([0, 1], 50)
    told = [clusters == 0, clusters == 1, np.arange(100) == 7, np.arange(100) % 2]
    values = np.column_stack(told).astype(float)
    fields = (FieldSettings("line", kind="text", size=3), FieldSettings("x"))
    schema = Schema.of(SchemaSettings(fields=fields))
    plane = plane_of(values, clusters, schema.features, schema)
    apart = abs(plane.points[clusters == 0, 0].mean() - plane.points[clusters == 1, 0].mean())
    assert apart > 5 * plane.points[clusters == 0, 0].std()


def test_each_cluster_of_lines_has_a_place_of_its_own(rng: np.random.Generator) -> None:
    """In a plane of their counts equal lines lie on each other, and whole clusters on others."""
    sizes = [400, 200, 100, 50, 50, 20, 5, 1]
    clusters = rng.permutation(np.repeat(np.arange(8), sizes))
    counts = np.zeros((len(clusters), 40))
    counts[np.arange(len(clusters)), 4 * clusters] = 40.0
    # The last but one has half of what the first has: it lies nearest to that.
    counts[clusters == 6, 0] = 40.0
    schema = Schema.of(SchemaSettings(fields=(FieldSettings("line", kind="text", size=40),)))
    points = plane_of(counts, clusters, schema.features, schema).points
    assert len(np.unique(points.round(9), axis=0)) == len(points)
    middles = np.array([points[clusters == each].mean(axis=0) for each in range(8)])
    reach = [
        np.linalg.norm(points[clusters == each] - middles[each], axis=1).max() for each in range(8)
    ]
    apart = np.linalg.norm(middles[:, None] - middles, axis=2)
    gaps = apart - np.add.outer(reach, reach)
    assert (gaps[~np.eye(8, dtype=bool)] > -0.02).all()
    assert np.argmin(np.where(np.arange(8) == 6, np.inf, gaps[6])) == 0
    # As large as they are.
    assert reach[0] / reach[3] == pytest.approx(np.sqrt(8.0), rel=0.1)


@pytest.mark.parametrize("size", [3, 20])
def test_a_vector_has_a_plane_of_numbers(size: int, rng: np.random.Generator) -> None:
    """Its features are called as the counts of a text are."""
    clusters = rng.integers(0, 2, size=200)
    values = rng.normal(size=(200, size)) + 9.0 * clusters[:, None]
    schema = Schema.of(SchemaSettings(fields=(FieldSettings("v", size=size),)))
    plane = plane_of(values, clusters, schema.features, schema)
    assert "texts" not in plane.how
    assert np.isfinite(plane.points).all()
    one, other = (plane.points[clusters == each, 0] for each in range(2))
    assert abs(one.mean() - other.mean()) > 5 * one.std()


def test_the_plane_shows_what_separates_clusters(rng: np.random.Generator) -> None:
    clusters = rng.integers(0, 3, size=600)
    # Clusters differ in the second feature; the first has a thousand times its unit.
    values = rng.normal(size=(600, 4)) * np.array([1000.0, 1.0, 1.0, 1.0])
    values[:, 1] += 12.0 * clusters
    plane = plane_of(values, clusters, ["a", "b", "c", "d"])
    means = [plane.points[clusters == cluster, 0].mean() for cluster in range(3)]
    spread = max(plane.points[clusters == cluster, 0].std() for cluster in range(3))
    assert min(np.diff(sorted(means))) > 5 * spread
    places = plane_of(values, clusters, ["depth", "Latitude", "x", "longitude"])
    np.testing.assert_array_equal(places.points, values[:, [3, 1]])


def test_the_tree_joins_first_what_is_least_apart(subject: Subject) -> None:
    linkage = linkage_of(subject.predictive, subject.prior)
    assert len(linkage) == min(len(subject.largest), 30) - 1
    assert (np.diff(np.sort(linkage[:, 2])) >= 0).all()
    assert linkage[-1, 3] == len(linkage) + 1
    # The two groups are worlds apart: the last join is the highest by far.
    assert linkage[-1, 2] == linkage[:, 2].max() > 2.0


def test_draws_of_the_stream_say_who_is_with_whom(subject: Subject) -> None:
    found = co_clustering(subject, np.random.default_rng(0))
    assert found is not None
    assert (found.share == found.share.T).all()
    assert (np.diag(found.share) == 1.0).all()
    sides = subject.values[:, 0] > 0
    first = subject.draws[-1]
    assert not set(first[sides[: len(first)]]) & set(first[~sides[: len(first)]])
    assert np.isfinite(subject.log_density).all()


def test_rows_to_explore_are_in_clusters_that_are_told(subject: Subject) -> None:
    """A cluster that has forgotten all its members is told no more, and its rows belong nowhere."""
    rows = subject.predictive.rows.copy()
    rows[0, 0] = 0.0
    faded = replace(subject, predictive=replace(subject.predictive, rows=rows))
    found = exploration_of(faded, np.random.default_rng(0))
    assert subject.largest[0] in subject.clusters
    assert set(found.clusters.tolist()) <= {part.id for part in found.parts}


def test_a_report_says_how_sure_a_publication_is_and_whether_to_believe_it(
    filled: Path, clean: Path, weald: Command, subject: Subject
) -> None:
    found = exploration_of(subject, np.random.default_rng(0))
    listed = weald("clusters", "--config", str(filled), "--output", "json")
    rows = {row["cluster"]: row for row in json.loads(listed.out)}
    listed = weald("clusters", "--config", str(filled), "--level", "groups", "--output", "json")
    born = {row["group"]: (row["born_publication"], row["born"]) for row in json.loads(listed.out)}
    assert found.parts
    assert found.groups
    for part in found.parts:
        row = rows[part.id]
        assert part.sure == pytest.approx(row["probability"])
        assert part.since is not None
        assert part.since.publication == row["born_publication"]
        assert iso_time(part.since.time) == row["born"]
    for group in found.groups:
        own = [rows[part.id] for part in found.parts if part.group == group.id]
        sure = np.average([row["probability"] for row in own], weights=[row["size"] for row in own])
        assert group.sure == pytest.approx(float(sure))
        assert group.since is not None
        assert (group.since.publication, iso_time(group.since.time)) == born[group.id]
    trust = trust_in(replace(subject, warnings=["too few"], stayed=0.8))
    assert trust is not None
    assert (trust.verdict, list(trust.reasons)) == ("doubt it", ["too few"])
    assert trust.settled.startswith("no: 80 % of the observations stayed in their cluster")
    assert trust_in(replace(subject, warnings=None)) is None
    assert 0.0 <= subject.stayed <= 1.0
    early = trust_in(replace(subject, warnings=[], stayed=0.8))
    source = render(subject, [], [], found, early)
    assert '<div class="trust early"><p><b>◐ Believe it for now.</b> ' in source
    assert "✓" not in source
    written = weald("report", "--config", str(filled), "--output", "json")
    page = (clean / json.loads(written.out)["page"]).read_text("utf-8")
    assert "Settled yet? " in page


def test_a_birth_tells_how_far_the_records_had_come(filled: Path, subject: Subject) -> None:
    """Records tell a second each from 1,700,000,000 on, in the order of their numbers."""
    with reading(filled, None) as state:
        publications = state.reader.publications(state.stream)
    seq = {each.number: each.seq for each in publications}
    seq[0] = seq[1]
    born = [*subject.group_births.values(), *(each.born for each in subject.known.values())]
    assert {each.publication for each in born} >= {0, 1}
    for each in born:
        assert each.reached == 1_700_000_000 + seq[each.publication] - 1


def test_a_report_of_a_stream_in_a_real_browser(
    filled: Path, clean: Path, weald: Command, chromium: Browser
) -> None:
    result = weald("report", "--config", str(filled), "--pictures", "p", "--output", "json")
    assert result.code == 0, result.err
    answer = json.loads(result.out)
    assert {Path(name).stem.removesuffix("-dark") for name in answer["pictures"]} == PICTURES
    with driven(chromium.program) as page:
        page.open((clean / answer["page"]).as_uri())
        page.until("document.documentElement.dataset.ready")
        n_groups = page.ask("document.querySelectorAll('.part[data-kind=group]').length")
        title = page.ask("document.querySelector('h1').textContent")
        assert title == headline(n_groups, 0, N_GOOD)
        # What is explored is what `weald clusters` tells.
        listed = weald("clusters", "--config", str(filled), "--output", "json")
        told = {row["cluster"]: row["size"] for row in json.loads(listed.out)}
        for cluster, size in told.items():
            page.ask(f"location.hash = 'cluster={cluster}'; null")
            title = "document.querySelector('#chosen-title').innerText.trim() + ' '"
            page.until(f"({title}).startsWith('Cluster {cluster} ')")
            assert page.ask("document.querySelector('#count').textContent").startswith(f"{size} ")
        assert page.console == []
        assert not [each for each in page.requests if each.startswith("http")]
    light, dark, narrow = (
        chromium.look((clean / answer["page"]).as_uri(), clean, width=width, dark=dark)
        for width, dark in ((1200, False), (1200, True), (390, False))
    )
    assert light.console == dark.console == narrow.console == []
    brightness = [float(imread(seen.picture)[..., :3].mean()) for seen in (light, dark)]
    assert brightness[0] > 0.8
    assert brightness[1] < 0.3
    # Drawn, not blank, and nothing reaches beyond a phone's width.
    assert imread(narrow.picture)[:, :390, :3].std() > 0.05


def test_the_browser_hears_errors(clean: Path, chromium: Browser) -> None:
    page = clean / "broken.html"
    page.write_text("<!doctype html><script>throw new Error('broken')</script>")
    seen = chromium.look(page.as_uri(), clean, dark=False)
    assert any("broken" in line for line in seen.console)


def test_a_report_of_a_fit_tells_r_hat(
    clean: Path, weald: Command, rng: np.random.Generator
) -> None:
    truth = np.arange(120) % 3
    np.savez(clean / "points.npz", X=rng.normal(size=(120, 2)) + 2.5 * truth[:, None])
    fitted = ("--kernel", "gibbs", "--iterations", "40", "--chains", "2", "--trace", "t.npz")
    assert weald("fit", "points.npz", *fitted).code == 0
    result = weald("report", "points.npz", "--trace", "t.npz", "--out", "fit.html")
    assert result.code == 0, result.err
    page = (clean / "fit.html").read_text()
    assert "R-hat" in page
    assert "bulk ESS" in page
    # Of 20 draws a chain none has an effective size of 100.
    assert re.search(r"it takes more iterations to quote log joint, clusters\b", page)
    assert "Sizes and lineage" not in page


def test_a_trace_of_another_file_is_refused(
    clean: Path, weald: Command, rng: np.random.Generator
) -> None:
    np.save(clean / "one.npy", rng.normal(size=(30, 2)))
    np.save(clean / "other.npy", rng.normal(size=(31, 2)))
    quick = ("--kernel", "gibbs", "--iterations", "2", "--trace", "t.npz")
    assert weald("fit", "one.npy", *quick).code == 0
    result = weald("report", "other.npy", "--trace", "t.npz")
    assert result.code == ExitCode.USAGE
    assert "30 rows" in result.err
    assert weald("report", "one.npy").code == ExitCode.USAGE
