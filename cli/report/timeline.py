"""The timeline of a page: a line for each cluster, forking where it splits, joining where merged.

Plain SVG, which needs no script: a line is a link that selects its cluster, an ended one its heir.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import sqrt
from operator import itemgetter
from typing import TYPE_CHECKING

from weald.answers.numbers import iso_time, moment_text

if TYPE_CHECKING:
    from weald.answers.timeline import Line, Link, Timeline

__all__ = ["timeline"]

# Pixels: of the whole, beside the lines, between two lines, and the thinnest and thickest line.
WIDTH, LEFT, RIGHT, TOP, BOTTOM, LANE = 960, 14, 210, 52, 8, 15
THIN, THICK = 1.6, 11.0
# How far before its publication a fork leaves its line, in publications.
BEND = 0.55
# Free room that a line needs beside another in its lane, in publications.
APART = 0.3
LONGEST_NAME = 30
# Ticks that have a number and a date, and where these stand above the lines.
MOST_TICKS, NUMBER, DAY, CLOCK = 9, 38, 24, 11


@dataclass(frozen=True)
class _Drawing:
    """What is drawn, where lines lie, and how they are told."""

    found: Timeline
    names: Mapping[int, str]
    fill: Callable[[int], str]
    at: Mapping[int, float]
    largest: int

    def across(self, place: float) -> float:
        """From places to pixels."""
        return round(LEFT + (WIDTH - LEFT - RIGHT) * place / self.found.end, 1)


def timeline(found: Timeline, names: Mapping[int, str], fill: Callable[[int], str]) -> str:
    """Return the drawing as SVG, with a sentence of what is left out.

    Parameters
    ----------
    found : Timeline
    names : mapping of int to str
        What the living clusters are called beside their ids.
    fill : callable
        The colour of a cluster, as a style sheet has it.
    """
    lanes = _lanes(found)
    height = TOP + LANE * (max(lanes.values(), default=0) + 1) + BOTTOM
    at = {cluster: TOP + LANE * (lane + 0.5) for cluster, lane in lanes.items()}
    largest = max((line.largest for line in found.lines), default=1)
    drawing = _Drawing(found, names, fill, at, largest)
    lines = {line.cluster: line for line in found.lines}
    drawn = [_ticks(drawing, height)]
    drawn += [_link(link, drawing) for link in _while_there(found.links, lines)]
    # In reading order, so that keys go up and down.
    for line in sorted(found.lines, key=lambda each: (at[each.cluster], each.start)):
        drawn.append(_line(line, drawing))
    drawn.append(_axis(drawing))
    remark = (
        f'<p class="quiet">{found.n_left_out:,} smaller clusters are not drawn.</p>'
        if found.n_left_out
        else ""
    )
    return (
        f'<svg class="lives" viewBox="0 0 {WIDTH} {height}" style="min-width:{WIDTH}px">'
        f"{''.join(drawn)}</svg>{remark}"
    )


def _lanes(found: Timeline) -> dict[int, int]:
    """Lane of each line: children below their parents, in the first lane that is free there."""
    parent: dict[int, int] = {}
    rank = {line.cluster: at for at, line in enumerate(found.lines)}
    for link in found.links:
        # By what it came from, else by where it went.
        if link.kind in ("split", "birth") and link.target not in parent:
            parent[link.target] = link.source
    for link in found.links:
        if link.kind == "merge" and link.source not in parent:
            parent[link.source] = link.target
    below: dict[int | None, list[Line]] = {}
    for line in found.lines:
        above = parent.get(line.cluster)
        below.setdefault(above if _reaches_root(line.cluster, parent) else None, []).append(line)
    busy: list[list[tuple[float, float]]] = []
    lanes: dict[int, int] = {}
    stack = [(line, 0) for line in reversed(below.get(None, []))]
    while stack:
        line, first = stack.pop()
        span = (line.start - APART, line.end + APART)
        for lane in range(first, len(busy) + 1):
            if lane == len(busy):
                busy.append([])
            if all(span[1] <= low or high <= span[0] for low, high in busy[lane]):
                busy[lane].append(span)
                lanes[line.cluster] = lane
                break
        children = sorted(below.get(line.cluster, []), key=lambda each: rank[each.cluster])
        stack += [(each, lanes[line.cluster] + 1) for each in reversed(children)]
    return lanes


def _reaches_root(cluster: int, parent: Mapping[int, int]) -> bool:
    """Whether its line of parents ends: where two are each other's, none of them is below."""
    seen = {cluster}
    while cluster in parent:
        cluster = parent[cluster]
        if cluster in seen:
            return False
        seen.add(cluster)
    return True


def _ticks(drawing: _Drawing, height: int) -> str:
    return "".join(
        f'<path class="tick" d="M{drawing.across(place)} {TOP - 4}V{height - BOTTOM}"/>'
        for place in range(1, len(drawing.found.publications) + 1)
    )


