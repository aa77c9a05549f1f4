"""One HTML page without a network: facts, pictures, tables."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from weald.cli.terminal.output import Column

from .explorer import explorer, hash_of, styles

if TYPE_CHECKING:
    from weald.answers.exploration import Exploration
    from weald.answers.report_data import Sampled

    from .pictures import Picture

__all__ = ["Section", "Trust", "render", "table"]


@dataclass(frozen=True)
class Section:
    """A table under a heading, with what to know before reading it."""

    title: str
    remark: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    folded: bool = False


@dataclass(frozen=True)
class Trust:
    """Whether to believe what a page shows.

    Parameters
    ----------
    believed : bool
    reasons : sequence of str
        To doubt it; none where it is believed.
    settled : str
        Whether more sampling would say the same.
    """

    believed: bool
    reasons: Sequence[str]
    settled: str


def render(
    subject: Sampled,
    pictures: Sequence[Picture],
    sections: Sequence[Section],
    found: Exploration | None = None,
    trust: Trust | None = None,
) -> str:
    """Return the page as one HTML document that asks no server for anything.

    ``found`` is what its reader can explore, ``trust`` whether to believe it. Its scripts are named
    one by one in a policy that forbids all others, and the network.
    """
    body, scripts = ("", []) if found is None else explorer(found)
    allowed = "".join(f" {hash_of(script)}" for script in scripts)
    template = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    told = (
        f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in subject.facts.items()
    )
    return Template(template).substitute(
        title=escape(subject.title),
        subtitle=escape(subject.subtitle),
        trust="" if trust is None else _trust(trust),
        styles="" if found is None else styles(),
        explorer=body,
        scripts="".join(f"<script>{script}</script>\n" for script in scripts),
        scripts_allowed=f"; script-src{allowed}" if scripts else "",
        facts="".join(told),
        pictures="\n".join(map(_figure, pictures)),
        tables="\n".join(_section(section) for section in sections if section.rows),
    )


def _trust(trust: Trust) -> str:
    head = "Believe it" if trust.believed else "Doubt it"
    why = "No check gave a reason to doubt it." if trust.believed else ""
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in trust.reasons)
    return (
        f'<div class="trust{"" if trust.believed else " doubt"}">'
        f"<p><b>{'✓' if trust.believed else '⚠'} {head}.</b> {why}</p>"
        f"{f'<ul>{reasons}</ul>' if reasons else ''}"
        f'<p class="quiet">Settled: {escape(trust.settled)}.</p></div>'
    )


def _figure(picture: Picture) -> str:
    light, dark = (b64encode(png).decode() for png in (picture.light, picture.dark))
    return (
        f"<figure><h2>{escape(picture.title)}</h2><picture>"
        f'<source srcset="data:image/png;base64,{dark}" media="(prefers-color-scheme: dark)">'
        f'<img src="data:image/png;base64,{light}" alt="{escape(picture.caption, quote=True)}">'
        f"</picture><figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def _section(section: Section) -> str:
    remark = f'<p class="quiet">{escape(section.remark)}</p>' if section.remark else ""
    title = escape(section.title, quote=True)
    body = (
        f'{remark}<div class="wide" tabindex="0" role="region" aria-label="{title}">'
        f"<table>{table(section.columns, section.rows)}</table></div>"
    )
    if section.folded:
        return f"<details><summary>{title}</summary>{body}</details>"
    return f"<h2>{title}</h2>{body}"


def table(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of an HTML table, the heading first."""
    head = "".join(
        f'<th scope="col" class="{column.align}">{escape(column.title)}</th>' for column in columns
    )
    lines = [
        "".join(
            f'<td class="{column.align}">{escape(column.show(row.get(column.key)))}</td>'
            for column in columns
        )
        for row in rows
    ]
    return f"<tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines)
