"""The revision that the tables are, for whoever must not load SQLAlchemy to know it."""

from __future__ import annotations

__all__ = ["HEAD"]

HEAD = "0025"
