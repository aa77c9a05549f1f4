"""What a page looks like at several widths: nothing cut, nothing on something else, all legible."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.planted import exploration, page_of
from tests.servers.chromium import Browser
from tests.servers.devtools import Page, driven
from weald.stream.record.fields.originals import Original

# A phone, a tablet, a desk.
WIDTHS = (360, 768, 1280)
LEAST_CONTRAST = 4.5
# Every piece of text that is seen, as far as it is, and what is wrong with it.
FLAWS = Path(__file__).with_name("flaws.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browsed(chromium: Browser) -> Iterator[Page]:
    with driven(chromium.program) as page:
        yield page


@pytest.fixture(
    scope="module", params=[("x", "y"), ("longitude", "latitude")], ids=["plane", "map"]
)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a page whose groups have names, of which one is long."""
    found = exploration(np.random.default_rng(20), axes=request.param)
    names = ["Old Town", "A place with a name that goes on and on without an end", ""]
    groups = [replace(each, name=name) for each, name in zip(found.groups, names, strict=True)]
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(page_of(replace(found, groups=groups)), encoding="utf-8")
    return path.as_uri()


def flaws(page: Page) -> Any:
    return page.ask(f"({FLAWS})({LEAST_CONTRAST})")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "at", ["", "#group=1", "#cluster=2&q=norway"], ids=["all", "group", "found"]
)
def test_text_is_whole_apart_and_legible(
    browsed: Page, written: str, at: str, width: int, *, dark: bool
) -> None:
    browsed.open(f"{written}{at}", width=width, height=900, dark=dark)
    browsed.until("document.documentElement.dataset.ready")
    assert flaws(browsed) == []


@pytest.mark.parametrize(
    ("style", "flaw"),
    [
        ("h1, h1 + * { position: absolute; top: 0; left: 1rem }", "on each other"),
        ("h1 { white-space: nowrap; width: 2rem; overflow: hidden }", "cut"),
        ("h1 { position: absolute; left: -1rem }", "outside"),
        ("#plot { min-width: 2000px }", "wider than the window"),
        ("h1 { color: #888 }", "faint"),
        (".shape svg text { fill: #aaa !important }", "faint"),
    ],
)
def test_flaws_are_seen(browsed: Page, written: str, style: str, flaw: str) -> None:
    browsed.open(written, width=768, height=900)
    browsed.until("document.documentElement.dataset.ready")
    browsed.ask(
        "document.head.append(Object.assign(document.createElement('style'), "
        f"{{ textContent: {style!r} }}))"
    )
    assert any(each.startswith(flaw) for each in flaws(browsed))


def test_on_a_phone_the_list_comes_before_the_map(browsed: Page, written: str) -> None:
    """What is newest and what is selected is seen at once."""
    browsed.open(f"{written}#group=3", width=390, height=844)
    browsed.until("document.documentElement.dataset.ready")
    boxes = "['.tree .about', '.part[aria-current]', '#map'].map((each) => "
    boxes += "{ const box = document.querySelector(each).getBoundingClientRect(); "
    tops = browsed.ask(boxes + "return box.top; })")
    bottoms = browsed.ask(boxes + "return box.bottom; })")
    assert tops[0] < 500
    assert bottoms[1] <= tops[2]
    browsed.click("#to-map")
    browsed.until("Math.abs(document.querySelector('#map').getBoundingClientRect().top) < 100")


