"""The verdict on a record that cannot become an observation."""

from .record import Reason

__all__ = ["LONGEST_DETAIL", "Refused", "cut"]

LONGEST_DETAIL = 240


class Refused(Exception):  # noqa: N818  a verdict on one record, not an error of the program
    """One record cannot become an observation.

    Parameters
    ----------
    reason : Reason
    detail : str
        The field and the value that offended; cut to a length that tables can show.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail[:LONGEST_DETAIL]


def cut(text: str) -> str:
    """Return a text that fits into a detail beside other words."""
    return text if len(text) <= 80 else f"{text[:79]}…"
