"""The ``weald`` program: its commands, and how an error becomes an exit code.

Each command lives in a module of its own that imports nothing heavy at the top, so that ``weald
--help`` and shell completion answer at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .errors import CommandError, ExitCode
from .service.allocation import ask_for_usual_pages, give_arrays_back, seek_cycles_rarely
from .terminal.error_messages import translated
from .terminal.output import note

if TYPE_CHECKING:
    app: typer.Typer

__all__ = ["app", "main"]

# Where each command is, in the order in which they are listed.
_PLACES = {
    "demo": ".demo.command",
    "look": ".look.command",
    "init": ".commands.init",
    "run": ".commands.run",
    "serve": ".http.command",
    "worker": ".commands.worker",
    "watch": ".commands.watch",
    "status": ".commands.status",
    "clusters": ".commands.clusters",
    "cluster": ".commands.cluster",
    "tree": ".commands.tree",
    "assign": ".commands.assign",
    "predict": ".commands.predict",
    "lineage": ".commands.lineage",
    "export": ".commands.export",
    "fit": ".fit.command",
    "report": ".report.command",
    "doctor": ".commands.doctor",
    "warmup": ".commands.warmup",
    "snapshot": ".commands.snapshot",
    "db": ".commands.db",
    "dlq": ".commands.dlq",
    "config": ".commands.config",
}


def _program(names: Sequence[str]) -> typer.Typer:
    """The program with these commands alone; each takes time to load."""
    program = typer.Typer(
        name="weald",
        # rich's help pages cost more time than the rest of the start together.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        epilog="Try `weald demo` first; it needs nothing installed and ends with commands to try.",
    )
    program.callback()(root)
    for name in names:
        import_module(_PLACES[name], __package__).add_to(program)
    return program


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _program(list(_PLACES))


def _show_version(asked: bool) -> None:  # noqa: FBT001  # the shape that typer calls
    if asked:
        from importlib.metadata import version

        sys.stdout.write(f"weald {version('weald')}\n")
        raise typer.Exit


def root(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            is_eager=True,
            callback=_show_version,
        ),
    ] = False,
) -> None:
    """Cluster a stream of events as it arrives, and keep refining the answer.

    Weald reads observations from a Kafka topic, a file or standard input, gives each a cluster at
    once, improves the partition by Markov chain Monte Carlo in between, and keeps clusters, their
    history and the offsets together in SQL.

    Answers go to standard output, everything else to standard error. Exit codes: 0 ok, 1 failure,
    2 usage, 3 not found, 4 not ready, 5 conflict, 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the program's name; the process's own arguments when absent.

    Raises
    ------
    SystemExit
        Always, with a code of ``ExitCode``.
    """
    ask_for_usual_pages()
    give_arrays_back()
    seek_cycles_rarely()
    words = sys.argv[1:] if arguments is None else list(arguments)
    # Help, completion and a word that is no command need all of them.
    named = words[:1] if words and words[0] in _PLACES else list(_PLACES)
    try:
        with translated():
            _program(named)(args=words, prog_name="weald")
    except CommandError as error:
        for line in error.lines():
            note(line)
        sys.exit(error.code)
    except KeyboardInterrupt:
        note("weald: interrupted")
        sys.exit(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    main()
