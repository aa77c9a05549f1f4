"""``weald worker``: refine a stream's clusters beside the process that writes them."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from weald.cli.errors import ExitCode
from weald.cli.service.logs import LogFormat, log_to_standard_error
from weald.cli.service.signals import stopping_on_signals
from weald.cli.terminal.opened import open_settings
from weald.cli.terminal.options import Config, Logs, Set, example
from weald.cli.terminal.output import note
from weald.mcmc.schedule.registry import ALL, ROLES

if TYPE_CHECKING:
    from weald.cli.config.settings import Settings
    from weald.stream.worker.worker import Done, Worker

__all__ = ["add_to", "working_threads"]


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald worker",
            "weald worker --threads 4",
            "weald worker --role subc --threads 2",
            "weald worker --set redis.url=redis://redis:6379/0 --set stream.name=orders",
        )
    )(worker)


def worker(
    *,
    threads: Annotated[
        int, typer.Option("--threads", min=1, help="Leases to work on at the same time.")
    ] = 1,
    role: Annotated[
        str,
        typer.Option(
            "--role",
            metavar="ROLE",
            help=f"Which leases to take: {', '.join(ROLES)}.",
            show_default=True,
        ),
    ] = ALL,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Do not tell of each lease that is done.")
    ] = False,
    log_format: Logs = LogFormat.text,
    config: Config = None,
    set_: Set = None,
) -> None:
    """Take leases of clusters, improve them, and hand them back, until stopped.

    For streams whose writer has refinement.mode = "workers". Any number of workers on any host may
    join and leave at any time; each needs the same weald.toml and Redis, but neither SQL nor the
    topic. A worker that is killed loses its lease to another, and nothing else.

    A role says which kernels the leases have that the writer makes for a worker: tgmcmc moves
    subtrees, sdds splits smartly and merges dumbly and the other way round, subc redraws all labels
    at once and splits by launched sub-clusters, each beside Gibbs sampling; all has the stream's
    own kernels (refinement.kernels). Start several of each as you like: whichever there are, the
    same posterior is sampled, and `weald status` tells what each role brings.

    SIGTERM and Ctrl-C finish the leases in hand; a second Ctrl-C stops at once.
    """
    log_to_standard_error(log_format, logging.WARNING if quiet else logging.INFO)
    settings = open_settings(config, set_).settings
    _check(settings, role)
    if settings.workers.nice:
        os.nice(settings.workers.nice)
    with (
        working_threads(settings, threads, role, quiet=quiet) as working,
        stopping_on_signals(working.stop, "the leases in hand") as received,
    ):
        at_work = f"{threads} at work" if role == ALL else f"{threads} at work as {role}"
        note(f"{at_work} for stream {settings.stream.name}; leases through redis")
        for thread in working.threads:
            thread.join()
    if signal.SIGINT in received:
        sys.exit(ExitCode.INTERRUPTED)


class _Working:
    """Workers of this process, each on a thread."""

    def __init__(self, workers: list[Worker]) -> None:
        self.workers = workers
        self.threads = [
            threading.Thread(target=each.run, name=f"weald-worker-{number}", daemon=True)
            for number, each in enumerate(workers)
        ]

    def stop(self) -> None:
        """Let each finish what it has in hand."""
        for each in self.workers:
            each.stop()


@contextmanager
def working_threads(
    settings: Settings, n: int, role: str = ALL, *, quiet: bool = True
) -> Iterator[_Working]:
    """Run ``n`` workers of a role on threads of this process; at the end let them finish."""
    from weald.storage.redis.lease_queue import LeaseQueue
    from weald.stream.worker.worker import Worker, worker_name

    queues = [LeaseQueue(settings.redis, settings.stream.name, (role,)) for _ in range(n)]
    tell = (lambda _: None) if quiet else _tell
    working = _Working([Worker(queue, settings.workers, worker_name(), tell) for queue in queues])
    for thread in working.threads:
        thread.start()
    try:
        yield working
    finally:
        working.stop()
        for thread in working.threads:
            thread.join()
        for queue in queues:
            queue.close()


def _tell(done: Done) -> None:
    note(
        f"round {done.round_number} lease {done.number}: {done.n_atoms} atoms, "
        f"{done.n_moves} moves, {done.log_joint_gain:+.1f} nats, {done.seconds:.2f} s"
    )


def _check(settings: Settings, role: str) -> None:
    from weald.cli.errors import NotReadyError
    from weald.mcmc.schedule.stream_kernels import require_role
    from weald.stream.model.model import prior_of

    require_role(role, settings.workers.kernels, prior_of(settings.model))
    if not settings.redis.enabled:
        raise NotReadyError(
            "workers get their leases through Redis, which is switched off",
            next_step="--set redis.enabled=true",
        )
