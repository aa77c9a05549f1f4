"""Why a question has no answer, and what to do about it."""

__all__ = ["AnswerError", "NoAnswerYetError", "UnsuitableError"]


class AnswerError(Exception):
    """A question has no answer.

    Parameters
    ----------
    message : str
        Why, as one sentence.
    next_step : str, optional
        What to try next.
    """

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message)
        self.next_step = next_step


class NoAnswerYetError(AnswerError):
    """There is nothing to answer from yet."""


class UnsuitableError(AnswerError):
    """The question makes no sense of what was given."""
