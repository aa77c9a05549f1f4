"""``weald status``: a stream at a glance, with its account."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from weald.answers.diagnostics.trust import Trust, share_stayed, stayed_in_words
from weald.answers.numbers import iso_time
from weald.cli.terminal.opened import open_settings, stream_and_shard
from weald.cli.terminal.options import Config, Output, Set, StreamName, Wide, example
from weald.cli.terminal.output import Column, Form, write_record

if TYPE_CHECKING:
    from weald.cli.config.settings import Settings

__all__ = ["add_to"]

ROUNDS_SHOWN = 3
LEDGER_COLUMNS = (
    Column("topic", "topic"),
    Column("partition", "partition", "right"),
    Column("next_offset", "next offset", "right", gives_way=3),
    Column("n_received", "received", "right"),
    Column("n_inserted", "inserted", "right", gives_way=1),
    Column("n_duplicate", "duplicate", "right", gives_way=2),
    Column("n_dead", "dead letters", "right"),
)
SHARD_COLUMNS = (
    Column("shard", "shard", "right"),
    Column("n_received", "received", "right"),
    Column("n_inserted", "inserted", "right", gives_way=1),
    Column("n_dead", "dead letters", "right", gives_way=2),
    Column("lag_records", "lag", "right", lambda value: "" if value is None else str(value)),
    Column("n_clusters", "clusters", "right"),
    Column("committed_at", "last commit"),
    Column("owner", "owner", gives_way=3),
)
DECISION_COLUMNS = (
    Column("decided_at", "decided"),
    Column("topic", "topic"),
    Column("partition", "partition", "right"),
    Column("kept_as", "earlier log"),
    Column("next_offset", "read from", "right"),
    Column("difference", "because"),
)
MODEL_COLUMNS = (
    Column("decided_at", "decided"),
    Column("seq", "after observation", "right"),
    Column("family", "family"),
    Column("seen_as", "seen as"),
    Column("earlier_seen_as", "before", gives_way=1),
    Column("reason", "because"),
)
ROUND_COLUMNS = (
    Column("kernel", "kernel"),
    Column("seq", "after observation", "right"),
    Column("proposed", "proposed", "right"),
    Column("accepted", "accepted", "right"),
    Column(
        "log_joint_before", "log joint before", "right", lambda value: f"{value:.1f}", gives_way=2
    ),
    Column("log_joint_after", "after", "right", lambda value: f"{value:.1f}", gives_way=2),
    Column("seconds", "seconds", "right", gives_way=1),
)

ROLE_COLUMNS = (
    Column("role", "role"),
    Column("leases", "leases", "right"),
    Column("proposed", "proposed", "right"),
    Column("accepted", "accepted", "right"),
    Column(
        "processor_seconds",
        "processor seconds",
        "right",
        lambda value: f"{value:.2f}",
        gives_way=1,
    ),
    Column(
        "squared_jump_per_second",
        "squared jump per second",
        "right",
        lambda value: "" if value is None else f"{value:.3g}",
    ),
)


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(epilog=example("weald status", "weald status --output json"))(status)


def status(
    *,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
    _wide: Wide = False,
) -> None:
    """Show what became of every record of a stream, and whether to believe its clusters.

    `verdict` says whether to believe the newest publication, for the reasons that are listed
    (`warnings` of JSON). `settled` says whether it left observations in their clusters (in JSON
    `n_moved` counts the others, of `n_clustered`); what has not settled is to be believed for now.
    The account of each partition adds up: received = inserted + duplicate + dead letters. A new
    stream has none until its first model.warmup_records observations are there; until then this
    says how many a running Weald has. The lag (records of the topic that SQL does not hold yet) and
    the workers of each role are known while the writer runs on this machine. Leases are those of
    the last rounds by what became of them, where workers refine, and for each role what those that
    came back did: moves, processor time, and how far they moved what is slow in that time (squared
    changes of the sum of the clusters' squared shares). `weald watch` names the workers.
    Where columns that said nothing at first have begun to, `models` says since when they are seen.
    Of a stream in shards `shards` has a row for each: who writes it, its account, the clusters of
    which it has some, and its lag, if a process on this machine writes it.
    Where a topic was another one than was read, the account of the earlier one stays under the name
    that the decision about it tells (`weald run --help`).
    """
    name, shard = stream_and_shard(stream)
    settings = open_settings(config, set_, {"stream.name": name}).settings
    told = (_at_once(settings) if shard is None else None) or _in_full(config, set_, stream)
    told |= _of_the_writer(settings, shard, told["shards"])
    answer = {key: _shown(key, value) for key, value in told.items()}
    answer["shards"] = [
        {**row, "committed_at": iso_time(row["committed_at"])} for row in told["shards"]
    ]
    answer["partitions"] = [
        {**row, "updated_at": iso_time(row["updated_at"])} for row in told["partitions"]
    ]
    for journal in ("log_decisions", "models"):
        answer[journal] = [
            {**row, "decided_at": iso_time(row["decided_at"])} for row in told[journal]
        ]
    answer |= _trust(answer)
    tables = {
        "shards": SHARD_COLUMNS,
        "partitions": LEDGER_COLUMNS,
        "log_decisions": DECISION_COLUMNS,
        "models": MODEL_COLUMNS,
        "last_refinement": ROUND_COLUMNS,
        "roles": ROLE_COLUMNS,
    }
    write_record(_brief(answer) if output is Form.table else answer, output, tables=tables)


def _of_the_writer(
    settings: Settings, shard: int | None, shards: list[dict[str, Any]]
) -> dict[str, Any]:
    """What SQL does not know; nothing where no writer runs. Shards are told their own lag."""
    from weald.cli.service.live_metrics import running

    found = running(settings, shard)
    for row in shards:
        row["lag_records"] = None if found is None else found.lag_of.get(row["shard"])
    if found is None:
        return {}
    lag = {"lag_records": found.lag_records, "lag_seconds": found.lag_seconds}
    return lag | ({"workers": found.n_workers} if settings.refinement.mode == "workers" else {})


def _at_once(settings: Settings) -> dict[str, Any] | None:
    """Answer without loading what most commands need; None where that does not lead."""
    from weald.cli.terminal.opened import sqlite_file
    from weald.storage.queries.glance import glance_at

    file = sqlite_file(settings.storage.url)
    return None if file is None else glance_at(file, settings.stream.name, ROUNDS_SHOWN)


def _in_full(config: Path | None, set_: list[str] | None, stream: str | None) -> dict[str, Any]:
    from dataclasses import asdict

    from weald.cli.service.warm_up import explained
    from weald.cli.terminal.opened import reading

    with explained(config, set_, stream), reading(config, set_, stream, undivided=False) as state:
        return {
            **asdict(state.reader.status(state.stream)),
            "dead_letter_reasons": state.reader.dead_letter_counts(state.stream),
            "leases": state.reader.lease_counts(state.stream),
            "roles": [asdict(row) for row in state.reader.roles(state.stream)],
            "shards": [asdict(row) for row in state.reader.shards(state.stream)],
            "partitions": [asdict(row) for row in state.reader.ledger(state.stream)],
            "log_decisions": [
                {name: value for name, value in asdict(row).items() if name != "mark"}
                for row in state.reader.log_decisions(state.stream)
            ],
            "models": [asdict(row) for row in state.reader.models(state.stream)],
            "last_refinement": [
                asdict(row) for row in state.reader.rounds(state.stream, limit=ROUNDS_SHOWN)
            ],
        }


def _shown(key: str, value: Any) -> Any:
    return iso_time(value) if key.endswith("_at") else value


def _brief(answer: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only programs ask for; first is whether to believe what is shown."""
    hidden = {"epoch", "generation", "log_joint_before", "log_joint", "seed", "warnings"}
    hidden |= {"n_clustered", "n_moved"}
    if answer["n_atoms"] == answer["n_observations"]:
        # Nothing is compacted.
        hidden |= {"n_atoms", "estimated_disruption"}
    if answer["shards"] and not answer["publication"]:
        # Clusters of all shards are first made by a publication; each shard has its own.
        hidden |= {"n_clusters", "n_clusters_retired", "n_groups"}
    told = {k: v for k, v in answer.items() if k not in hidden and v not in (None, {}, [], "")}
    reasons = answer["warnings"] or []
    first = {key: told[key] for key in ("name", "verdict", "settled") if key in told}
    return first | {f"reason {at}": each for at, each in enumerate(reasons, start=1)} | told


def _trust(answer: dict[str, Any]) -> dict[str, str | None]:
    """Say whether to believe the newest publication, and whether it has settled, if there is one.

    The reasons to doubt it are the `warnings`.
    """
    reasons = answer["warnings"]
    if reasons is None:
        return {"verdict": None, "settled": None}
    trust = Trust(reasons, stayed_in_words(share_stayed(answer["n_moved"], answer["n_clustered"])))
    return {"verdict": trust.verdict, "settled": trust.settled}
