"""One HTML page without a network: the picture, the clusters, what to try next."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from weald.cli.report.page import table
from weald.cli.terminal.output import Column

__all__ = ["Page", "render"]


@dataclass(frozen=True)
class Page:
    """What the page shows.

    Parameters
    ----------
    title, subtitle : str
    facts : mapping of str to str
        Headline numbers by name.
    light, dark : bytes
        The picture as PNG, for each colour scheme.
    alternative : str
        The picture in words.
    clusters, publications : (columns, rows)
        The two tables.
    commands : sequence of str
        What to try next.
    """

    title: str
    subtitle: str
    facts: Mapping[str, str]
    light: bytes
    dark: bytes
    alternative: str
    clusters: tuple[Sequence[Column], Sequence[Mapping[str, Any]]]
    publications: tuple[Sequence[Column], Sequence[Mapping[str, Any]]]
    commands: Sequence[str]


def render(page: Page) -> str:
    """Return the page as one HTML document."""
    template = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    facts = (f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in page.facts.items())
    return Template(template).substitute(
        title=escape(page.title),
        subtitle=escape(page.subtitle),
        facts="".join(facts),
        light=b64encode(page.light).decode(),
        dark=b64encode(page.dark).decode(),
        alternative=escape(page.alternative, quote=True),
        clusters=table(*page.clusters),
        publications=table(*page.publications),
        commands=escape("\n".join(page.commands)),
    )
