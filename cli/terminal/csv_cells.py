"""Cells of a CSV that a spreadsheet shows and does not obey.

A record's key or text may come from anybody. Spreadsheets take a cell that begins like a formula
for one, and a terminal obeys control characters.
(https://owasp.org/www-community/attacks/CSV_Injection)
"""

from __future__ import annotations

from .table import printable

__all__ = ["is_number", "safe_cell"]

_FORMULA = ("=", "+", "-", "@")


def safe_cell(value: object) -> object:
    """Return a cell with control characters escaped, and an apostrophe before a formula.

    Numbers are left as they are, also those that are text.
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) and not is_number(text) else text


def is_number(text: str) -> bool:
    """Whether a cell is a number as Python writes one."""
    try:
        float(text)
    except ValueError:
        return False
    return True
