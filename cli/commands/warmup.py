"""``weald warmup``: compile the kernels before the first record asks for them."""

from __future__ import annotations

from typing import Annotated

import typer

from weald.cli.terminal.options import example
from weald.cli.terminal.output import note

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald warmup",
            "weald warmup --family gaussian",
            "WEALD_KERNEL_CACHE=/var/cache/weald weald warmup",
        )
    )(warmup)


def warmup(
    family: Annotated[
        list[str] | None,
        typer.Option("--family", metavar="NAME", help="Only this family; repeat for more."),
    ] = None,
) -> None:
    """Compile the kernels, so that the next start is quick.

    They are compiled once for each version of the program and each kind of processor. The folder
    is $WEALD_KERNEL_CACHE, or weald/kernels in the user's cache folder.
    """
    from weald.cli.errors import UsageError
    from weald.cli.service.kernels import compile_kernels
    from weald.treecore.compiled.kernel_cache import cache_directory
    from weald.treecore.family import FAMILIES

    unknown = sorted(set(family or []) - set(FAMILIES))
    if unknown:
        raise UsageError(f"no family {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    for name in family or FAMILIES:
        note(f"{name}: {compile_kernels(name):.1f} s")
    note(f"kept in {cache_directory()}")
