"""A network's blocks drawn: its adjacency matrix with the vertices in the order of their blocks."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .theme import LIGHT, Theme

__all__ = ["block_picture", "draw_blocks"]

_EDGE = "#0072b2"
# Dots shrink with the number of vertices, down to what still shows.
_DOT, _SMALLEST_DOT = 900.0, 0.15


def block_picture(
    edges: tuple[NDArray[np.int64], NDArray[np.int64]],
    label: NDArray[np.int64],
    title: str,
    *,
    directed: bool,
    theme: Theme = LIGHT,
) -> bytes:
    """Return a PNG: a dot for each edge, lines between blocks.

    Parameters
    ----------
    edges : int64[m], int64[m]
        Sources and targets; an edge without a direction is drawn on both sides of the diagonal.
    label : int64[n]
        Block of each vertex; blocks are drawn in the order of their numbers.
    title : str
    directed : bool
    theme : Theme
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.6, 6.9), dpi=130, layout="constrained")
    figure.set_facecolor(theme.ground)
    FigureCanvasAgg(figure)
    panel = figure.subplots()
    panel.set_facecolor(theme.ground)
    draw_blocks(panel, edges, label, directed=directed, theme=theme)
    for axis in (panel.xaxis, panel.yaxis):
        axis.label.set_color(theme.ink)
    panel.spines[:].set_color(theme.faint)
    figure.suptitle(title, color=theme.ink, fontsize=11)
    buffer = BytesIO()
    figure.savefig(buffer, format="png", facecolor=theme.ground)
    return buffer.getvalue()


def draw_blocks(
    panel: Any,
    edges: tuple[NDArray[np.int64], NDArray[np.int64]],
    label: NDArray[np.int64],
    *,
    directed: bool,
    theme: Theme,
) -> None:
    """Draw on matplotlib's axes what :func:`block_picture` makes a picture of."""
    n = len(label)
    place = np.empty(n, dtype=np.int64)
    place[np.argsort(label, kind="stable")] = np.arange(n)
    source, target = place[edges[0]], place[edges[1]]
    if not directed:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
    size = max(_DOT / max(n, 1) ** 1.3, _SMALLEST_DOT)
    panel.scatter(target, source, s=size, color=_EDGE, marker="s", linewidths=0)
    ends = np.cumsum(np.bincount(label))[:-1] - 0.5
    for end in ends.tolist():
        panel.axhline(end, color=theme.faint, linewidth=0.6)
        panel.axvline(end, color=theme.faint, linewidth=0.6)
    panel.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), aspect="equal", xticks=[], yticks=[])
    panel.set(xlabel="to", ylabel="from")
