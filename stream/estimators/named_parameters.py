"""Parameters of a prior that an estimator has under their own names, beside its dict of them."""

from __future__ import annotations

from typing import Any, Protocol

from weald.treecore.errors import ParameterError

__all__ = ["prior_parameters"]

_NAMED = ("alpha", "discount", "sigma")


class _Estimator(Protocol):
    prior_params: dict[str, Any] | None
    alpha: float | None
    discount: float | None
    sigma: float | None


def prior_parameters(estimator: _Estimator) -> dict[str, Any]:
    """Return the prior's parameters: those of ``prior_params``, and those that have a name.

    Raises
    ------
    ParameterError
        If one is given twice.
    """
    found = dict(estimator.prior_params or {})
    for name in _NAMED:
        value = getattr(estimator, name)
        if value is None:
            continue
        if name in found:
            raise ParameterError(f"{name} is given twice: by its name and in prior_params")
        # A grid of NumPy's is as good as one of Python's.
        found[name] = float(value)
    return found
