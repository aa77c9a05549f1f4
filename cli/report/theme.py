"""Colours of the pictures and of the page, for light and for dark surroundings."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COLOURS", "DARK", "LIGHT", "MARKERS", "Theme"]

# Told apart in both themes, and by people who see few colours.
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e0a800", "#56b4e9"),
    *("#8c564b", "#7f6bd6", "#b5bd2c", "#e377c2"),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")


@dataclass(frozen=True)
class Theme:
    """Colours of the surroundings."""

    ground: str
    ink: str
    faint: str


LIGHT = Theme("#ffffff", "#1b1f24", "#b9c0c7")
DARK = Theme("#14181d", "#e6e9ec", "#4a535c")
