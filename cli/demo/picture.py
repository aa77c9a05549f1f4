"""The clusters of a stream in its own coordinates, drawn for light and for dark surroundings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weald.cli.report.theme import COLOURS, DARK, LIGHT, MARKERS, Theme

if TYPE_CHECKING:
    from .streams import Window

__all__ = ["DARK", "LIGHT", "Scatter", "Theme", "draw"]

IN_LEGEND = 12
# From so many points on they are drawn smaller.
MANY = 5000


@dataclass(frozen=True)
class Scatter:
    """What is drawn.

    Parameters
    ----------
    points : float64[n, 2]
        The observations in the plane of the picture.
    cluster : int64[n]
        Their clusters.
    named : sequence of (int, str)
        The clusters that get a colour, largest first; the first few get a line in the legend.
    axes : (str, str)
        Titles of the axes, with units.
    title : str
    """

    points: NDArray[np.float64]
    cluster: NDArray[np.int64]
    named: Sequence[tuple[int, str]]
    axes: tuple[str, str]
    title: str


def draw(scatter: Scatter, windows: Sequence[Window], theme: Theme) -> bytes:
    """Return a PNG with one panel for each window.

    Parameters
    ----------
    scatter : Scatter
    windows : sequence of Window
        Parts of the plane, side by side.
    theme : Theme
    """
    # The object interface: no display, no state left behind in the process.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.2 * len(windows), 6.6), dpi=110, layout="constrained")
    figure.set_facecolor(theme.ground)
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(windows), squeeze=False)[0]
    for panel, window in zip(panels, windows, strict=True):
        _draw_panel(panel, scatter, window, theme)
    handles, labels = panels[0].get_legend_handles_labels()
    legend = figure.legend(
        handles, labels, loc="outside lower center", ncols=2 * len(windows), frameon=False
    )
    for text in legend.get_texts():
        text.set(color=theme.ink, fontsize=8.5)
    figure.suptitle(scatter.title, color=theme.ink, fontsize=12)
    buffer = BytesIO()
    figure.savefig(buffer, format="png", facecolor=theme.ground)
    return buffer.getvalue()


def _draw_panel(panel: Any, scatter: Scatter, window: Window, theme: Theme) -> None:
    named = [cluster for cluster, _ in scatter.named]
    size = 15.0 if len(scatter.points) < MANY else 4.0
    rest = scatter.points[~np.isin(scatter.cluster, named)]
    panel.scatter(*rest.T, s=0.6 * size, color=theme.faint, linewidths=0)
    for index, (cluster, label) in enumerate(scatter.named):
        points = scatter.points[scatter.cluster == cluster]
        panel.scatter(
            *points.T,
            s=size,
            # The colours come round again with another marker.
            marker=MARKERS[(index + index // len(COLOURS)) % len(MARKERS)],
            color=COLOURS[index % len(COLOURS)],
            alpha=0.75,
            linewidths=0,
            label=label if index < IN_LEGEND else None,
            # A tight cluster inside a wide one stays visible.
            zorder=2 + 1 / (1 + float(points.std(axis=0).sum())),
        )
    panel.set(xlabel=scatter.axes[0], ylabel=scatter.axes[1], xlim=window.x, ylim=window.y)
    panel.set_title(window.title, color=theme.ink, fontsize=10)
    panel.set_facecolor(theme.ground)
    panel.grid(visible=True, color=theme.faint, alpha=0.35, linewidth=0.5)
    panel.set_axisbelow(True)
    panel.tick_params(colors=theme.ink, labelsize=8)
    for side in panel.spines.values():
        side.set_color(theme.faint)
    panel.xaxis.label.set_color(theme.ink)
    panel.yaxis.label.set_color(theme.ink)
