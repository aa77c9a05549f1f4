"""Sizes over time, with what moved between clusters from one publication to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.answers.report_data import PublishedPartition

from .theme import COLOURS, Theme

__all__ = ["Block", "FlowPicture", "Ribbon", "draw_flow", "flow_of"]

OTHERS = -2
NOT_YET = -1
NAMED = len(COLOURS)
HALF_WIDTH = 0.08
STEPS = 24
OPACITY = 0.38


@dataclass(frozen=True)
class Block:
    """One cluster in one publication: from ``low`` to ``high`` observations up its column."""

    column: int
    cluster: int
    low: float
    high: float


@dataclass(frozen=True)
class Ribbon:
    """Observations that went from a cluster to one of the next column."""

    column: int
    source: int
    target: int
    source_low: float
    target_low: float
    n: float


@dataclass(frozen=True)
class FlowPicture:
    """Everything that is drawn.

    Parameters
    ----------
    titles : list of str
        One for each column.
    named : list of int
        Clusters with a colour of their own; the others are one block, ``OTHERS``.
    """

    titles: list[str]
    named: list[int]
    blocks: list[Block]
    ribbons: list[Ribbon]


def flow_of(history: Sequence[PublishedPartition], named: Sequence[int]) -> FlowPicture:
    """Stack each publication's clusters, and count what went where.

    Parameters
    ----------
    history : sequence of Shown
        Publications, oldest first, of the same observations.
    named : sequence of int
        The clusters to tell apart, at the bottom first.
    """
    order = list(named[:NAMED])
    columns = [_merged(shown.clusters, order) for shown in history]
    places = {cluster: place for place, cluster in enumerate([*order, OTHERS])}
    blocks = [block for c, column in enumerate(columns) for block in _stacked(c, column, places)]
    lows = {(block.column, block.cluster): block.low for block in blocks}
    ribbons = []
    for c, (before, after) in enumerate(pairwise(columns)):
        there = before != NOT_YET
        pairs, counts = np.unique(
            np.column_stack([before[there], after[there]]), axis=0, return_counts=True
        )
        moves = sorted(
            ((int(a), int(b), int(n)) for (a, b), n in zip(pairs, counts, strict=True)),
            key=lambda move: (places[move[0]], places[move[1]]),
        )
        left = {cluster: lows[c, cluster] for cluster in {a for a, _, _ in moves}}
        right = {cluster: lows[c + 1, cluster] for cluster in {b for _, b, _ in moves}}
        for a, b, n in moves:
            ribbons.append(Ribbon(c, a, b, left[a], right[b], n))
            left[a] += n
            right[b] += n
    return FlowPicture([shown.title for shown in history], order, blocks, ribbons)


def _merged(clusters: NDArray[np.int64], named: Sequence[int]) -> NDArray[np.int64]:
    kept = np.isin(clusters, [*named, NOT_YET])
    merged: NDArray[np.int64] = np.where(kept, clusters, OTHERS)
    return merged


def _stacked(column: int, clusters: NDArray[np.int64], places: dict[int, int]) -> list[Block]:
    found, counts = np.unique(clusters[clusters != NOT_YET], return_counts=True)
    sizes = sorted(zip(found.tolist(), counts.tolist(), strict=True), key=lambda it: places[it[0]])
    blocks, low = [], 0.0
    for cluster, n in sizes:
        blocks.append(Block(column, cluster, low, low + n))
        low += n
    return blocks


def draw_flow(panel: Any, flow: FlowPicture, theme: Theme) -> None:
    """Draw on matplotlib axes."""
    colour = {cluster: COLOURS[i % len(COLOURS)] for i, cluster in enumerate(flow.named)}
    colour[OTHERS] = theme.faint
    for ribbon in flow.ribbons:
        _draw_ribbon(panel, ribbon, colour[ribbon.source])
    for block in flow.blocks:
        panel.fill_between(
            [block.column - HALF_WIDTH, block.column + HALF_WIDTH],
            block.low,
            block.high,
            color=colour[block.cluster],
            edgecolor=theme.ground,
            linewidth=0.6,
        )
    last = len(flow.titles) - 1
    height = max(block.high for block in flow.blocks)
    for block in flow.blocks:
        if block.column == last and block.high - block.low > 0.035 * height:
            name = "others" if block.cluster == OTHERS else str(block.cluster)
            middle = (block.low + block.high) / 2
            panel.text(last + 0.14, middle, name, va="center", color=theme.ink, fontsize=8)
    panel.set_xticks(range(len(flow.titles)), flow.titles)
    panel.set(xlabel="publication", ylabel="observations", xlim=(-0.2, last + 0.75))


def _draw_ribbon(panel: Any, ribbon: Ribbon, colour: str) -> None:
    t = np.linspace(0.0, 1.0, STEPS)
    bend = 0.5 - 0.5 * np.cos(np.pi * t)
    low = ribbon.source_low + (ribbon.target_low - ribbon.source_low) * bend
    x = ribbon.column + HALF_WIDTH + (1 - 2 * HALF_WIDTH) * t
    panel.fill_between(x, low, low + ribbon.n, color=colour, alpha=OPACITY, linewidth=0)