def test_on_a_phone_the_list_does_not_scroll_in_the_page(browsed: Page, tmp_path: Path) -> None:
    """Six parts are shown and the one that is selected, and all others on demand."""
    found = exploration(np.random.default_rng(20))
    groups = [replace(found.groups[at % 3], id=at + 1) for at in range(9)]
    path = tmp_path / "page.html"
    path.write_text(page_of(replace(found, groups=groups)), encoding="utf-8")
    shown = "[...document.querySelectorAll('.part[data-kind=group]')]"
    shown += ".filter((e) => e.checkVisibility()).map((e) => e.dataset.id)"
    held = "(() => { const e = document.querySelector('#tree');"
    held += "return e.scrollHeight > e.clientHeight + 1; })()"

    def opened(width: int, at: str = "") -> None:
        browsed.open(f"{path.as_uri()}{at}", width=width, height=844)
        browsed.until("document.documentElement.dataset.ready")

    opened(390)
    assert browsed.ask(shown) == list("123456")
    assert not browsed.ask(held)
    assert browsed.ask("document.querySelector('#longer').innerText") == "All 9 groups"
    browsed.click("#longer")
    assert browsed.ask(shown) == list("123456789")
    assert not browsed.ask(held)
    browsed.click("#longer")
    assert browsed.ask(shown) == list("123456")
    opened(390, "#group=8")
    assert browsed.ask(shown) == list("1234568")
    # What is told above it leads to where it is.
    about = "document.querySelector('.tree .about')"
    browsed.ask(f"{about}.innerHTML += ' <a href=\"#group=9\">group 9</a>'; scrollTo(0, 0)")
    browsed.click(".tree .about a:last-child")
    browsed.until("document.querySelector('.part[aria-current]')?.dataset.id === '9'")
    top = "document.querySelector('.part[aria-current]').getBoundingClientRect().top"
    browsed.until(f"0 <= {top} && {top} < 844")
    opened(1280)
    assert browsed.ask(shown) == list("123456789")
    assert browsed.ask("document.querySelector('#longer').checkVisibility()") is False


def test_a_table_that_is_cut_says_that_it_scrolls(browsed: Page, tmp_path: Path) -> None:
    found = exploration(np.random.default_rng(20))
    more = [Original(f"measure {at}", "number", np.arange(400.0) * at) for at in range(1, 6)]
    path = tmp_path / "page.html"
    wide = replace(found, columns=[*found.columns, *more])
    path.write_text(page_of(wide), encoding="utf-8")
    told = "document.querySelector('#sideways')"
    shades = []
    for dark in (False, True):
        browsed.open(path.as_uri(), width=390, height=844, dark=dark)
        browsed.until("document.documentElement.dataset.ready")
        assert browsed.ask(f"{told}.innerText") == "Scroll it sideways for all 12 columns →"
        shades += [shade(browsed, right=True), shade(browsed, right=False)]
        browsed.ask("document.querySelector('#members').parentElement.scrollLeft = 1e4")
        shades += [shade(browsed, right=True), shade(browsed, right=False)]
    # A shade at the side where there is more, and at none else.
    assert [each > 20 for each in shades] == [True, False, False, True] * 2
    browsed.open(path.as_uri(), width=1280, height=844)
    browsed.until("document.documentElement.dataset.ready")
    assert browsed.ask(f"{told}.hidden")


def shade(page: Page, *, right: bool) -> int:
    """How far the ground at a side of the members differs from that of the page."""
    page.ask("document.querySelector('#members').scrollIntoView({block: 'center'})")
    x, y = page.ask(
        "(() => { const all = document.querySelector('#members'), b = all.parentElement"
        f".getBoundingClientRect(); return [scrollX + {'b.right - 2' if right else 'b.left + 1'},"
        "scrollY + all.querySelector('td').getBoundingClientRect().top + 3]; })()"
    )
    clip = {"x": x, "y": y, "width": 1, "height": 1, "scale": 1}
    png = page.call("Page.captureScreenshot", clip=clip)["data"]
    own = page.ask(
        "new Promise((told) => { const i = new Image(); i.onload = () => {"
        "const c = document.createElement('canvas').getContext('2d'); c.drawImage(i, 0, 0);"
        f"told([...c.getImageData(0, 0, 1, 1).data]); }}; i.src = 'data:image/png;base64,{png}';"
        "})"
    )
    ground = page.ask("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    return max(abs(int(a) - int(b)) for a, b in zip(own, ground, strict=False))
