"""The part of a page that is explored: a map, a tree of groups, members, distributions.

Names, sizes and sentences are plain HTML, which needs no script; the rows follow packed, for the
script ``explorer.js`` to draw.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.answers.numbers import moment_text, share_text
from weald.answers.projection import MAP

from .timeline import timeline

if TYPE_CHECKING:
    from weald.answers.description.sentences import Sentence
    from weald.answers.exploration import Exploration, Part
    from weald.answers.report_data import Birth
    from weald.stream.record.fields.originals import Original

__all__ = [
    "MOST_COLUMNS",
    "MOST_DRAWN",
    "Fragments",
    "empty_explorer",
    "explorer",
    "fragments_of",
    "hash_of",
    "styles",
]

# Rows that a page holds; of more as many are drawn at random.
MOST_DRAWN = 100_000
# Columns that a page holds: those that sentences are about first.
MOST_COLUMNS = 64
# Significant digits of the numbers on a page: enough for what was written in decimals.
DIGITS, FEWER = 10, 6
# Moments of birth from which on one is the newest, and how many that share it are named.
FEWEST_BIRTHS, MOST_NEWEST = 2, 3
# What is said of the numbers beside every part.
SURE = "<q>How sure</q>: how likely its rows are to belong there; 1 is certain. "
SHARES = "After each sentence: for how many of its rows it is true, and for how many elsewhere."
# The colours of signs, as the style sheet has them, and shades of them: per cent of ink.
COLOURS, INK = 10, (0, 35, 65)
# Of fewer, groups are not told apart: their clusters are.
FEWEST_GROUPS = 2
# What a rule on a number says besides its ends, which a name needs not.
WIDTH = re.compile(r", \S+ wide$")
# Paths of 16 by 16 around the middle, for the tree and the map.
_SHAPES = (
    "M6 0A6 6 0 1 1 -6 0A6 6 0 1 1 6 0Z",
    "M-5.3 -5.3H5.3V5.3H-5.3Z",
    "M0 -7L6.5 5H-6.5Z",
    "M0 -7.5L5.5 0L0 7.5L-5.5 0Z",
    "M-2.3 -6.8H2.3V-2.3H6.8V2.3H2.3V6.8H-2.3V2.3H-6.8V-2.3H-2.3Z",
    "M0 7L-6.5 -5H6.5Z",
    "M-7-4L-4-7L0-3L4-7L7-4L3 0L7 4L4 7L0 3L-4 7L-7 4L-3 0Z",
)


def styles() -> str:
    """Return the style sheet of the explorer."""
    return _own("explorer.css")


class Sign(NamedTuple):
    """How a part is marked in the list, the map, the lines and the table: a fill, and a shape."""

    fill: str
    shape: int


class Fragments(NamedTuple):
    """What an explorer is filled with: HTML, a remark, and what its script draws."""

    tree: str
    remark: str
    timeline: str
    data: dict[str, Any]


def fragments_of(found: Exploration, seed: int = 0) -> Fragments:
    """Return what there is to explore as a page takes it; ``seed`` as of ``explorer``."""
    drawn = found.sampled(MOST_DRAWN, np.random.default_rng(seed))
    how = _shown(found)
    data = _payload(drawn, how, on_map=_is_map(drawn.plane.axes))
    return Fragments(_tree(found, how), _remark(drawn), _timeline(found, how), data)


def explorer(found: Exploration, seed: int = 0) -> tuple[str, list[str]]:
    """Return HTML to put on a page, and the scripts (their texts) that it then needs.

    Parameters
    ----------
    found : Exploration
    seed : int
        Of the rows that are drawn where there are more than a page holds.
    """
    filled = fragments_of(found, seed)
    on_map = filled.data["land"] is not None
    return _filled(filled, _packed(filled.data)), _scripts(on_map=on_map)


def empty_explorer() -> tuple[str, list[str]]:
    """Return the same before there is anything to explore, for a page that asks for it."""
    return _filled(Fragments("", "", "", {}), ""), _scripts(on_map=True)


def _filled(fragments: Fragments, data: str) -> str:
    body = _own("explorer.html")
    for name, text in {
        "tree": fragments.tree,
        "remark": escape(fragments.remark),
        "timeline": fragments.timeline,
        "licence": f"<!-- {_own('vendor/LICENSE.md')} -->",
        "data": data,
    }.items():
        body = body.replace(f"<!--{name}-->", text)
    return body


def _scripts(*, on_map: bool) -> list[str]:
    libraries = ["vendor/d3.min.js"]
    if on_map:
        libraries.append("vendor/topojson-client.min.js")
    return [*map(_own, libraries), _own("explorer.js")]


def hash_of(script: str) -> str:
    """Return the source of a script as a content security policy names it."""
    return f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _is_map(axes: Sequence[str]) -> bool:
    return tuple(axis.lower() for axis in axes) == MAP


def _remark(drawn: Exploration) -> str:
    n = len(drawn.clusters)
    if n < drawn.n_all:
        return f"{drawn.plane.how} {n:,} rows of {drawn.n_all:,}, drawn at random."
    return drawn.plane.how


def _packed(payload: dict[str, Any]) -> str:
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _payload(found: Exploration, how: _Shown, *, on_map: bool) -> dict[str, Any]:
    return {
        "axes": found.plane.axes,
        "x": _numbers(found.plane.points[:, 0], FEWER),
        "y": _numbers(found.plane.points[:, 1], FEWER),
        "land": json.loads(_own("vendor/land-110m.json")) if on_map else None,
        "cluster": found.clusters.tolist(),
        "density": _numbers(found.density, FEWER),
        "called": found.called,
        "keys": list(found.keys),
        "texts": list(found.texts),
        "columns": [_column(each) for each in _told(found)],
        "clusters": _named("cluster", found.parts, how),
        "groups": _named("group", found.groups, how),
        "shapes": _SHAPES,
    }


def _named(kind: str, parts: Sequence[Part], how: _Shown) -> list[dict[str, Any]]:
    names, signs = how.names[kind], how.signs[kind]
    return [
        {"id": each.id, "name": names[each.id], "group": each.group, "sign": signs[each.id]}
        for each in parts
    ]


def _names(parts: Sequence[Part]) -> dict[int, str]:
    """What parts are called: by people, else by what sets them apart; of one name, by both."""
    said = {each.id: [WIDTH.sub("", one.what) for one in each.sentences] for each in parts}
    names = {each.id: each.name or next(iter(said[each.id]), "") for each in parts}
    namesakes: dict[str, list[int]] = {}
    for each, name in names.items():
        namesakes.setdefault(name, []).append(each)
    for name, own in namesakes.items():
        if len(own) == 1 or not name:
            continue
        shared = Counter(what for each in own for what in said[each])
        for each in own:
            parting = next((what for what in said[each] if shared[what] == 1), "")
            names[each] = f"{name}, {parting}" if parting else name
    return names


def _told(found: Exploration) -> list[Original]:
    """The columns that the page holds, in their order."""
    if len(found.columns) <= MOST_COLUMNS:
        return list(found.columns)
    parts = (*found.groups, *found.parts)
    said = {each.column for part in parts for each in part.sentences}
    first = sorted(found.columns, key=lambda column: column.name not in said)[:MOST_COLUMNS]
    names = {column.name for column in first}
    return [column for column in found.columns if column.name in names]


def _column(column: Original) -> dict[str, Any]:
    if column.kind != "category":
        told = {"name": column.name, "kind": column.kind, "values": _numbers(column.values, DIGITS)}
        if column.kind == "moment":
            return {**told, "written": len(column.moments()(0.0))}
        if column.period is None:
            return told
        return {**told, "period": column.period, "dates": column.has_dates}
    names = sorted({str(each) for each in column.values if each is not None})
    code = {name: at for at, name in enumerate(names)}
    values = [None if each is None else code[str(each)] for each in column.values]
    return {"name": column.name, "kind": column.kind, "names": names, "values": values}


def _numbers(values: NDArray[np.float64], digits: int) -> list[float | None]:
    """Numbers with so many digits; what is not finite has none."""
    told = (float(f"{each:.{digits}g}") if np.isfinite(each) else None for each in values.tolist())
    return [
        int(each) if each is not None and each.is_integer() and abs(each) < 2**53 else each
        for each in told
    ]


def _timeline(found: Exploration, how: _Shown) -> str:
    if found.timeline is None:
        return ""
    names, signs = how.names["cluster"], how.signs["cluster"]
    # What ended has the colour of where most of it went.
    last = {line.cluster: line.heir or line.cluster for line in found.timeline.lines}
    fills = {each: signs[of].fill for each, of in last.items() if of in signs}
    drawn = timeline(found.timeline, names, lambda cluster: fills.get(cluster, "var(--quiet)"))
    when = "the newest time in the data by then" if found.timeline.is_by_data else "when that was"
    page = _own("timeline.html").replace("<!--when-->", f"{when} (UTC)")
    return page.replace("<!--lives-->", drawn)


def _tree(found: Exploration, how: _Shown) -> str:
    kind, parts = ("group", found.groups) if found.groups else ("cluster", found.parts)
    many = f"{len(parts)} {kind}s, largest first. " if len(parts) > 1 else ""
    newest = _newest(kind, parts, how.published)
    sure = "" if all(part.sure is None for part in parts) else SURE
    said = (*found.groups, *found.parts)
    shares = SHARES if any(part.sentences for part in said) else ""
    return f'<p class="about">{many}{newest}{sure}{shares}</p>{_list_of(found, how)}'


def _newest(kind: str, parts: Sequence[Part], published: int) -> str:
    """Links to what came last of so many publications, where not all came at once."""
    since = {part.id: part.since for part in parts if part.since is not None}
    if not published and not since and len(parts) > 1:
        return "None is the newest: rows of a file are read at once. "
    if len({each.publication for each in since.values()}) < FEWEST_BIRTHS:
        return ""
    last = max(since.values(), key=lambda each: each.publication)
    newest = [each for each, born in since.items() if born.publication == last.publication]
    when = _since(last, published)
    if last.publication < published and last.time is not None:
        when += f" (publication {last.publication} of {published})"
    told = f"Newest: {_links(kind, newest)}, {when}. "
    # What came last may have been grouped anew since: it is the newest all the same.
    older = {each: born for each, born in since.items() if each not in newest}
    anew = [each for each, born in older.items() if _is_grouped_anew(born, published)]
    if anew:
        told += f"Not new, but grouped anew at the latest publication: {_links(kind, anew)}. "
    return told


def _links(kind: str, parts: Sequence[int]) -> str:
    links = [f'<a href="#{kind}={each}">{kind} {each}</a>' for each in parts[:MOST_NEWEST]]
    more = "" if len(parts) <= MOST_NEWEST else f" and {len(parts) - MOST_NEWEST} more"
    return f"{', '.join(links)}{more}"


def _is_grouped_anew(born: Birth, published: int) -> bool:
    """Whether the newest publication first told of a group, and earlier ones of its clusters."""
    return born.grouped == published > born.publication


def _since(born: Birth, published: int) -> str:
    """Since when something is there, of so many publications."""
    if born.publication == published > 1:
        return "new since the latest publication"
    if born.reached is not None:
        return f"since {moment_text(born.reached)} in the data"
    if born.time is None:
        return f"since publication {born.publication}"
    return f"since {moment_text(born.time)}"


class _Shown(NamedTuple):
    """How parts are shown: of so many publications, by kind and id with signs and names.

    What is no stream has no publication.
    """

    published: int
    signs: Mapping[str, Mapping[int, Sign]]
    names: Mapping[str, Mapping[int, str]]


def _shown(found: Exploration) -> _Shown:
    published = found.timeline.publications[-1].number if found.timeline else 0
    names = {"group": _names(found.groups), "cluster": _names(found.parts)}
    return _Shown(published, _signs(found), names)


def _list_of(found: Exploration, how: _Shown) -> str:
    if not found.groups:
        return _list(_part("cluster", part, how) for part in found.parts)
    inside: dict[int | None, list[Part]] = {}
    for part in found.parts:
        inside.setdefault(part.group, []).append(part)
    # One group says nothing: its clusters do.
    unfolded = len(found.groups) < FEWEST_GROUPS
    groups = [
        _part("group", group, how, inside.get(group.id, ()), unfolded=unfolded)
        for group in found.groups
    ]
    return _list([*groups, *(_part("cluster", part, how) for part in inside.get(None, ()))])


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _part(
    kind: str, part: Part, how: _Shown, inside: Sequence[Part] = (), *, unfolded: bool = False
) -> str:
    sure = "" if part.sure is None else f" · how sure {share_text(part.sure)}"
    rows = f"{part.size:,} {'row' if part.size == 1 else 'rows'}"
    within = f" · {len(inside)} clusters" if len(inside) > 1 else ""
    if part.since is not None:
        within += f" · {_since(part.since, how.published)}"
        if _is_grouped_anew(part.since, how.published):
            within += ", grouped so since the latest publication"
    head = (
        f'<a class="part" href="#{kind}={part.id}" data-kind="{kind}" data-id="{part.id}">'
        f'{_svg(how.signs[kind][part.id])}<span class="name"><b>{kind.capitalize()} {part.id}</b> '
        f"{escape(how.names[kind][part.id])}</span>"
        f'<span class="size">{rows} · {part.share:.1%}{sure}{within}</span>'
        f'<span class="share"><i style="width:{100 * part.share:.2f}%"></i></span>'
        '<span class="match"></span></a>'
    )
    said = "".join(_sentence(each) for each in part.sentences)
    if part.pattern:
        said = f'<li class="pattern">{escape(part.pattern)}</li>'
    apart = "all rows are in it" if part.share == 1.0 else "nothing sets it apart"
    head += f'<ul class="said">{said or f"<li>{apart}</li>"}</ul>'
    if len(inside) > 1:
        clusters = _list(_part("cluster", each, how) for each in inside)
        is_open = " open" if unfolded else ""
        head += f"<details{is_open}><summary>{len(inside)} clusters in group {part.id}</summary>"
        head += f"{clusters}</details>"
    return head


def _sentence(sentence: Sentence) -> str:
    # A number and its per cent stay on one line.
    what, _, shares = str(sentence).replace(" %", "\N{NO-BREAK SPACE}%").rpartition(": ")
    return (
        f"<li>{escape(what)}: <b>{escape(shares.partition(',')[0])}</b>"
        f'<span class="quiet">,{escape(shares.partition(",")[2])}</span></li>'
    )


def _signs(found: Exploration) -> dict[str, dict[int, Sign]]:
    """Signs of groups, which follow from their ids, and of clusters.

    Where there are several groups, a cluster has the mark of its group and a shade of its colour,
    so that it cannot be taken for the group that has its number; one that is in no group has no
    colour. Where there is one group, or none, signs of clusters follow from their ids.
    """
    if len(found.groups) < FEWEST_GROUPS:
        groups = {each.id: Sign("var(--ink)", 0) for each in found.groups}
        return {"group": groups, "cluster": {each.id: _sign(each.id) for each in found.parts}}
    groups = {each.id: _sign(each.id) for each in found.groups}
    clusters, drawn = {}, Counter[int]()
    for each in found.parts:
        if each.group is None:
            clusters[each.id] = Sign("var(--ink)", 0)
            continue
        fill, shape = groups[each.group]
        if ink := INK[drawn[each.group] % len(INK)]:
            fill = f"color-mix(in lab, {fill}, var(--ink) {ink}%)"
        drawn[each.group] += 1
        clusters[each.id] = Sign(fill, shape)
    return {"group": groups, "cluster": clusters}


def _sign(number: int) -> Sign:
    around, at = divmod(number - 1, COLOURS)
    return Sign(f"var(--c{at})", (number - 1 + around) % len(_SHAPES))


def _svg(sign: Sign) -> str:
    return (
        f'<svg class="sign" viewBox="-8 -8 16 16" aria-hidden="true">'
        f'<path d="{_SHAPES[sign.shape]}" style="fill:{sign.fill}"/></svg>'
    )
