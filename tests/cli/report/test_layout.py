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
    assert bottoms[1] <= tops[2] < 844
