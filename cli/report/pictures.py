"""The pictures of a report, each drawn for light and for dark surroundings.

They are small and their letters large, so that a page may scale them to a phone's width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weald.answers.cluster_relations import co_clustering, linkage_of
from weald.answers.projection import plane_of
from weald.answers.report_data import NetworkSubject, Sampled, Subject

from .blocks import draw_blocks
from .flow import draw_flow, flow_of
from .theme import COLOURS, DARK, LIGHT, MARKERS, Theme

__all__ = ["Picture", "pictures_of"]

WIDTH, HEIGHT, DPI = 5.4, 4.2, 160
LEAST_COLOURED = 4
MANY = 4000
IN_LEGEND = 8
FEW_BINS, MANY_BINS = 20, 60

Draw = Callable[[Any, Theme], None]


@dataclass(frozen=True)
class Picture:
    """One picture.

    Parameters
    ----------
    name : str
        Stem of its file.
    title, caption : str
        What it is, and how it is read.
    light, dark : bytes
        PNG.
    """

    name: str
    title: str
    caption: str
    light: bytes
    dark: bytes


def pictures_of(subject: Sampled) -> list[Picture]:
    """Draw every picture that the subject has something for."""
    if isinstance(subject, Subject):
        return _pictures_of_observations(subject)
    found = [_blocks(subject)] if isinstance(subject, NetworkSubject) else []
    together = _together(subject)
    return [*found, _traces(subject), *([] if together is None else [together])]


def _pictures_of_observations(subject: Subject) -> list[Picture]:
    found = [_clusters(subject)]
    if len(subject.history) > 1:
        found.append(_flow(subject))
    if len(subject.largest) > 1:
        found.append(_tree(subject))
    found.append(_traces(subject))
    together = _together(subject)
    if together is not None:
        found.append(together)
    found.append(_anomalies(subject))
    return found


def _picture(name: str, title: str, caption: str, draw: Draw, height: float = HEIGHT) -> Picture:
    light, dark = (_rendered(draw, theme, height) for theme in (LIGHT, DARK))
    return Picture(name, title, caption, light, dark)


def _rendered(draw: Draw, theme: Theme, height: float) -> bytes:
    # The object interface: no display, no state left behind in the process.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    figure.set_facecolor(theme.ground)
    FigureCanvasAgg(figure)
    draw(figure, theme)
    for panel in figure.axes:
        _dress(panel, theme)
    buffer = BytesIO()
    figure.savefig(buffer, format="png", facecolor=theme.ground)
    return buffer.getvalue()


def _dress(panel: Any, theme: Theme) -> None:
    panel.set_facecolor(theme.ground)
    panel.set_axisbelow(True)
    panel.tick_params(colors=theme.ink, labelsize=9)
    for side in panel.spines.values():
        side.set_color(theme.faint)
    for label in (panel.xaxis.label, panel.yaxis.label, panel.title):
        label.set_color(theme.ink)


def _clusters(subject: Subject) -> Picture:
    plane = plane_of(subject.values, subject.clusters, subject.names, subject.schema)
    sizes = dict(zip(*np.unique(subject.clusters, return_counts=True), strict=True))
    named = [each for each in subject.largest if sizes.get(each, 0) >= LEAST_COLOURED]

    def draw(figure: Any, theme: Theme) -> None:
        panel = figure.subplots()
        size = 14.0 if len(plane.points) < MANY else 4.0
        rest = plane.points[~np.isin(subject.clusters, named)]
        panel.scatter(*rest.T, s=0.6 * size, color=theme.faint, linewidths=0)
        for index, cluster in enumerate(named):
            panel.scatter(
                *plane.points[subject.clusters == cluster].T,
                s=size,
                # The colours come round again with another marker.
                marker=MARKERS[(index + index // len(COLOURS)) % len(MARKERS)],
                color=COLOURS[index % len(COLOURS)],
                alpha=0.75,
                linewidths=0,
                label=f"{cluster} ({sizes[cluster]})" if index < IN_LEGEND else None,
            )
        panel.set(xlabel=plane.axes[0], ylabel=plane.axes[1])
        panel.grid(visible=True, color=theme.faint, alpha=0.35, linewidth=0.5)
        legend = figure.legend(
            loc="outside lower center", ncols=4, frameon=False, fontsize=8, handletextpad=0.1
        )
        for text in legend.get_texts():
            text.set_color(theme.ink)

    caption = f"{plane.how} In the legend the largest clusters, with their sizes."
    return _picture("clusters", "Clusters", caption, draw, HEIGHT + 0.5)


def _blocks(subject: NetworkSubject) -> Picture:
    def draw(figure: Any, theme: Theme) -> None:
        panel = figure.subplots()
        draw_blocks(panel, subject.edges, subject.clusters, directed=subject.directed, theme=theme)

    caption = (
        "A dot for each edge, with the vertices in the order of their blocks, the largest first. "
        "Between two lines vertices link alike."
    )
    return _picture("blocks", "Blocks", caption, draw, WIDTH)


def _flow(subject: Subject) -> Picture:
    flow = flow_of(subject.history, subject.largest)

    def draw(figure: Any, theme: Theme) -> None:
        draw_flow(figure.subplots(), flow, theme)

    caption = (
        "Each column is the partition as a publication showed it, each band what went from one "
        "cluster to another: a band that leaves its own is a split, a merge or a move."
    )
    return _picture("flow", "Sizes and lineage", caption, draw)


def _tree(subject: Subject) -> Picture:
    linkage = linkage_of(subject.predictive, subject.prior)
    labels = [str(cluster) for cluster in subject.largest[: len(linkage) + 1]]

    def draw(figure: Any, _: Theme) -> None:
        from scipy.cluster.hierarchy import dendrogram

        panel = figure.subplots()
        dendrogram(
            linkage,
            labels=labels,
            ax=panel,
            orientation="right",
            color_threshold=0.0,
            above_threshold_color=COLOURS[0],
            leaf_font_size=8,
        )
        panel.set_xlabel("nats for keeping apart, log10(1 + d)")

    caption = (
        f"The {len(labels)} largest clusters as leaves, joined by least dissimilarity, as the "
        "guide joins its trees. The further right two meet, the surer it is that they differ."
    )
    height = max(HEIGHT, 0.16 * len(labels))
    return _picture("tree", "Top of the forest", caption, draw, height)


def _traces(subject: Sampled) -> Picture:
    chains = subject.chains

    def draw(figure: Any, theme: Theme) -> None:
        panels = figure.subplots(len(chains.values), 1, sharex=True, squeeze=False)[:, 0]
        for panel, (name, values) in zip(panels, chains.values.items(), strict=True):
            for chain, line in enumerate(values):
                panel.plot(
                    np.arange(1, len(line) + 1),
                    line,
                    color=COLOURS[chain % len(COLOURS)],
                    linewidth=1.0,
                    marker="." if len(line) < MANY_BINS else None,
                )
            if chains.burnt:
                panel.axvspan(0.5, chains.burnt + 0.5, color=theme.faint, alpha=0.25, linewidth=0)
            panel.set_ylabel(name)
            panel.grid(visible=True, color=theme.faint, alpha=0.35, linewidth=0.5)
        panels[-1].set_xlabel(chains.step)
        panels[-1].xaxis.get_major_locator().set_params(integer=True)

    caption = "What was followed, one line a chain." + (
        " The shaded beginning is left out of draws and diagnostics." if chains.burnt else ""
    )
    return _picture("traces", "Traces", caption, draw, 1.5 + 1.35 * len(chains.values))


def _together(subject: Sampled) -> Picture | None:
    found = co_clustering(subject, np.random.default_rng(0))
    if found is None:
        return None

    def draw(figure: Any, theme: Theme) -> None:
        from matplotlib.colors import LinearSegmentedColormap

        panel = figure.subplots()
        shades = LinearSegmentedColormap.from_list("shades", [theme.ground, COLOURS[0]])
        image = panel.imshow(found.share, cmap=shades, vmin=0.0, vmax=1.0, interpolation="nearest")
        bar = figure.colorbar(image, ax=panel, shrink=0.85)
        bar.set_label("share of draws together")
        bar.outline.set_edgecolor(theme.faint)
        starts = np.flatnonzero(np.diff(found.clusters, prepend=-1))
        tall = [at for at in starts if (found.clusters == found.clusters[at]).sum() >= IN_LEGEND]
        panel.set_yticks(tall, [str(found.clusters[at]) for at in tall])
        panel.set_xticks([])

    n, t = len(found.clusters), len(subject.draws)
    caption = (
        f"{n} observations by cluster, largest first; {t} draws. A solid square is a cluster that "
        "the chain never doubts; shade outside the squares is where it does."
    )
    return _picture("together", "Who is with whom", caption, draw)


def _anomalies(subject: Subject) -> Picture:
    density = subject.log_density

    def draw(figure: Any, theme: Theme) -> None:
        panel = figure.subplots()
        bins = FEW_BINS if len(density) < MANY_BINS * FEW_BINS else MANY_BINS
        panel.hist(density, bins=bins, color=COLOURS[0])
        panel.axvline(_lowest(density), color=COLOURS[1], linewidth=1.0)
        panel.set_yscale("log")
        panel.set(xlabel="log predictive density", ylabel="observations")
        panel.grid(visible=True, color=theme.faint, alpha=0.35, linewidth=0.5)

    caption = (
        "How well the clusters explain each observation. To the left of the line the lowest "
        "hundredth: unlike everything else."
    )
    return _picture("anomalies", "Anomalies", caption, draw, HEIGHT - 0.6)


def _lowest(density: NDArray[np.float64]) -> float:
    return float(np.quantile(density, 0.01))
