"""Options that many commands share, so that they are spelt and explained once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .complete import complete_stream
from .output import Form, scrub_notes

if TYPE_CHECKING:
    from .settings import Loaded

__all__ = ["Config", "Limit", "Output", "Set", "StreamName", "example", "open_settings"]

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Configuration file, or the folder that holds weald.toml. Otherwise $WEALD_CONFIG, "
        "./weald.toml, ./weald-demo/weald.toml.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="Override one setting; repeat for more. Wins over the environment and the file.",
    ),
]
Output = Annotated[
    Form,
    typer.Option("--output", "-o", help="How to write the answer on standard output."),
]
StreamName = Annotated[
    str | None,
    typer.Option(
        "--stream",
        "-s",
        help="Name of the stream, when it is not stream.name.",
        autocompletion=complete_stream,
    ),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="Show at most this many.")]


def example(*lines: str) -> str:
    """Return the end of a command's help: what to type, one line each."""
    return "\n\n".join(["Examples:", "\b\n" + "\n".join(f"  {line}" for line in lines)])


def open_settings(
    config: Path | None, set_: list[str] | None, flags: Mapping[str, Any] | None = None
) -> Loaded:
    """Load the settings that a command's flags lead to.

    Parameters
    ----------
    config : Path, optional
        What ``--config`` gave.
    set_ : list of str, optional
        What ``--set`` gave.
    flags : mapping of str to object, optional
        ``section.key`` to what a flag of the command's own gave, or None.
    """
    from .secrets import Scrubbing, secrets_of
    from .settings import load, parse_overrides

    given = {key: value for key, value in (flags or {}).items() if value is not None}
    loaded = load(config, {**parse_overrides(set_ or []), **given})
    scrubbing = Scrubbing(secrets_of(loaded.settings))
    scrub_notes(scrubbing.scrubbed)
    for handler in logging.getLogger().handlers:
        handler.addFilter(scrubbing)
    return loaded
