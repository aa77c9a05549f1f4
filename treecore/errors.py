"""Errors of treecore.

- WealdError
  - ParameterError   a hyperparameter that no model can have (names it and its value)
  - ObservationError values that a family cannot take (names row, column and value)
  - InvariantError   a structure that contradicts itself: a defect, never bad input
"""

__all__ = ["InvariantError", "ObservationError", "ParameterError", "WealdError"]


class WealdError(Exception):
    """Root of every error that Weald raises on purpose."""


class ParameterError(WealdError, ValueError):
    """A hyperparameter is outside its range."""


class ObservationError(WealdError, ValueError):
    """An observation cannot be taken by the family; says which one and why."""


class InvariantError(WealdError, RuntimeError):
    """An internal structure contradicts itself."""
