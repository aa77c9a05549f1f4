"""The page that people explore: clicked, typed into and measured in a real browser."""

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import weald.cli.report
from tests.cli.planted import CENTRES, N, exploration, page_of
from tests.servers.chromium import Browser
from tests.servers.devtools import Page, driven
from weald.answers.description.sentences import Sentence
from weald.answers.exploration import Exploration, Part
from weald.answers.report_data import Birth
from weald.cli.report.explorer import MOST_COLUMNS, MOST_DRAWN, explorer, fragments_of, styles
from weald.stream.record.fields.originals import Original

AXE = Path(__file__).parents[2] / "servers" / "vendor" / "axe.min.js.gz"
LEAST_SIGN = 3.0


@pytest.fixture(scope="module")
def found() -> Exploration:
    return exploration(np.random.default_rng(20))


@pytest.fixture(scope="module")
def written(found: Exploration, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of the page."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(page_of(found), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browsed(chromium: Browser) -> Iterator[Page]:
    with driven(chromium.program) as page:
        yield page


@pytest.fixture
def page(browsed: Page, written: str) -> Iterator[Page]:
    """The page, loaded; in the end it has said and asked nothing."""
    browsed.console.clear()
    browsed.requests.clear()
    show(browsed, written)
    yield browsed
    assert browsed.console == []
    assert {each.partition("#")[0] for each in browsed.requests} <= {
        written,
        "about:blank",
        "data:,",
    }


def show(page: Page, address: str, **how: bool) -> None:
    page.open(address, **how)
    page.until("document.documentElement.dataset.ready")


def count(page: Page) -> int:
    """Rows inside, as the page says."""
    return int(page.ask("document.querySelector('#count').textContent").split()[0].replace(",", ""))


def column(page: Page, at: int) -> list[str]:
    """One column of the table of members."""
    cells = (
        f"[...document.querySelectorAll('#members tbody tr')].map((r) => r.cells[{at}].innerText)"
    )
    return [each.strip() for each in page.ask(cells)]


def text(page: Page, selector: str) -> str:
    return str(page.ask(f"document.querySelector({selector!r}).innerText"))


def test_selecting_a_cluster_moves_everything(page: Page, found: Exploration) -> None:
    assert count(page) == N
    page.click('.part[data-kind="group"][data-id="1"]')
    page.until("location.hash === '#group=1'")
    page.until("document.querySelector('#chosen-title').innerText.trim().startsWith('Group 1 ')")
    assert count(page) == found.groups[0].size
    page.click("details summary")
    page.click('.part[data-kind="cluster"][data-id="2"]')
    page.until("document.querySelector('#chosen-title').innerText.trim().startsWith('Cluster 2 ')")
    assert count(page) == found.parts[1].size
    assert set(column(page, 2)) == {"2"}
    # Members come as they are typical, and hold what came in.
    own = np.flatnonzero(found.clusters == 2)
    best = own[np.argsort(-found.density[own])]
    assert column(page, 0)[:3] == [found.keys[at] for at in best[:3]]
    assert column(page, 3)[:3] == ["1", "2", "3"]
    price = found.columns[0].values[best[0]]
    assert column(page, 4)[0] == ("" if np.isnan(price) else f"{price:g}")
    bars = page.ask(
        "[...document.querySelectorAll('.shape')].map((s) => [s.getAttribute('aria-label'),"
        "[...s.querySelectorAll('.bin')].map((b) => b.getAttribute('aria-label'))])"
    )
    chile = next(bar for bar in dict(bars)["country"] if bar.startswith("Chile"))
    known = found.columns[1].values == "Chile"
    share = round(100 * known[own].mean())
    assert chile == f"Chile: {share} %, elsewhere 0 %"
    page.press("Escape")
    page.until(f"document.querySelector('#count').textContent === '{N} rows'")


def signs(page: Page, selector: str) -> list[str]:
    """Fill and path of each sign that is shown so."""
    found = page.ask(
        f"[...document.querySelectorAll({selector!r})].map((path) => "
        "`${getComputedStyle(path).fill} ${path.getAttribute('d')}`)"
    )
    return [str(each) for each in found]


def test_no_cluster_can_be_taken_for_the_group_of_its_number(page: Page, written: str) -> None:
    """Of group 1 are clusters 1 and 2: their rows are in its colour, and not in that of group 2."""
    groups = signs(page, ".part[data-kind=group] .sign path")
    clusters = signs(page, ".part[data-kind=cluster] .sign path")
    assert len({*groups, *clusters}) == 4  # the first cluster of a group is as the group
    assert clusters[0] == groups[0]
    assert clusters[1].partition(" M")[2] == groups[0].partition(" M")[2]
    for address in ("group=1", "by=cluster&cluster=2"):
        show(page, f"{written}#{address}")
        assert set(signs(page, "#members .sign path")) <= set(clusters)
    assert signs(page, "#chosen-title .sign path") == clusters[1:]
    show(page, f"{written}#group=1&by=cluster")
    labels = "[...document.querySelectorAll('#over .label')].map((each) => each.textContent)"
    told = page.ask(labels)
    assert told
    assert all(each.startswith("cluster ") for each in told)
    # The map's own pixels: one that has the colour of group 2 would be of another group.
    drawn = page.ask(
        "(() => { const c = document.querySelector('#points'), p = c.getContext('2d').getImageData("
        "0, 0, c.width, c.height).data, found = new Set(); for (let at = 0; at < p.length; at += 4)"
        " if (p[at + 3] > 200) found.add([...p.slice(at, at + 3)].join()); return [...found]; })()"
    )
    rgb = [np.array([int(part) for part in each.split(",")]) for each in drawn]
    second = np.array([int(each) for each in re.findall(r"\d+", groups[1])[:3]])
    assert rgb
    assert min(np.abs(each - second).max() for each in rgb) > 30


def test_a_cluster_in_no_group_has_the_colour_of_none(
    browsed: Page, found: Exploration, tmp_path: Path
) -> None:
    fresh = [replace(found.parts[0], group=None), *found.parts[1:]]
    path = tmp_path / "page.html"
    path.write_text(page_of(replace(found, parts=fresh)), encoding="utf-8")
    show(browsed, path.as_uri())
    assert browsed.console == []
    shown = signs(browsed, ".part .sign path")
    ink = browsed.ask("getComputedStyle(document.body).color")
    assert [each.startswith(f"{ink} ") for each in shown] == [False, False, False, True]
    told = browsed.ask("[...document.querySelectorAll('#over .label')].map((e) => e.textContent)")
    assert any(each.startswith("cluster 1") for each in told)


def test_search_and_filters_narrow_and_say_so(page: Page, found: Exploration) -> None:
    page.press("/")
    page.type("norway")
    norway = int((found.columns[1].values == "Norway").sum())
    page.until(f"document.querySelector('#count').textContent.startsWith('{norway} ')")
    assert "q=norway" in page.ask("location.hash")
    inside = text(page, '.part[data-kind="group"][data-id="1"] .match')
    assert inside == f"{norway} found"
    # Of the groups only those are left that have what was found.
    shown = "[...document.querySelectorAll('.part')].filter((each) => each.checkVisibility())"
    assert page.ask(f"{shown}.map((each) => each.dataset.id)") == ["1"]
    page.press("Escape")
    page.until(f"document.querySelector('#count').textContent === '{N} rows'")
    assert page.ask(f"{shown}.length") == len(found.groups)
    page.click('.shape[aria-label="country"] .bin[aria-label^="Peru"]')
    peru = int((found.columns[1].values == "Peru").sum())
    page.until(f"document.querySelector('#count').textContent.startsWith('{peru} ')")
    assert text(page, "#chips").startswith("country Peru")
    page.click("#chips button")
    page.until(f"document.querySelector('#count').textContent === '{N} rows'")


def test_an_address_restores_what_was_seen(page: Page, written: str, found: Exploration) -> None:
    at = int(np.flatnonzero(found.clusters == 3)[5])
    show(page, f"{written}#group=2&is.country=2&row={found.keys[at].replace(' ', '+')}")
    inside = (found.clusters == 3) & (found.columns[1].values == "<b>Japan</b>")
    assert count(page) == int(inside.sum())
    assert text(page, "#chosen-title").strip().startswith("Group 2")
    if inside[at]:
        assert column(page, 0)[0] == found.keys[at]
        assert (
            page.ask("document.querySelector('#members tr.pinned a').innerText").strip()
            == found.keys[at]
        )
    # A name that looks like markup is shown, not obeyed.
    assert "<b>Japan</b>" in column(page, 5)


def test_a_row_of_the_table_is_shown_on_the_map(page: Page) -> None:
    page.ask("document.querySelector('#members').scrollIntoView({ block: 'start' })")
    before = column(page, 0)
    page.click("#members tbody tr:nth-child(4) td:nth-child(3)")
    page.until("location.hash.includes('row=')")
    page.until("document.querySelector('#members tr.pinned')")
    assert column(page, 0) == before
    assert text(page, "#members tr.pinned td").strip() == before[3]
    page.until("document.querySelector('#plot').getBoundingClientRect().top >= 0")


def test_what_an_address_gets_wrong_is_left_out(page: Page, written: str) -> None:
    show(page, f"{written}#group=99&cluster=x&is.price=700&is.nothing=1&area=1,2&row=row+0")
    assert count(page) == N


def test_a_cluster_that_is_a_group_by_itself_can_be_linked_to(page: Page, written: str) -> None:
    show(page, f"{written}#cluster=3")
    assert text(page, "#chosen-title").strip().startswith("Cluster 3 ")
    assert page.ask("document.querySelector('[aria-current]').dataset.id") == "2"
    assert set(column(page, 2)) == {"3"}


def test_it_can_be_used_without_a_mouse(page: Page) -> None:
    page.ask("document.querySelector('.part').focus()")
    page.press("ArrowDown")
    page.press("Enter")
    page.until("location.hash === '#group=2'")
    page.until("document.querySelector('#chosen-title').innerText.trim().startsWith('Group 2 ')")
    page.press("Escape")
    page.until(f"document.querySelector('#count').textContent === '{N} rows'")
    page.ask("document.querySelector('.shape[aria-label=country] .bin').focus()")
    page.press("ArrowRight")
    page.press("Enter")
    page.until("location.hash.includes('is.country=1')")
    assert page.ask("document.activeElement.dataset.bin") == "1"
    before = page.ask("document.querySelector('#over .x').innerHTML")
    page.ask("document.querySelector('#plot').focus()")
    page.press("+")
    page.until(f"document.querySelector('#over .x').innerHTML !== {json.dumps(before)}")
    page.press("0")


def test_names_are_searched_for_and_members_are_a_click_away(
    browsed: Page, found: Exploration, tmp_path: Path
) -> None:
    """Names of groups are what people read; numbers in them are no row's."""
    one = replace(found.groups[0], name="Old Town, price 1234567")
    path = tmp_path / "page.html"
    named = replace(found, groups=[one, *found.groups[1:]])
    path.write_text(page_of(named), encoding="utf-8")
    for wanted, n_found in (("old TOWN", one.size), ("1234567", 0)):
        show(browsed, f"{path.as_uri()}#q={wanted.replace(' ', '%20')}")
        assert count(browsed) == n_found
    show(browsed, f"{path.as_uri()}#group=1")
    browsed.click("#down")
    top = "document.querySelector('#chosen').getBoundingClientRect().top"
    browsed.until(f"Math.abs({top}) < 200")
    browsed.press("Escape")
    browsed.until("document.querySelector('#down').hidden")


def test_the_map_tells_and_selects(page: Page, found: Exploration) -> None:
    page.ask("document.querySelector('#plot').scrollIntoView({block: 'center'})")
    x, y = page.ask(
        "(() => { const all = [...document.querySelectorAll('#over .label')],"
        "b = all.find((l) => l.textContent.startsWith('2')).getBoundingClientRect();"
        "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    # Its label is kept within the map, and so may lie beside a group at the rim.
    for beside in range(0, 200, 10):
        page.mouse("mouseMoved", x + beside, y)
        if "group 2, cluster 3" in page.ask("document.querySelector('#tip').textContent"):
            break
    x += beside
    page.until("!document.querySelector('#tip').hidden")
    # Its sign stands in the text, and does not lie over it.
    sign = "document.querySelector('#tip .sign').getBoundingClientRect()"
    assert 0 < page.ask(f"Math.max({sign}.width, {sign}.height)") < 20
    page.mouse("mousePressed", x, y)
    page.mouse("mouseReleased", x, y)
    page.until("document.querySelector('#chosen-title').innerText.trim().startsWith('Group 2 ')")
    assert count(page) == found.groups[1].size
    page.click("#all")
    page.until(f"document.querySelector('#count').textContent === '{N} rows'")
    # Shift and drag: an area around the same place holds the group and nothing else.
    page.ask("document.querySelector('#plot').scrollIntoView({block: 'center'})")
    shift = 8
    far = page.ask("document.querySelector('#plot').getBoundingClientRect().right") - 3
    page.mouse("mousePressed", x - 60, y - 60, modifiers=shift)
    page.mouse("mouseMoved", far, y + 60, modifiers=shift, button="left", buttons=1)
    page.mouse("mouseReleased", far, y + 60, modifiers=shift)
    page.until("location.hash.includes('area=')")
    page.until(
        f"document.querySelector('#count').textContent.startsWith('{found.groups[1].size} ')"
    )


def test_lines_of_clusters_follow_and_lead(page: Page, found: Exploration) -> None:
    on = "[...document.querySelectorAll('.lives .line.on')].map((e) => e.dataset.id).sort().join()"
    page.click('.lives .line[data-id="2"] text')
    page.until("location.hash === '#cluster=2'")
    page.until("document.querySelector('#chosen-title').innerText.trim().startsWith('Cluster 2 ')")
    assert count(page) == found.parts[1].size
    # 2 split from 1, and 7 went into it, which had taken in 5.
    assert page.ask(on) == "1,2,5,7"
    moves = "getComputedStyle(document.querySelector('.lives .move')).visibility"
    assert page.ask(moves) == "visible"
    assert page.ask("document.querySelector('.lives [aria-current]').dataset.id") == "2"
    page.press("Escape")
    page.until("!document.querySelector('.lives.some')")
    assert page.ask(moves) == "hidden"
    # What is hovered over elsewhere is seen here.
    x, y = page.ask(
        "(() => { const b = document.querySelector('.part[data-kind=group][data-id=\"2\"]')"
        ".getBoundingClientRect(); return [b.x + 40, b.y + 10]; })()"
    )
    page.mouse("mouseMoved", x, y)
    page.until(f"{on} === '3'")


def test_publications_stay_above_the_lines_that_scroll(page: Page) -> None:
    box = "document.querySelector('.lives').closest('.wide')"
    page.ask(f"{box}.style.maxHeight = '70px'")
    page.ask(f"{box}.scrollTop = 25")
    above = f"document.querySelector('.lives .axis rect').getBoundingClientRect().top - {box}"
    page.until(f"Math.abs({above}.getBoundingClientRect().top) < 1")


def test_lines_of_clusters_need_no_mouse(page: Page) -> None:
    page.ask("document.querySelector('.lives a.line').focus()")
    order = page.ask("[...document.querySelectorAll('.lives a.line')].map((e) => e.dataset.id)")
    page.press("ArrowDown")
    page.until(f"document.activeElement.dataset.id === '{order[1]}'")
    assert page.ask("document.querySelectorAll('.lives a[tabindex=\"0\"]').length") == 1
    leads = page.ask("document.activeElement.dataset.leads")
    page.press("Enter")
    page.until(f"location.hash === '#cluster={leads}'")


def test_headings_sort(page: Page, found: Exploration) -> None:
    page.click('[data-sort="price"]')
    prices = [float(each) for each in column(page, 4)]
    assert prices[0] == np.nanmin(found.columns[0].values)
    assert prices == sorted(prices)
    page.click('[data-sort="price"]')
    assert float(column(page, 4)[0]) == np.nanmax(found.columns[0].values)


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing(page: Page, written: str, *, dark: bool) -> None:
    show(page, f"{written}#group=1", dark=dark)
    page.ask(gzip.decompress(AXE.read_bytes()).decode() + "; null")
    broken = page.ask(
        "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))"
    )
    assert broken == []


def test_the_newest_group_is_told_and_leads_there(page: Page, found: Exploration) -> None:
    last = found.groups[1]
    about = page.ask("document.querySelector('.tree .about').innerText")
    assert about.startswith(
        "3 groups, largest first. "
        "Newest: group 2, since 2027-01-15 11:00 UTC (publication 3 of 4). "
    )
    told = text(page, '.part[data-kind="group"][data-id="1"] .size')
    assert told.endswith("2 clusters · since 2027-01-15 09:00 UTC")
    assert "cluster 3" not in about
    alone = page.ask(
        "document.querySelector('.part[data-kind=cluster][data-id=\"2\"] .size').textContent"
    )
    assert alone.endswith("since 2027-01-15 10:00 UTC")
    # A list that is too long for its room, as most are.
    page.ask("document.querySelector('#tree').style.maxHeight = '9rem'")
    page.click(".tree .about a")
    page.until(
        f"document.querySelector('#chosen-title').innerText.trim().startsWith('Group {last.id} ')"
    )
    inner, outer = page.ask(
        "['.part[aria-current]', '#tree'].map((each) => { const box = "
        "document.querySelector(each).getBoundingClientRect(); return [box.top, box.bottom]; })"
    )
    assert outer[0] <= inner[0] < inner[1] <= outer[1]


def test_what_scrolls_under_a_resting_mouse_is_not_looked_at(page: Page) -> None:
    page.ask("document.querySelector('#tree').style.maxHeight = '9rem'")
    x, y = page.ask(
        "(() => { const b = document.querySelector('.part[data-id=\"1\"]').getBoundingClientRect();"
        "return [b.x + 40, b.y + 10]; })()"
    )
    page.mouse("mouseMoved", x, y)
    page.until("document.querySelector('.lives.some')")
    page.ask(
        "(() => { const [a, b] = ['1', '2'].map((id) => document.querySelector("
        "`.part[data-kind=group][data-id='${id}']`).getBoundingClientRect().top);"
        "document.querySelector('#tree').scrollTop += b - a; })()"
    )
    page.until(f"document.elementFromPoint({x}, {y}).closest('.part')?.dataset.id === '2'")
    page.until("!document.querySelector('.lives.some')")
    page.mouse("mouseMoved", x + 1, y)
    page.until("document.querySelector('.lives.some')")


def test_a_name_stands_beside_the_number(browsed: Page, found: Exploration, tmp_path: Path) -> None:
    """One that people gave it, else what sets it apart; in the list as on the map."""
    named = replace(found, groups=[replace(found.groups[0], name="Old Town"), *found.groups[1:]])
    path = tmp_path / "page.html"
    path.write_text(page_of(named), encoding="utf-8")
    show(browsed, f"{path.as_uri()}#group=1")
    assert text(browsed, "#chosen-title").strip() == "Group 1 Old Town"
    show(browsed, f"{path.as_uri()}#by=group")
    labels = browsed.ask("[...document.querySelectorAll('#over .label')].map((e) => e.textContent)")
    listed = browsed.ask(
        "[...document.querySelectorAll('.part[data-kind=group] .name')].map((e) => e.innerText)"
    )
    assert sorted(f"Group {each}" for each in labels) == sorted(listed)


def test_what_has_the_same_name_has_what_parts_it_too(found: Exploration) -> None:
    def said(*rules: str) -> list[Sentence]:
        return [Sentence(each.split()[0], each, 0.9, 0.1, 0.5) for each in rules]

    groups = [
        replace(found.groups[0], sentences=said("carrier B6", "distance 820 to 1190, 370 wide")),
        replace(found.groups[1], sentences=said("carrier B6", "origin JFK", "air_time at most 9")),
        replace(found.groups[2], sentences=said("flight 1 to 9, 8 wide")),
    ]

    def names(groups: Sequence[Part]) -> list[str]:
        told = fragments_of(replace(found, groups=groups))
        listed = re.findall(r"<b>Group \d</b> ([^<]*)</span>", told.tree)
        assert listed == [each["name"] for each in told.data["groups"]]
        return listed

    assert names(groups) == [
        "carrier B6, distance 820 to 1190",
        "carrier B6, origin JFK",
        "flight 1 to 9",
    ]
    # What two of them share does not part them.
    alike = replace(groups[0], sentences=said("carrier B6", "origin JFK"))
    assert names([alike, *groups[1:]])[:2] == ["carrier B6", "carrier B6, air_time at most 9"]
    places = [replace(each, name="California") for each in groups]
    assert names(places)[2] == "California, flight 1 to 9"


def test_nothing_is_newest_where_all_were_born_at_once(found: Exploration) -> None:
    at_once = [replace(part, since=Birth(1, None)) for part in found.groups]
    assert "Newest" not in fragments_of(replace(found, groups=at_once)).tree
    data = [replace(part, since=Birth(1, 1.8e9, 1.5e9)) for part in found.groups]
    assert (
        "since 2017-07-14 02:40 UTC in the data<" in fragments_of(replace(found, groups=data)).tree
    )
    one = replace(found, groups=at_once[:1])
    assert "largest first" not in fragments_of(one).tree
    later = [*at_once[:2], replace(at_once[2], since=Birth(4, None))]
    told = fragments_of(replace(found, groups=later)).tree
    assert 'Newest: <a href="#group=3">group 3</a>, new since the latest publication. ' in told
    assert "since publication 1<" in told


def test_a_new_name_of_old_clusters_is_not_the_newest(found: Exploration) -> None:
    """Of publications 1 to 4: two old groups that the last one joined are no new kind of thing."""
    born = [Birth(1, None, grouped=4), Birth(3, None, grouped=3), Birth(4, None, grouped=4)]

    def about(births: Sequence[Birth]) -> str:
        groups = [
            replace(each, since=birth) for each, birth in zip(found.groups, births, strict=True)
        ]
        return re.sub(r"<[^>]*>", "", fragments_of(replace(found, groups=groups)).tree)

    told = about(born)
    assert "Newest: group 3, new since the latest publication. " in told
    assert "Not new, but grouped anew at the latest publication: group 1. " in told
    assert told.count("since publication 1, grouped so since the latest publication") == 1
    assert told.count("grouped so") == 1
    told = about([*born[:2], Birth(1, None, grouped=1)])
    assert "Newest: group 2, since publication 3. " in told
    assert "anew" not in about([born[1], Birth(2, None, grouped=2), born[1]])
    told = about([born[0], Birth(3, None, grouped=4), Birth(2, None, grouped=2)])
    assert "Newest: group 2, since publication 3. " in told
    assert "Not new, but grouped anew at the latest publication: group 1. " in told


def test_of_a_file_the_page_says_why_no_group_is_newest(found: Exploration) -> None:
    groups, parts = (
        [replace(part, since=None) for part in own] for own in (found.groups, found.parts)
    )
    file = replace(found, groups=groups, parts=parts, timeline=None)
    why = "None is the newest: rows of a file are read at once."
    assert why in fragments_of(file).tree
    assert why not in fragments_of(replace(file, groups=groups[:1])).tree
    assert why not in fragments_of(found).tree


def test_one_group_is_led_by_its_clusters(
    browsed: Page, found: Exploration, tmp_path: Path
) -> None:
    whole = replace(found.groups[0], id=1, size=found.n_all, share=1.0)
    alone = replace(found, groups=[whole], parts=[replace(part, group=1) for part in found.parts])
    path = tmp_path / "page.html"
    path.write_text(page_of(alone), encoding="utf-8")
    browsed.open(path.as_uri())
    browsed.until("document.documentElement.dataset.ready")
    assert browsed.ask("document.querySelector('#by').textContent") == "Show groups"
    shown = "[...document.querySelectorAll('.part')].filter((e) => e.checkVisibility()).length"
    assert browsed.ask(shown) == 1 + len(alone.parts)


def test_facts_need_no_script(found: Exploration) -> None:
    source = page_of(found)
    plain = re.sub(r"<script.*?</script>|<!--.*?-->|<style.*?</style>", "", source, flags=re.DOTALL)
    for part in (*found.groups, *found.parts[:2]):
        assert f"{part.size:,} rows · {part.share:.1%} · how sure 0.98" in plain
        for sentence in part.sentences:
            assert f"<li>{html.escape(sentence.what)}: <b>" in plain
            assert " %" not in plain.partition(f"<li>{html.escape(sentence.what)}: <b>")[2][:30]
    assert "<b>Japan" not in plain
    assert (
        "<title>Cluster 2, split from 1 at publication 2 (2027-01-15 08:00 UTC); 120 now</title>"
        in plain
    )
    assert "Doubt it" in plain
    assert "&lt;few&gt;" in plain
    for shown in ("http:", "https:"):
        assert shown not in plain


def test_paper_shows_every_cluster_and_no_buttons(page: Page) -> None:
    page.media(kind="print")
    page.ask("dispatchEvent(new Event('beforeprint')); null")
    visible = "[...document.querySelectorAll({!r})].filter((e) => e.checkVisibility()).length"
    assert page.ask(visible.format(".part")) == 5  # two of the groups are one cluster each
    assert page.ask(visible.format(".bar, .tools, #more")) == 0
    assert page.ask(visible.format(".lives .line")) == 7
    held = "(() => { const b = document.querySelector('.timeline .wide');"
    assert page.ask(f"{held} return b.scrollHeight <= b.clientHeight + 1; }})()")


def test_the_policy_holds_the_page_to_itself(page: Page) -> None:
    refused = page.ask("fetch('https://example.com/').then(() => 'went out', () => 'refused')")
    assert refused == "refused"
    assert any("Content Security Policy" in line for line in page.console)
    page.console.clear()


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot((0.2126, 0.7152, 0.0722), linear))


def test_signs_stand_out_from_their_ground() -> None:
    for scheme, ground in enumerate(("#ffffff", "#14181d")):
        own = styles().split("prefers-color-scheme: dark")[scheme]
        colours = dict(re.findall(r"--(c\d): (#[0-9a-f]{6})", own)[:10])
        assert len(set(colours.values())) == 10
        for colour in colours.values():
            low, high = sorted((luminance(colour), luminance(ground)))
            assert (high + 0.05) / (low + 0.05) >= LEAST_SIGN, colour


def test_of_very_many_rows_some_are_drawn_and_the_page_says_so(
    rng: np.random.Generator, browsed: Page, tmp_path: Path
) -> None:
    many = exploration(rng, MOST_DRAWN + 5000)
    source = page_of(many)
    assert "100,000 rows of 105,000, drawn at random." in source
    assert len(source) < 5_000_000
    (tmp_path / "many.html").write_text(source, encoding="utf-8")
    show(browsed, (tmp_path / "many.html").as_uri())
    assert count(browsed) == MOST_DRAWN
    assert browsed.console == []


def test_places_lie_on_a_map_of_the_world(
    rng: np.random.Generator, browsed: Page, tmp_path: Path
) -> None:
    found = exploration(rng, axes=("longitude", "latitude"))
    # From one end of the world to the other.
    wide = replace(found.plane, points=found.plane.points * [5.0, 1.8])
    path = tmp_path / "places.html"
    path.write_text(page_of(replace(found, plane=wide)), encoding="utf-8")
    show(browsed, path.as_uri())
    assert browsed.console == []
    assert explorer(exploration(rng))[0].count('"land":') == 0
    covered, longest = browsed.ask(
        "(() => { const c = document.querySelector('#points'), p = c.getContext('2d').getImageData("
        "0, 0, c.width, c.height).data, rows = d3.range(c.height).map((y) => "
        "d3.sum(d3.range(c.width), (x) => p[4 * (y * c.width + x) + 3] > 0) / c.width);"
        "return [d3.mean(rows), d3.max(rows)]; })()"
    )
    # Land is drawn: of the canvas more is covered than the points cover. Where it goes on at the
    # other side, no line leads there.
    assert covered > 0.2
    assert longest < 0.9
    degrees = browsed.ask(
        "[...document.querySelectorAll('.y .tick text')].map((t) => t.textContent)"
    )
    assert degrees
    assert all(abs(int(each.replace("\u2212", "-"))) <= 90 for each in degrees)


def test_lines_of_text_have_members_and_no_columns(
    rng: np.random.Generator, browsed: Page, tmp_path: Path
) -> None:
    found = exploration(rng)
    lines = [f"</script><b>line</b> {at}" for at in range(N)]
    path = tmp_path / "lines.html"
    told = Exploration(**{**vars(found), "columns": [], "texts": lines})
    path.write_text(page_of(told), encoding="utf-8")
    show(browsed, path.as_uri())
    assert browsed.console == []
    assert set(column(browsed, 4)) <= set(lines)
    assert not browsed.ask("document.querySelector('#shapes-title').checkVisibility()")


def test_a_page_holds_the_columns_that_are_spoken_of(rng: np.random.Generator) -> None:
    found = exploration(rng)
    noise = [Original(f"noise {at}", "number", rng.normal(size=N)) for at in range(MOST_COLUMNS)]
    wide = Exploration(**{**vars(found), "columns": [*noise, *found.columns]})
    packed = explorer(wide)[0].partition('id="data">')[2].partition("<")[0]
    told = json.loads(gzip.decompress(base64.b64decode(packed)))
    names = [each["name"] for each in told["columns"]]
    assert len(names) == MOST_COLUMNS
    assert {each.column for part in found.parts for each in part.sentences} <= set(names)


def test_what_is_vendored_is_what_it_says() -> None:
    folder = Path(weald.cli.report.__path__[0]) / "vendor"
    said = dict(
        re.findall(r"\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|", (folder / "README.md").read_text())
    )
    assert set(said) == {each.name for each in folder.iterdir() if each.suffix in (".js", ".json")}
    for name, checksum in said.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == checksum


def test_what_is_selected_can_be_looked_at_closely(page: Page) -> None:
    before = page.ask("[...document.querySelectorAll('#over .x text')].map((t) => t.textContent)")
    page.click('.part[data-kind="group"][data-id="3"]')
    page.until("document.querySelector('#chosen-title').innerText.trim().startsWith('Group 3 ')")
    page.click("#near")
    page.until(
        "[...document.querySelectorAll('#over .x text')].map((t) => t.textContent).join() !== "
        + json.dumps(",".join(before))
    )
    shown = page.ask("[...document.querySelectorAll('#over .x text')].map((t) => t.textContent)")
    middle = [float(each.replace("\N{MINUS SIGN}", "-")) for each in shown]
    assert -32.0 < min(middle) < CENTRES[3, 0] < max(middle) < -18.0


def ticks(page: Page) -> list[str]:
    """Numbers along the map's lower edge."""
    told = page.ask("[...document.querySelectorAll('#over .x text')].map((t) => t.textContent)")
    return [str(each) for each in told]


def test_a_wheel_scrolls_the_page_and_with_ctrl_zooms_the_map(page: Page) -> None:
    page.ask("document.querySelector('#map').scrollIntoView({behavior: 'instant'})")
    x, y = page.ask(
        "(() => { const b = document.querySelector('#plot').getBoundingClientRect();"
        "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    before, top = ticks(page), page.ask("scrollY")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100, button="none")
    page.until(f"scrollY < {top}")
    assert page.ask("document.querySelector('#hint').checkVisibility()")
    assert text(page, "#hint") == "Ctrl and wheel zoom the map"
    page.until("document.querySelector('#hint').hidden")
    assert ticks(page) == before
    page.ask("document.querySelector('#map').scrollIntoView({behavior: 'instant'})")
    top = page.ask("scrollY")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100, button="none", modifiers=2)
    page.until(
        "[...document.querySelectorAll('#over .x text')].map((t) => t.textContent).join() !== "
        + json.dumps(",".join(before))
    )
    # A step of the wheel is a small step of the map.
    assert 1.05 < page.ask("document.querySelector('#plot').__zoom.k") < 1.3
    assert page.ask("[scrollY, document.querySelector('#hint').hidden]") == [top, True]


def test_one_finger_scrolls_the_page_and_two_move_the_map(page: Page, written: str) -> None:
    page.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    show(page, written)
    page.ask("addEventListener('scrollend', () => { document.title = 'at rest'; })")
    page.ask("document.querySelector('#map').scrollIntoView({behavior: 'instant'})")
    page.until("document.title === 'at rest'")
    x, y = page.ask(
        "(() => { const b = document.querySelector('#plot').getBoundingClientRect();"
        "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )

    def drag(*fingers: float) -> None:
        """Fingers side by side, at these distances from the middle, go up; two go apart, too."""
        for kind, up in (("touchStart", 0), *(("touchMove", 15 * each) for each in range(1, 9))):
            points = [
                {"x": x + (1 + up / 60 * (len(fingers) - 1)) * each, "y": y - up, "id": at}
                for at, each in enumerate(fingers)
            ]
            page.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)
        page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    top = page.ask("scrollY")
    page.ask("document.title = 'moving'")
    drag(0.0)
    # While the page still moves, a browser complains of fingers that are the map's.
    page.until("document.title === 'at rest'")
    assert page.ask("scrollY") > top
    assert page.ask("document.querySelector('#plot').__zoom.k") == 1
    page.ask("document.querySelector('#map').scrollIntoView({behavior: 'instant'})")
    drag(-30.0, 30.0)
    page.until("document.querySelector('#plot').__zoom.k > 1.5")
    page.call("Emulation.setTouchEmulationEnabled", enabled=False)


def test_bars_of_whole_numbers_are_whole_and_open_ends_are_told(
    browsed: Page, found: Exploration, tmp_path: Path, rng: np.random.Generator
) -> None:
    items = np.arange(N, dtype=float) % 16 + 1.0
    visits = np.where(rng.random(N) < 0.5, np.arange(N) % 300, 7.0)
    visits[0] = 90_000.0
    cost = np.round(rng.uniform(10.0, 20.0, N), 3)
    cost[[3, 5]], cost[7] = 0.5, 812.25
    columns = [
        Original("items", "number", items),
        Original("visits", "number", visits),
        Original("cost", "number", cost),
    ]
    path = tmp_path / "page.html"
    path.write_text(page_of(replace(found, columns=columns)), encoding="utf-8")
    show(browsed, path.as_uri())

    def bars(name: str) -> list[str]:
        at = f"document.querySelectorAll('.shape[aria-label={name}] .bin')"
        told = browsed.ask(f"[...{at}].map((each) => each.getAttribute('aria-label'))")
        return [str(each).partition(":")[0] for each in told]

    def below(name: str) -> list[str]:
        at = f"document.querySelectorAll('.shape[aria-label={name}] svg > text')"
        return [str(each) for each in browsed.ask(f"[...{at}].map((each) => each.textContent)")]

    assert bars("items") == [str(each) for each in range(1, 17)]
    assert below("items") == ["1", "16"]
    assert bars("visits")[:2] == ["0 to 19", "20 to 39"]
    assert bars("visits")[-1].startswith("at least ")
    assert below("visits")[-1] == "1 higher, to 90000"
    assert bars("cost")[0].startswith("at most ")
    assert bars("cost")[-1].startswith("at least ")
    assert below("cost")[1] == "2 lower, to 0.5"
    assert below("cost")[-1] == "1 higher, to 812.25"
    # What is told is what a click finds.
    browsed.click('.shape[aria-label="items"] .bin[aria-label^="5:"]')
    browsed.until("document.querySelector('#chips').innerText.startsWith('items 5 ')")
    assert count(browsed) == int((items == 5.0).sum())
    show(browsed, path.as_uri())
    last = bars("visits")[-1]
    browsed.click(f'.shape[aria-label="visits"] .bin[aria-label^="{last}:"]')
    browsed.until(f"document.querySelector('#chips').innerText.startsWith('visits {last} ')")
    assert count(browsed) == int((visits >= float(last.rpartition(" ")[2])).sum())
    assert browsed.console == []


def test_a_few_rows_have_no_label_on_the_map(
    browsed: Page, found: Exploration, tmp_path: Path
) -> None:
    """Unless they are what is looked at."""
    # They lie by themselves, where there is all the room for a label.
    fourth = np.flatnonzero(found.clusters == 4)
    lone = found.of_rows(np.setdiff1d(np.arange(N), fourth[2:]))
    path = tmp_path / "page.html"
    path.write_text(page_of(lone), encoding="utf-8")
    labels = "[...document.querySelectorAll('#over .label')].map((e) => e.textContent)"
    show(browsed, f"{path.as_uri()}#by=cluster")
    told = browsed.ask(labels)
    assert {each.split(" ")[1] for each in told} == {"1", "3"}  # 2 lies beside 1
    show(browsed, f"{path.as_uri()}#by=cluster&cluster=4")
    assert [each.split(" ")[1] for each in browsed.ask(labels)] == ["4"]