def _axis(drawing: _Drawing) -> str:
    """Numbers and times above the lines, on a ground under which lines may scroll."""
    found = drawing.found
    every = -(-len(found.publications) // MOST_TICKS)
    labelled = [
        (drawing.across(place), publication.number)
        for place, publication in enumerate(found.publications, start=1)
        if (len(found.publications) - place) % every == 0
    ]
    ground = f'<rect width="{WIDTH}" height="{TOP - 4}"/>'
    return f'<g class="axis">{ground}{_dated(labelled, found)}</g>'


def _dated(labelled: Sequence[tuple[float, int]], found: Timeline) -> str:
    """Numbers of publications at pixels, below each when it was; a day where it is another."""
    moments = found.moments
    times = {number: iso_time(moments.get(number)) or "" for _, number in labelled}
    # Where several are of one minute, seconds tell them apart.
    known = [each for each in times.values() if each]
    whole = len({each[:16] for each in known}) < len(known)
    told, day = [], ""
    for x, number in labelled:
        date, _, clock = times[number].rstrip("Z").partition("T")
        lines = [(NUMBER, str(number), ' class="id"'), (CLOCK, clock if whole else clock[:5], "")]
        if date != day:
            lines.append((DAY, date, ""))
        day = date
        for above, text, how in filter(itemgetter(1), lines):
            told.append(
                f'<text x="{x}" y="{TOP - above}" text-anchor="middle"{how}>{escape(text)}'
                f"<title>{escape(_publication(number, found))}</title></text>"
            )
    return "".join(told)


def _publication(number: int, found: Timeline) -> str:
    """A publication with when it was, where that is known."""
    when = found.moments.get(number)
    return f"publication {number}" + ("" if when is None else f" ({moment_text(when)})")


def _while_there(links: Sequence[Link], lines: Mapping[int, Line]) -> list[Link]:
    """Links while both ends are there."""
    return [
        link
        for link in links
        if lines[link.source].start <= link.place <= lines[link.source].end
        and lines[link.target].start <= link.place <= lines[link.target].end
    ]


def _link(link: Link, drawing: _Drawing) -> str:
    start, end = drawing.across(max(link.place - BEND, 0.0)), drawing.across(link.place)
    middle = round((start + end) / 2, 1)
    y, to = drawing.at[link.source], drawing.at[link.target]
    own = drawing.fill(link.source if link.kind == "merge" else link.target)
    return (
        f'<path class="link {link.kind}" data-from="{link.source}" data-to="{link.target}" '
        f'd="M{start} {y}C{middle} {y} {middle} {to} {end} {to}" style="stroke:{own}"/>'
    )


def _shape(line: Line, drawing: _Drawing) -> str:
    """A band as thick as the square root of the size, which is straight between known sizes."""
    known = [(max(place, line.start), size) for place, size in line.sizes if place <= line.end]
    known = [(line.start, known[0][1]), *known, (line.end, known[-1][1])]
    # Of one place the last size counts, and the first where the line jumps to it.
    kept = [known[0]]
    for before, now in pairwise(known):
        if now != before:
            kept.append(now)
    y, thicker = drawing.at[line.cluster], THICK - THIN
    half = [
        (drawing.across(place), (THIN + thicker * sqrt(size / drawing.largest)) / 2)
        for place, size in kept
    ]
    if half[0][0] == half[-1][0]:
        half.append((half[0][0] + 1.0, half[0][1]))
    upper = [f"{x} {y - h:.1f}" for x, h in half]
    lower = [f"{x} {y + h:.1f}" for x, h in reversed(half)]
    return f"M{'L'.join([*upper, *lower])}Z"


def _line(line: Line, drawing: _Drawing) -> str:
    x, end, y = drawing.across(line.start), drawing.across(line.end), drawing.at[line.cluster]
    own = drawing.fill(line.cluster)
    body = f'<path class="life" d="{_shape(line, drawing)}" style="fill:{own}"/>'
    if line.begun:
        body += f'<circle cx="{x}" cy="{y}" r="2.6" style="fill:{own}"/>'
    if line.ended and line.heir is None:
        body += f'<path class="gone" d="M{end} {y - 4}V{y + 4}"/>'
    # Wider than the line, for hands and fingers.
    reach, label = end, ""
    if not line.ended:
        reach = WIDTH
        name = drawing.names.get(line.cluster, "").partition(", ")[0]
        name = f"{name[: LONGEST_NAME - 1]}…" if len(name) > LONGEST_NAME else name
        body += (
            f'<text x="{end + 6:.1f}" y="{y + 3.6:.1f}"><tspan class="id">{line.cluster}</tspan> '
            f"{escape(name)}</text>"
        )
        # What is read out holds what is seen.
        label = escape(f"{line.cluster} {name}".strip(), quote=True) + ": "
    said = escape(_sentence(line, drawing.found), quote=True)
    body = f'<title>{said}</title><path class="reach" d="M{x} {y}H{reach}"/>{body}'
    chosen = line.heir if line.ended else line.cluster
    if chosen is None:
        return f'<g class="line" data-id="{line.cluster}">{body}</g>'
    return (
        f'<a class="line" href="#cluster={chosen}" data-id="{line.cluster}" data-leads="{chosen}" '
        f'aria-label="{label}{said}">{body}</a>'
    )


def _sentence(line: Line, found: Timeline) -> str:
    """The life of a cluster in one sentence."""
    came = next(
        (link for link in found.links if link.target == line.cluster
         and link.kind in ("split", "birth")), None
    )  # fmt: skip
    gone = next(
        (link for link in found.links if link.source == line.cluster and link.kind == "merge"
         and line.ended and link.place == line.end), None
    )  # fmt: skip
    first = found.publications[0].number - 1
    said = f"Cluster {line.cluster}"
    if came is not None:
        verb = "split from" if came.kind == "split" else "born from"
        said += f", {verb} {came.source} at {_publication(first + round(came.place), found)}"
    elif line.begun:
        said += f", born after {_publication(first + int(line.start), found)}"
    else:
        said += f", there before {_publication(first + 1, found)}"
    if not line.ended:
        return f"{said}; {line.sizes[-1][1]:,} now"
    if gone is not None:
        said += f", merged into {gone.target}"
    else:
        said += ", ended"
    said += f" at {_publication(first + round(line.end), found)} with {line.sizes[-1][1]:,}"
    return said if line.heir is None else f"{said}; selects {line.heir}, where most of it went"
