"""A report's subject from a stream's database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weald.answers.description.contrast import ClusterContrast
from weald.answers.diagnostics.trust import share_stayed
from weald.answers.exploration import Exploration, Part, exploration_of
from weald.answers.group_births import births_of_groups
from weald.answers.prediction import PublishedPredictive
from weald.answers.projection import Plane
from weald.answers.records import lineage_record
from weald.answers.report_data import (
    Birth,
    Chains,
    KnownCluster,
    NetworkSubject,
    PublishedPartition,
    Sampled,
    Subject,
    headline,
)
from weald.answers.timeline import timeline_of_stream
from weald.cli.errors import NotReadyError

if TYPE_CHECKING:
    from weald.answers.stored_stream import StoredStream
    from weald.storage.queries.base import (
        ClusterRow,
        ObservationBlock,
        PublicationRow,
        RoundRow,
        StreamStatus,
    )

__all__ = ["exploration_of_stream", "subject_of_stream"]

BLOCK = 10_000
COLUMNS = 8
EVENTS_SHOWN = 30
# As many clusters as the page lists.
DESCRIBED = 30
NOT_YET = -1
# Observations of which there is something to be seen, and vertices that name a cluster.
LEAST_EXPLORED, NAMED = 2, 6


def subject_of_stream(state: StoredStream, limit: int) -> Sampled:
    """Read what a report tells of the newest ``limit`` observations, or of a whole network.

    Raises
    ------
    NotReadyError
        If the stream has no clusters yet.
    """
    return _network(state) if state.network else _observations(state, limit)


def exploration_of_stream(state: StoredStream, limit: int) -> Exploration | None:
    """Read what there is to explore of the newest ``limit`` observations, or of a whole network.

    None before there is enough to be seen.
    """
    if state.network:
        return _vertices(state)
    try:
        subject = _observations(state, limit, drawn=False)
    except NotReadyError:
        return None
    if len(subject.clusters) < LEAST_EXPLORED:
        return None
    return exploration_of(subject, np.random.default_rng(0))


def _vertices(state: StoredStream) -> Exploration | None:
    """Vertices by their clusters: they have no places and no columns."""
    try:
        subject = _network(state)
    except NotReadyError:
        return None
    n = len(subject.keys)
    parts = []
    for at in subject.largest:
        inside = np.flatnonzero(subject.clusters == at)
        pattern = ", ".join(subject.keys[each] for each in inside[:NAMED].tolist())
        pattern += f" and {len(inside) - NAMED} more" if len(inside) > NAMED else ""
        parts.append(Part(subject.ids[at], len(inside), len(inside) / n, None, pattern=pattern))
    nowhere = np.full((n, 2), np.nan)
    return Exploration(
        plane=Plane(nowhere, ("", ""), "The vertices of a network have no places."),
        keys=subject.keys,
        clusters=np.array(subject.ids, dtype=np.int64)[subject.clusters],
        density=np.full(n, np.nan),
        columns=(),
        texts=(),
        parts=parts,
        groups=(),
        n_all=n,
        timeline=timeline_of_stream(state),
    )


def _network(state: StoredStream) -> NetworkSubject:
    from weald.mcmc.relational.fit import blocks_of
    from weald.stream.recovery.snapshots import shown_network

    reader, stream = state.reader, state.stream
    shard = shown_network(reader, stream)
    present = np.sort(shard.atom_table.present)
    if not len(present):
        raise NotReadyError(f"stream {stream} has no vertices", next_step="weald status")
    family, links = shard.chain.family, shard.chain.edges()
    shown = shard.atom_table.cluster[present]
    numbered = np.unique(shown, return_inverse=True)[1].astype(np.int64)
    blocks = blocks_of(family.edges, shard.chain.network(), numbered)
    ids = shown[np.unique(blocks.label, return_index=True)[1]].tolist()
    names = {seq: name for name, seq in shard.names.items()}
    place = np.full(shard.atom_table.end, -1, dtype=np.int64)
    place[present] = np.arange(len(present))
    status = reader.status(stream)
    return NetworkSubject(
        title=f"{len(ids)} clusters of {len(present)} vertices",
        subtitle=f"stream {stream}, infinite relational model, prior {state.spec.prior}",
        facts={
            "records": f"{status.n_inserted:,}",
            "vertices": f"{len(present):,}",
            "edges": f"{len(links.source):,}",
            "clusters": f"{len(ids):,}",
            **_to_date(status),
        },
        keys=[names[seq] for seq in shard.atom_table.seq[present].tolist()],
        clusters=blocks.label,
        draws=_drawn(state, present),
        chains=_chains(reader.publications(stream)),
        moves=_moves(reader.rounds(stream)),
        edges=(place[links.source], place[links.target]),
        directed=family.directed,
        mean=blocks.mean,
        ids=ids,
    )


def _to_date(status: StreamStatus) -> dict[str, str]:
    return {
        "clusters that ended": f"{status.n_clusters_retired:,}",
        "unreadable": f"{status.n_dead:,}",
        "publications": f"{status.publication:,}",
    }


def _drawn(state: StoredStream, atoms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Read the newest draws that saw every one of these vertices."""
    draws, _ = _newest_draws(state)
    rows = [draw[atoms] for draw in draws if len(draw) > atoms[-1]]
    found = np.array(rows, dtype=np.int64).reshape(-1, len(atoms))
    seen: NDArray[np.int64] = found[(found >= 0).all(axis=1)]
    return seen


