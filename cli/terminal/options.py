"""Options that many commands share, so that they are spelt and explained once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weald.cli.service.logs import LogFormat

from .complete import complete_stream
from .output import Form
from .table import show_all_columns

__all__ = ["Config", "Limit", "Logs", "Output", "Set", "StreamName", "Wide", "example"]

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
Logs = Annotated[
    LogFormat,
    typer.Option("--log-format", help="How to write the log on standard error."),
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

Wide = Annotated[
    bool,
    typer.Option(
        "--wide",
        help="Show all columns, also those that the terminal has no room for.",
        callback=show_all_columns,
    ),
]


def example(*lines: str) -> str:
    """Return the end of a command's help: what to type, one line each."""
    return "\n\n".join(["Examples:", "\b\n" + "\n".join(f"  {line}" for line in lines)])
