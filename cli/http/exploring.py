"""What the live page shows: the explorer of the newest publication, made anew for each."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING

from .answers import Explored

if TYPE_CHECKING:
    from weald.answers.stored_stream import StoredStream

__all__ = ["explored_of", "live_page"]


def explored_of(state: StoredStream, *, limit: int) -> Explored:
    """Return what there is to explore of the newest observations, or of a whole network."""
    from weald.cli.report.explorer import fragments_of
    from weald.cli.report.of_stream import exploration_of_stream

    # What one publication said of groups is not remembered for the next.
    fresh = replace(state)
    status = fresh.reader.status(fresh.stream)
    found = exploration_of_stream(fresh, limit)
    if found is None:
        return Explored(status.epoch, status.publication, "", "", "", None)
    return Explored(status.epoch, status.publication, *fragments_of(found))


def live_page() -> tuple[str, str]:
    """Return the page and the policy that allows its own scripts, and questions to its server."""
    from weald.cli.report.page import render_live

    folder = files(__package__)
    head, script = (folder.joinpath(name).read_text("utf-8") for name in ("live.html", "live.js"))
    return render_live(head, script)
