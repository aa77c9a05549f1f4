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

from .explorer import empty_explorer, explorer, hash_of, styles

if TYPE_CHECKING:
    from weald.answers.diagnostics.trust import Trust
    from weald.answers.exploration import Exploration
    from weald.answers.report_data import Sampled

    from .pictures import Picture

__all__ = ["Section", "render", "render_live", "table", "trust_in"]


@dataclass(frozen=True)
class Section:
    """A table under a heading, with what to know before reading it."""

    title: str
    remark: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    folded: bool = False


def trust_in(subject: Sampled) -> Trust | None:
    """Whether to believe a stream's newest publication; None where nothing says so."""
    from weald.answers.diagnostics.trust import Trust, stayed_in_words
    from weald.answers.report_data import Subject

    if not isinstance(subject, Subject) or subject.warnings is None:
        return None
    return Trust(subject.warnings, stayed_in_words(subject.stayed))


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
    told = (
        f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in subject.facts.items()
    )
    return _template().substitute(
        title=escape(subject.title),
        subtitle=escape(subject.subtitle),
        trust="" if trust is None else _trust(trust),
        styles="" if found is None else styles(),
        explorer=body,
        scripts=_scripts(scripts),
        policy=_policy(scripts),
        facts="".join(told),
        pictures="\n".join(map(_figure, pictures)),
        tables="\n".join(_section(section) for section in sections if section.rows),
    )


def render_live(head: str, script: str) -> tuple[str, str]:
    """Return a page that asks its own server what there is to explore, and its content policy.

    ``head`` is HTML for its head, ``script`` asks, and calls ``explore`` with the answer.
    """
    body, scripts = empty_explorer()
    scripts = [*scripts, script]
    policy = f"{_policy(scripts)}; connect-src 'self'"
    page = _template().substitute(
        title="Weald",
        subtitle="",
        trust=head,
        styles=styles(),
        explorer=body,
        scripts=_scripts(scripts),
        policy=policy,
        facts="",
        pictures="",
        tables='<p class="quiet">The same as JSON under <code>/v1</code>; '
        '<a href="/openapi.json">openapi.json</a> describes it.</p>',
    )
    return page, policy


def _template() -> Template:
    return Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))


def _scripts(scripts: Sequence[str]) -> str:
    return "".join(f"<script>{script}</script>\n" for script in scripts)


def _policy(scripts: Sequence[str]) -> str:
    """A policy that forbids the network, and every script but these."""
    allowed = "".join(f" {hash_of(script)}" for script in scripts)
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
        f"{f'; script-src{allowed}' if scripts else ''}; base-uri 'none'; form-action 'none'"
    )


def _trust(trust: Trust) -> str:
    kind, sign, why = "", "✓", "No check gave a reason to doubt it."
    if trust.for_now:
        kind, sign, why = " early", "◐", f"{why[:-1]}, but more time may change a part of it."
    if trust.reasons:
        kind, sign, why = " doubt", "⚠", ""
    head = trust.verdict.capitalize()
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in trust.reasons)
    settled = trust.settled[:1].upper() + trust.settled[1:]
    return (
        f'<div class="trust{kind}"><p><b>{sign} {head}.</b> {why}</p>'
        f"{f'<ul>{reasons}</ul>' if reasons else ''}"
        f'<p class="quiet">Settled yet? {escape(settled)}.</p></div>'
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
