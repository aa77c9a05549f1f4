"""``weald watch``: a stream as it goes, until interrupted."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weald.answers.numbers import number
from weald.cli.service.live_metrics import running
from weald.cli.service.refinement_plane import plane_of
from weald.cli.terminal.options import Config, Output, Set, StreamName, example
from weald.cli.terminal.output import Form

if TYPE_CHECKING:
    from rich.console import RenderableType

    from weald.answers.stored_stream import StoredStream
    from weald.cli.config.settings import Settings

__all__ = ["add_to"]

# Rows of SQL about refinement that one look sums up.
_ROUNDS = 24


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald watch",
            "weald watch --every 0.5",
            "weald watch --looks 1 --output json",
        )
    )(watch)


def watch(
    *,
    stream: StreamName = None,
    every: Annotated[
        float, typer.Option("--every", min=0.1, metavar="SECONDS", help="Between two looks.")
    ] = 1.0,
    looks: Annotated[
        int | None, typer.Option("--looks", min=1, help="End after so many looks.")
    ] = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
) -> None:
    """Show a stream live: records, clusters, log joint, kernels, workers and leases.

    It reads what SQL and Redis hold and never touches the service. On a terminal the view is
    redrawn until Ctrl-C; otherwise, and with --output json or jsonl, each look is a line of JSON.
    """
    from weald.cli.terminal.opened import reading_with_settings

    asked = reading_with_settings(config, set_, stream, undivided=False)
    with asked as (state, settings):
        seen = _looks(state, settings, every, looks)
        if output is Form.table and sys.stdout.isatty():
            _live(seen)
            return
        for look in seen:
            sys.stdout.write(json.dumps(look) + "\n")
            sys.stdout.flush()


def _looks(
    state: StoredStream, settings: Settings, every: float, limit: int | None
) -> Iterator[dict[str, Any]]:
    before: dict[str, Any] | None = None
    n = 0
    while limit is None or n < limit:
        if n:
            time.sleep(every)
        look = _look(state, settings)
        if before is not None:
            passed = look["time"] - before["time"]
            look["records_per_second"] = (look["received"] - before["received"]) / passed
        yield look
        before, n = look, n + 1


def _look(state: StoredStream, settings: Settings) -> dict[str, Any]:
    """One look: plain values under stable names."""
    now = time.time()
    glance = state.reader.status(state.stream)
    kernels: dict[str, dict[str, float]] = {}
    log_joint = glance.log_joint
    rounds = state.reader.rounds(state.stream, limit=_ROUNDS)
    for row in rounds:
        sums = kernels.setdefault(
            row.kernel, {"proposed": 0, "accepted": 0, "seconds": 0.0, "gain": 0.0}
        )
        sums["proposed"] += row.proposed
        sums["accepted"] += row.accepted
        sums["seconds"] += row.seconds
        sums["gain"] += row.log_joint_after - row.log_joint_before
        log_joint = row.log_joint_after
    writer = running(settings)
    return {
        "time": now,
        "stream": state.stream,
        "received": glance.n_received,
        "inserted": glance.n_inserted,
        "duplicate": glance.n_duplicate,
        "dead": glance.n_dead,
        "records_per_second": None,
        "lag_records": None if writer is None else writer.lag_records,
        "lag_seconds": None if writer is None else writer.lag_seconds,
        "last_commit_seconds_ago": None
        if glance.committed_at is None
        else now - glance.committed_at,
        "clusters": glance.n_clusters,
        "publication": glance.publication,
        "log_joint": log_joint,
        "kernels": {
            name: {
                "acceptance": sums["accepted"] / sums["proposed"] if sums["proposed"] else None,
                "nats_per_second": sums["gain"] / sums["seconds"] if sums["seconds"] else None,
            }
            for name, sums in kernels.items()
        },
        **plane_of(state, settings),
    }


def _live(seen: Iterator[dict[str, Any]]) -> None:
    from rich.live import Live

    with Live(auto_refresh=False) as view:
        for look in seen:
            view.update(_drawn(look), refresh=True)


def _drawn(look: dict[str, Any]) -> RenderableType:
    from rich import box
    from rich.console import Group
    from rich.table import Table

    facts = Table(box=None, show_header=False, title=f"stream {look['stream']}")
    for words, key in (
        ("records received", "received"),
        ("records per second", "records_per_second"),
        ("dead letters", "dead"),
        ("records behind", "lag_records"),
        ("seconds behind", "lag_seconds"),
        ("last commit, seconds ago", "last_commit_seconds_ago"),
        ("clusters", "clusters"),
        ("publication", "publication"),
        ("log joint", "log_joint"),
    ):
        facts.add_row(words, number(look[key]))
    parts: list[RenderableType] = [facts]
    if look["kernels"]:
        kernels = Table("kernel", "acceptance", "log joint per second", box=box.SIMPLE)
        for name, row in look["kernels"].items():
            kernels.add_row(name, number(row["acceptance"]), number(row["nats_per_second"]))
        parts.append(kernels)
    if "leases" in look:
        workers = Table("worker", "role", "leases held", "seconds since heard of", box=box.SIMPLE)
        for row in look["workers"] or []:
            held, idle = number(row["n_held"]), number(row["idle_seconds"])
            workers.add_row(row["name"], row["role"], held, idle)
        parts += [workers, f"leases: {number(look['leases']) or 'none yet'}"]
        if look["roles"]:
            parts.append(_roles(look["roles"]))
        if look["workers"] is None:
            parts.append("Redis does not answer: workers are not known")
    return Group(*parts)


def _roles(rows: list[dict[str, Any]]) -> RenderableType:
    from rich import box
    from rich.table import Table

    shown = ("leases", "proposed", "accepted", "processor_seconds", "squared_jump_per_second")
    roles = Table("role", *(name.replace("_", " ") for name in shown), box=box.SIMPLE)
    for row in rows:
        roles.add_row(row["role"], *(number(row[name]) for name in shown))
    return roles
