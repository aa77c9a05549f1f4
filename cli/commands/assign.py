"""``weald assign``: the cluster of a record, now or at a moment in the past."""

# ruff: noqa: PLR0913 - one parameter for each flag of the command

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weald.answers.numbers import iso_time, share_text
from weald.cli.errors import NotFoundError, UsageError
from weald.cli.terminal.complete import complete_key
from weald.cli.terminal.moments import FORMS, parse_moment
from weald.cli.terminal.options import Config, Output, Set, StreamName, Wide, example
from weald.cli.terminal.output import Column, Form, write_rows

if TYPE_CHECKING:
    from weald.answers.stored_stream import StoredStream
    from weald.storage.queries.base import AsOf, ObservationRow

__all__ = ["add_to", "look_at_publication", "row_of"]

COLUMNS = (
    Column("key", "key"),
    Column("cluster", "cluster", "right"),
    Column("group", "group", "right", gives_way=2),
    Column("probability", "how sure", "right", share_text),
    Column("stability", "stability", "right", share_text, gives_way=2),
    Column("event_time", "event time", gives_way=1),
    Column("topic", "topic", gives_way=4),
    Column("partition", "partition", "right", gives_way=4),
    Column("offset", "offset", "right", gives_way=4),
    Column("left_seq", "left after", "right", gives_way=3),
)


def _ranked(top: Any) -> str:
    return ", ".join(f"{each['cluster'] or 'new'} {each['probability']:.2f}" for each in top or ())


TOP_COLUMNS = (
    Column("top", "weighed", show=_ranked),
    Column("log_predictive", "log predictive", "right", gives_way=3),
    Column("path", "tree", show=lambda path: " > ".join(map(str, path or ()))),
)


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command(
        epilog=example(
            "weald assign us2000crkq",
            "weald assign us2000crkq us1000cdjq --output csv",
            "weald assign us2000crkq --as-of 2026-11-21T09:00:00Z",
            "weald assign us2000crkq --as-of publication:2",
            "weald assign us2000crkq --top 3",
        )
    )(assign)


def assign(
    keys: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY...",
            help="The records' own keys; '#N' is the N-th observation where they have none.",
            autocompletion=complete_key,
        ),
    ],
    *,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            help=f"What was shown then: {FORMS}, or publication:NUMBER.",
        ),
    ] = None,
    history: Annotated[
        int, typer.Option("--history", min=1, help="Newest observations to show of each key.")
    ] = 1,
    top: Annotated[
        int,
        typer.Option(
            "--top",
            metavar="K",
            min=0,
            help="Weigh the K most probable clusters by the record's values, and show its tree.",
        ),
    ] = 0,
    stream: StreamName = None,
    config: Config = None,
    set_: Set = None,
    output: Output = Form.table,
    _wide: Wide = False,
) -> None:
    """Say which cluster records belong to, now or then.

    `group` is that of the cluster: those without a valley of density between them are one, by the
    newest publication. `probability` is the mean share of the record's drawn block that lies in its
    cluster, over the chain's recent draws, `stability` the mean share of its cluster's others that
    it is with. A record that has left the model, by a window or a half-life or because it is
    not in the sample, keeps the cluster that it had; `left after` is the number of the
    observation after which it left. With --top, the clusters that its values fit, the log
    predictive density of the values, and the sizes of the nodes above it in the sampler's tree.
    Records without keys are called by number, as `weald tree` does, and --as-of is not for them.

    Leaves with 3 (not found) if any key is unknown; those that are known are printed all the same.
    So it does if TIME is before the oldest publication that retention has kept.
    """
    from weald.cli.terminal.opened import reading

    moment = None if as_of is None else parse_moment(as_of)
    with reading(config, set_, stream, undivided=False) as state:
        has_keys = state.network or state.schema.key is not None
        if not has_keys and moment is not None:
            raise UsageError(f"--as-of: it goes by keys, and records of {state.stream} have none")
        found = (
            state.reader.assignments(state.stream, keys, as_of=moment, limit=history)
            if has_keys
            else _numbered(state, keys)
        )
        rows = [row_of(each, state) for each in found]
        if top:
            state.require_values("no values to weigh clusters by")
        if top and found:
            for row, more in zip(rows, _weighed(state, found, top), strict=True):
                row.update(more)
        if not found:
            look_at_publication(state, moment)
    write_rows(rows, COLUMNS + TOP_COLUMNS if top else COLUMNS, output)
    known = {row["key"] for row in rows}
    missing = [key for key in keys if key not in known]
    if missing:
        then = "" if as_of is None else f" as of {as_of}"
        if not has_keys:
            raise NotFoundError(
                f"records of this stream have no keys, and no observation is {', '.join(missing)}",
                next_step="weald tree ID    lists some by number, as #12: the 12th",
            )
        raise NotFoundError(
            f"no observation{then} with key {', '.join(missing)}",
            next_step="weald cluster ID --members 20    lists keys that exist",
        )


def _numbered(state: StoredStream, names: list[str]) -> list[ObservationRow]:
    """Return observations that are called by their numbers, as they are where there are no keys."""
    # SQL has no larger numbers than those of 18 digits for certain.
    numbers = [int(name[1:]) for name in names if re.fullmatch(r"#[0-9]{1,18}", name)]
    found = state.reader.observed(state.stream, numbers)
    return [replace(each, key=f"#{each.seq}") for each in found]


def look_at_publication(state: StoredStream, moment: AsOf | None) -> None:
    """Raise NotFoundError for a publication that is not there: no key is to blame then."""
    if moment is None or (number := moment.publication) is None:
        return
    kept = state.reader.publication_times(state.stream)
    if kept and number not in kept:
        raise NotFoundError(
            f"stream {state.stream} has no publication {number}, but {min(kept)} to {max(kept)}",
            next_step=f"weald assign KEY --as-of publication:{max(kept)}",
        )


def _weighed(state: StoredStream, found: list[Any], top: int) -> Iterator[dict[str, Any]]:
    """Yield for each observation where the published clusters would put it, and its tree."""
    import numpy as np
    from scipy.special import logsumexp

    from weald.answers.prediction import PublishedPredictive
    from weald.answers.subtree import SnapshotForest
    from weald.cli.errors import NotReadyError

    clusters = PublishedPredictive.of(state).clusters
    try:
        forest = SnapshotForest.of(state)
    except NotReadyError:
        forest = None
    log_joint = clusters.log_joint(np.stack([each.values for each in found]))
    for each, weights in zip(found, log_joint, strict=True):
        log_predictive = float(logsumexp(weights))
        best = np.argsort(-weights)[:top].tolist()
        shares = np.exp(weights - log_predictive)
        yield {
            "log_predictive": log_predictive,
            "top": [
                {
                    "cluster": int(clusters.clusters[at]) if at < len(clusters.clusters) else None,
                    "probability": float(shares[at]),
                }
                for at in best
            ],
            "path": forest.path(each.seq) if forest is not None else [],
        }


def row_of(observation: Any, state: StoredStream) -> dict[str, Any]:
    """Return an observation as a row."""
    text = {"text": observation.text} if state.schema.has_text else {}
    return {
        "key": observation.key,
        "cluster": observation.cluster,
        "group": state.groups.get(observation.cluster),
        "probability": observation.probability,
        "stability": observation.stability,
        "event_time": iso_time(observation.event_time),
        "topic": observation.topic,
        "partition": observation.partition,
        "offset": observation.offset,
        "seq": observation.seq,
        "left_seq": observation.left_seq,
        "values": state.values(observation.values[None])[0],
        **text,
    }
