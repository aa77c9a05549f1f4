"""Numbers, shares and moments as people read them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

__all__ = ["iso_time", "moment_text", "number", "share_text", "spread_text"]


# From here on a number has more digits before its point than a float holds for certain.
_LONGEST = 1e15


def number(value: object) -> str:
    """Return a value as a person reads it: four significant digits, nothing for a missing one.

    Floats from 1000 on have all digits before the point, unless these are more than are known.
    """
    if isinstance(value, float) and math.isnan(value):
        return ""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.0f}" if 1000 <= abs(value) < _LONGEST else f"{value:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(number(item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={number(item)}" for key, item in value.items())
    return "" if value is None else str(value)


def iso_time(seconds: float | None) -> str | None:
    """Return epoch seconds as ISO 8601 in UTC, to the second."""
    if seconds is None or not math.isfinite(seconds):
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment_text(seconds: float) -> str:
    """Return epoch seconds as a person reads them: day, hour and minute in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def share_text(share: float | None) -> str:
    """Return a share between 0 and 1 with two decimals; nothing for an unknown one.

    Only what is certain reads 1.00, and only what is impossible 0.00.
    """
    if share is None:
        return ""
    if 0.995 <= share < 1.0:
        return ">0.99"
    return "<0.01" if 0.0 < share < 0.005 else f"{share:.2f}"


def spread_text(feature: dict[str, Any] | None) -> str:
    """Return ``centre ± spread`` with the digits that the spread supports."""
    if feature is None:
        return ""
    centre, spread = feature["centre"], feature["spread"]
    # What does not vary supports all digits that a number is told with.
    if not isinstance(centre, float) or not spread:
        return number(centre)
    if max(abs(centre), spread) >= _LONGEST:
        return f"{number(centre)} ± {number(spread)}"
    decimals = _decimals(spread)
    return f"{centre:.{decimals}f} ± {spread:.{decimals}f}"


def _decimals(spread: float) -> int:
    """Two significant digits of the spread, and never more than four decimals."""
    for decimals, bound in enumerate((10.0, 1.0, 0.1, 0.01)):
        if spread >= bound:
            return decimals
    return 4
