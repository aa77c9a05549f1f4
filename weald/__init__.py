"""Weald: Bayesian clustering of event streams.

The front door for Python. What it offers is loaded when it is first asked for:

- ``fit``: cluster a batch of observations; ``FitSettings`` and ``FitResult`` go with it.
- ``BayesianClusterer``, ``OnlineBayesianClusterer``: the engine with the verbs of scikit-learn and
  of River.

The rooms are folders at the top of the repository; the links beside this file give each the name
under which it is installed, ``weald.mcmc`` and so on.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weald.mcmc.offline.fit import FitResult, FitSettings, fit
    from weald.stream.estimators.bayesian_clusterer import BayesianClusterer
    from weald.stream.estimators.online_clusterer import OnlineBayesianClusterer

    __version__: str

__all__ = [
    "BayesianClusterer",
    "FitResult",
    "FitSettings",
    "OnlineBayesianClusterer",
    "__version__",
    "fit",
]

_PLACES = {
    "BayesianClusterer": "weald.stream.estimators.bayesian_clusterer",
    "FitResult": "weald.mcmc.offline.fit",
    "FitSettings": "weald.mcmc.offline.fit",
    "OnlineBayesianClusterer": "weald.stream.estimators.online_clusterer",
    "fit": "weald.mcmc.offline.fit",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("weald")
    if name not in _PLACES:
        raise AttributeError(f"module 'weald' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
