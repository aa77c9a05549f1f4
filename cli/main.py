"""The ``weald`` program: its commands, and how an error becomes an exit code.

Each command lives in a module of its own that imports nothing heavy at the top, so that ``weald
--help`` and shell completion answer at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from .commands import (
    assign,
    cluster,
    clusters,
    config,
    db,
    dlq,
    doctor,
    export,
    init,
    lineage,
    predict,
    run,
    snapshot,
    status,
    tree,
    warmup,
    watch,
    worker,
)
from .demo import command as demo
from .errors import CommandError, ExitCode
from .fit import command as fit
from .http import command as serve
from .look import command as look
from .report import command as report
from .service.allocation import give_arrays_back
from .terminal.error_messages import translated
from .terminal.output import note

__all__ = ["app", "main"]

app = typer.Typer(
    name="weald",
    # rich's help pages cost more time than the rest of the start together.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Try `weald demo` first; it needs nothing installed and ends with commands to try.",
)

demo.add_to(app)
look.add_to(app)
init.add_to(app)
run.add_to(app)
serve.add_to(app)
worker.add_to(app)
watch.add_to(app)
status.add_to(app)
clusters.add_to(app)
cluster.add_to(app)
tree.add_to(app)
assign.add_to(app)
predict.add_to(app)
lineage.add_to(app)
export.add_to(app)
fit.add_to(app)
report.add_to(app)
doctor.add_to(app)
warmup.add_to(app)
snapshot.add_to(app)
db.add_to(app)
dlq.add_to(app)
config.add_to(app)


def _show_version(asked: bool) -> None:  # noqa: FBT001  # the shape that typer calls
    if asked:
        from importlib.metadata import version

        sys.stdout.write(f"weald {version('weald')}\n")
        raise typer.Exit


@app.callback()
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
    give_arrays_back()
    try:
        with translated():
            app(args=None if arguments is None else list(arguments), prog_name="weald")
    except CommandError as error:
        for line in error.lines():
            note(line)
        sys.exit(error.code)
    except KeyboardInterrupt:
        note("weald: interrupted")
        sys.exit(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    main()