def _observations(state: StoredStream, limit: int, *, drawn: bool = True) -> Subject:
    """``drawn`` is whether pictures are made of it, which need more than the page's explorer."""
    reader, stream = state.reader, state.stream
    found = PublishedPredictive.of(state)
    status = reader.status(stream)
    first = max(0, reader.position(stream).next_seq - 1 - limit)
    blocks = _blocks(state, first)
    if not blocks:
        raise NotReadyError(f"stream {stream} has no observations", next_step="weald status")
    seq = np.concatenate([block.seq for block in blocks])
    clusters = np.concatenate([block.cluster for block in blocks])
    publications = reader.publications(stream)
    events = reader.lineage(stream)
    there = reader.clusters(stream)
    born, times = reader.births(stream), {each.number: each.time for each in publications}
    told_first = reader.first_publication(stream, seq)
    told_time = state.schema.time is not None
    reached = _reached(publications, told_first, blocks) if told_time else {}
    lives = timeline_of_stream(state)
    told = [lineage_record(event) for event in events if event.kind != "birth"]
    return Subject(
        title=headline(status.n_groups, status.n_clusters, status.n_clustered),
        subtitle=f"stream {stream}, family {state.spec.family}, prior {state.spec.prior}",
        facts={
            "observations": f"{status.n_inserted:,}",
            **({} if len(seq) == status.n_inserted else {"drawn here": f"{len(seq):,}"}),
            "groups": f"{status.n_groups:,}",
            "clusters": f"{status.n_clusters:,}",
            **_to_date(status),
        },
        names=state.features,
        schema=state.schema,
        texts=_texts(blocks) if state.schema.has_text else (),
        descriptions=_descriptions(state, there, found.clusters.clusters.tolist())
        if drawn or state.schema.has_text
        else {},
        values=np.concatenate([block.values for block in blocks]),
        keys=[
            key or f"#{at}"
            for block in blocks
            for key, at in zip(block.key, block.seq.tolist(), strict=True)
        ],
        clusters=clusters,
        predictive=found.clusters,
        prior=found.prior,
        draws=_draws(state, first, len(seq)) if drawn else np.empty((0, 0), dtype=np.int64),
        chains=_chains(publications),
        history=_history(told_first, seq, clusters, (publications, reader.changes(stream)))
        if drawn
        else (),
        events=told[-EVENTS_SHOWN:],
        groups={each.cluster: each.group for each in there if each.group is not None},
        moves=_moves(reader.rounds(stream)),
        timeline=None if lives is None else replace(lives, reached=reached),
        known={
            each.cluster: KnownCluster(
                each.n_observations,
                each.probability,
                Birth(
                    each.born_publication,
                    born.get(each.cluster),
                    reached.get(each.born_publication),
                ),
            )
            for each in there
        },
        group_births={
            group: Birth(each.told, times.get(each.told), reached.get(each.told), each.named)
            for group, each in births_of_groups(there, born, times).items()
        },
        warnings=(publications[-1].warnings or []) if publications else None,
        stayed=share_stayed(status.n_moved, status.n_clustered),
    )


def _reached(
    publications: Sequence[PublicationRow],
    told_first: NDArray[np.int64],
    blocks: Sequence[ObservationBlock],
) -> dict[int, float]:
    """Newest time that records tell which each publication saw, as far as these reach back.

    ``told_first`` is the publication that saw each observation of the blocks first.
    """
    time = np.concatenate([block.event_time for block in blocks])
    seen = told_first < np.iinfo(np.int64).max
    numbers, place = np.unique(told_first[seen], return_inverse=True)
    newest = np.full(len(numbers), np.nan)
    np.fmax.at(newest, place, time[seen])
    until = np.fmax.accumulate(newest)
    n_seen = np.searchsorted(numbers, [each.number for each in publications], side="right")
    reached = {
        each.number: float(until[n - 1])
        for each, n in zip(publications, n_seen.tolist(), strict=True)
        if n
    }
    # What was born before the first publication was first told with it.
    return reached | ({0: reached[1]} if 1 in reached else {})


