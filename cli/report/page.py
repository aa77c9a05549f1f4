"""One HTML page without a network: facts, pictures, tables."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from weald.cli.terminal.output import Column

from .pictures import Picture

__all__ = ["Section", "render", "table"]


@dataclass(frozen=True)
class Section:
    """A table under a heading, with what to know before reading it."""

    title: str
    remark: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]


def render(
    title: str,
    subtitle: str,
    facts: Mapping[str, str],
    pictures: Sequence[Picture],
    sections: Sequence[Section],
) -> str:
    """Return the page as one HTML document that asks no server for anything."""
    template = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    told = (f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts.items())
    return Template(template).substitute(
        title=escape(title),
        subtitle=escape(subtitle),
        facts="".join(told),
        pictures="\n".join(map(_figure, pictures)),
        tables="\n".join(_section(section) for section in sections if section.rows),
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
    return (
        f"<h2>{escape(section.title)}</h2>{remark}"
        f'<div class="wide"><table>{table(section.columns, section.rows)}</table></div>'
    )


def table(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of an HTML table, the heading first."""
    head = "".join(f'<th class="{column.align}">{escape(column.title)}</th>' for column in columns)
    lines = [
        "".join(
            f'<td class="{column.align}">{escape(column.show(row.get(column.key)))}</td>'
            for column in columns
        )
        for row in rows
    ]
    return f"<tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines)
