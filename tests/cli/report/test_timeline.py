"""Lines of clusters over publications: where they begin, fork, join and end."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from tests.cli.lives import SIZES, events, publications
from weald.answers.timeline import MOST_LINES, MOST_PUBLICATIONS, TAIL, Timeline, timeline_of
from weald.cli.report.timeline import timeline
from weald.storage.queries.base import LineageRow


def test_lines_begin_and_end_where_it_was_told() -> None:
    found = timeline_of(publications(), events(), SIZES)
    lines = {line.cluster: line for line in found.lines}
    assert found.end == 4 + TAIL
    assert (lines[1].start, lines[1].end, lines[1].begun, lines[1].ended) == (
        *(0.25, found.end, True, False),
    )
    assert (lines[6].start, lines[6].end, lines[6].heir) == (1.5, 2.0, None)
    assert lines[3].start == pytest.approx(2.6)
    # Beyond the newest publication observations are counted up to the newest event.
    assert 4.0 < lines[4].start < found.end
    # By way of 7, which ended, too.
    assert lines[5].heir == lines[7].heir == 2
    assert lines[2].sizes == [(2.0, 60), (4.0, 110), (found.end, 120)]
    assert [line.cluster for line in found.lines][:3] == [1, 2, 3]
    kinds = {(link.kind, link.source, link.target, link.place) for link in found.links}
    assert kinds == {
        ("split", 1, 2, 2.0),
        ("birth", 1, 7, 2.0),
        ("birth", 5, 7, 2.0),
        ("merge", 5, 7, 3.0),
        ("move", 2, 1, 3.0),
        ("merge", 7, 2, 4.0),
    }


def test_of_a_long_history_the_newest_is_shown() -> None:
    n = MOST_PUBLICATIONS + 10
    found = timeline_of(publications(n), events(), {1: 9, 2: 5})
    assert [each.number for each in found.publications] == list(range(11, n + 1))
    assert not found.links
    assert [(line.cluster, line.start, line.begun) for line in found.lines] == [
        (1, 0.0, False),
        (2, 0.0, False),
    ]


def test_the_largest_of_many_are_drawn_and_the_rest_is_counted() -> None:
    sizes = {cluster: cluster for cluster in range(1, MOST_LINES + 31)}
    found = timeline_of(publications(), [], sizes)
    assert found.n_left_out == 30
    assert min(line.cluster for line in found.lines) == 31
    assert "30 smaller clusters are not drawn" in timeline(found, {}, lambda _: "blue")


def test_each_line_is_a_link_with_a_sentence_and_its_colour() -> None:
    found = timeline_of(publications(), events(), SIZES)
    drawn = timeline(found, {3: "a <b>"}, lambda cluster: f"var(--c{cluster % 3})")
    root = ET.fromstring(drawn)  # noqa: S314 - drawn here
    lines = {line.get("data-id"): line for line in root.findall("*[@class='line']")}
    assert set(lines) == {str(each) for each in range(1, 8)}
    assert lines["3"].get("href") == "#cluster=3"
    assert lines["5"].get("href") == "#cluster=2"
    assert lines["6"].tag == "g"
    said = {cluster: line.findtext("title") for cluster, line in lines.items()}
    when = "2027-01-15 08:00 UTC"
    assert said["2"] == f"Cluster 2, split from 1 at publication 2 ({when}); 120 now"
    assert said["5"] == (
        f"Cluster 5, born after publication 0, merged into 7 at publication 3 ({when}) with 10; "
        "selects 2, where most of it went"
    )
    assert said["6"] == (
        f"Cluster 6, born after publication 1 ({when}), ended at publication 2 ({when}) with 3"
    )
    assert lines["5"].get("aria-label") == said["5"]
    assert lines["3"].get("aria-label") == f"3 a <b>: {said['3']}"
    label = lines["3"].find("text")
    assert label is not None
    assert "".join(label.itertext()) == "3 a <b>"
    for cluster, line in lines.items():
        shape = line.find("path[@class='life']")
        assert shape is not None
        assert shape.get("style") == f"fill:var(--c{int(cluster or 0) % 3})"


def axis(found: Timeline) -> list[tuple[float, str]]:
    """Height and text of each label above the lines, from left to right."""
    drawn = ET.fromstring(timeline(found, {}, lambda _: "blue"))  # noqa: S314 - drawn here
    return [(float(text.get("y", "")), text.text or "") for text in drawn.iterfind("g/text")]


def test_publications_have_their_dates_by_the_records_time() -> None:
    """Of the demo's events of 2018 not the day on which it was run."""
    found = timeline_of(publications(), events(), SIZES)
    clocks = ["08:00:01", "08:00:02", "08:00:03", "08:00:04"]  # of one minute
    told = [text for _, text in axis(found)]
    assert told == [*("1", clocks[0], "2027-01-15"), "2", clocks[1], "3", clocks[2], "4", clocks[3]]
    day = 86400.0
    reached = {0: 0.0, 1: 1.5e9, 2: 1.5e9 + 0.2 * day, 3: 1.5e9 + 9 * day}
    dated = replace(found, reached=reached)
    told = [text for _, text in axis(dated)]
    assert told[:3] == ["1", "02:40", "2017-07-14"]
    # A day once, and nothing where it is not known.
    assert told[3:] == ["2", "07:28", "3", "02:40", "2017-07-23", "4"]
    heights = {text: height for height, text in axis(dated)}
    assert heights["1"] < heights["2017-07-14"] < heights["02:40"]
    drawn = timeline(dated, {}, lambda _: "blue")
    assert "<title>publication 2 (2017-07-14 07:28 UTC)</title>" in drawn
    assert "split from 1 at publication 2 (2017-07-14 07:28 UTC); 120 now" in drawn
    assert (found.is_by_data, dated.is_by_data) == (False, True)


def test_lines_that_are_there_at_once_do_not_lie_on_each_other() -> None:
    found = timeline_of(publications(), events(), SIZES)
    root = ET.fromstring(timeline(found, {}, lambda _: "blue"))  # noqa: S314 - drawn here
    taken: dict[float, list[tuple[float, float]]] = {}
    for path in root.iter("path"):
        if path.get("class") == "reach":
            x, y, to = map(float, re.findall(r"[\d.]+", path.get("d", "")))
            assert all(to <= low or high <= x for low, high in taken.get(y, []))
            taken.setdefault(y, []).append((x, to))
    assert len(taken) < len(found.lines)


def test_lines_that_are_each_others_parents_are_drawn() -> None:
    """A cluster that went into one that came from it."""
    there = [LineageRow("split", 2, 200, 0.0, 2, (1,), 60, 60)]
    back = [LineageRow("split", 3, 300, 0.0, 1, (2,), 5, 5)]
    found = timeline_of(publications(), there + back, {1: 5, 2: 60})
    assert timeline(found, {}, lambda _: "blue").count('class="line"') == len(found.lines)