def _descriptions(
    state: StoredStream, there: Sequence[ClusterRow], largest: Sequence[int]
) -> dict[int, str]:
    contrasts = ClusterContrast(state, there)
    return {cluster: contrasts.description(cluster) for cluster in largest[:DESCRIBED]}


def _texts(blocks: Sequence[ObservationBlock]) -> list[str]:
    return [text or "" for block in blocks for text in block.text or [None] * len(block.seq)]


def _blocks(state: StoredStream, after: int) -> list[ObservationBlock]:
    blocks = []
    while (block := state.reader.observations(state.stream, after, BLOCK)) is not None:
        blocks.append(block)
        after = int(block.seq[-1])
    return blocks


def _newest_draws(state: StoredStream) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Read what the newest snapshot holds: draws by atom, and the number of each atom."""
    from weald.stream.model.shard import ATOMS, DRAWS

    snapshot = state.reader.newest_snapshot(state.stream)
    payload = {} if snapshot is None else snapshot.payload
    lengths = payload.get(f"{DRAWS}lengths")
    if lengths is None or len(lengths) == 0:
        return [], np.empty(0, dtype=np.int64)
    draws = np.split(payload[f"{DRAWS}labels"], np.cumsum(lengths)[:-1])
    return draws, payload[f"{ATOMS}seq"]


def _draws(state: StoredStream, first: int, n: int) -> NDArray[np.int64]:
    """Read the chain's newest draws, of observations after ``first``."""
    draws, seq = _newest_draws(state)
    if not draws:
        return np.empty((0, 0), dtype=np.int64)
    # An observation that has left or is in a bundle has no draw of its own.
    found = np.full((len(draws), n), -1, dtype=np.int64)
    for row, draw in zip(found, draws, strict=True):
        place = seq[: len(draw)] - first - 1
        here = (place >= 0) & (place < n)
        row[place[here]] = draw[here]
    # Only those that saw at least half of what is drawn here, and what all of them saw.
    seen = found[(found >= 0).sum(axis=1) >= n / 2]
    whole = (seen >= 0).all(axis=0)
    drawn: NDArray[np.int64] = seen[:, : n if whole.all() else int(whole.argmin())]
    return drawn


def _history(
    told_first: NDArray[np.int64],
    seq: NDArray[np.int64],
    now: NDArray[np.int64],
    since: tuple[Sequence[PublicationRow], NDArray[np.int64]],
) -> list[PublishedPartition]:
    """Undo changes, newest first, until each publication is shown again."""
    publications, changes = since
    if not publications:
        return []
    spread = np.linspace(0, len(publications) - 1, min(COLUMNS, len(publications)))
    shown = []
    for at in np.unique(spread.astype(int)):
        publication = publications[at]
        later = changes[changes[:, 0] > publication.number]
        place = np.searchsorted(seq, later[:, 1])
        here = (place < len(seq)) & (seq[np.minimum(place, len(seq) - 1)] == later[:, 1])
        then = now.copy()
        # Written from the newest to the oldest, so that the oldest stays.
        then[place[here][::-1]] = later[here][::-1, 2]
        then[told_first > publication.number] = NOT_YET
        if (then != NOT_YET).any():
            shown.append(PublishedPartition(str(publication.number), then))
    return shown


def _chains(publications: Sequence[PublicationRow]) -> Chains:
    values: dict[str, list[float]] = defaultdict(list)
    for row in publications:
        # That of several shards is known to none.
        known = isfinite(row.log_joint)
        if known:
            values["log joint per observation"].append(row.log_joint / max(row.n_observations, 1))
        values["clusters"].append(float(row.n_clusters))
        if known:
            values["gained nats"].append(row.log_joint - row.log_joint_before)
    traced = {name: np.array([line], dtype=np.float64) for name, line in values.items()}
    empty = {"clusters": np.empty((1, 0))}
    return Chains("publication", traced or empty, burnt=0, stationary=False)


def _moves(rounds: Sequence[RoundRow]) -> list[dict[str, Any]]:
    totals: dict[str, dict[str, Any]] = {}
    for row in rounds:
        total = totals.setdefault(
            row.kernel, {"move": row.kernel, "proposed": 0, "accepted": 0, "seconds": 0.0}
        )
        total["proposed"] += row.proposed
        total["accepted"] += row.accepted
        total["seconds"] += row.seconds
    return list(totals.values())
