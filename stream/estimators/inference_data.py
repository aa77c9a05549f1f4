"""The chains of a fit as ArviZ knows them, so that its diagnostics and plots apply."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.offline.fit import ChainTrace, FitResult

if TYPE_CHECKING:
    import arviz

__all__ = ["inference_data", "library"]


def library() -> Any:
    """ArviZ, without the notice that its next version will be another.

    Raises
    ------
    ImportError
        Naming the extra that brings it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            import arviz
    except ImportError as error:
        raise ImportError("this needs ArviZ: pip install 'weald[notebook]'") from error
    return arviz


def inference_data(result: FitResult, warmup: float = 0.5) -> "arviz.InferenceData":
    """Chains of a fit, chains x iterations, cut to the shortest chain.

    Parameters
    ----------
    result : FitResult
    warmup : float
        Share of each chain's beginning that goes to the ``warmup_`` groups: the fit reports from
        the rest.

    Returns
    -------
    arviz.InferenceData
        ``posterior``: ``n_clusters`` and each learned hyperparameter. ``sample_stats``: ``lp``
        (log joint), ``seconds``, and for each move ``proposed_...``, ``accepted_...`` and
        ``log_ratio_...`` (the sum over its proposals).
    """
    n = min(len(trace.log_joint) for trace in result.traces)
    cut = min(int(warmup * n), n - 1)

    def stacked(pick: Any) -> NDArray[Any]:
        return np.stack([np.asarray(pick(trace))[:n] for trace in result.traces])

    posterior = {"n_clusters": stacked(lambda trace: trace.n_clusters)}
    for name in result.traces[0].hyper:
        posterior[name] = stacked(lambda trace, name=name: trace.hyper[name])
    statistics = {
        "lp": stacked(lambda trace: trace.log_joint),
        "seconds": stacked(lambda trace: trace.seconds),
        **_moves(result, stacked),
    }
    groups = {"posterior": posterior, "sample_stats": statistics}
    kept = {
        group: {name: array[:, cut:] for name, array in arrays.items()}
        for group, arrays in groups.items()
    }
    burnt = {
        f"warmup_{group}": {name: array[:, :cut] for name, array in arrays.items()}
        for group, arrays in groups.items()
        if cut
    }
    data: arviz.InferenceData = library().from_dict(**kept, **burnt, save_warmup=True)
    return data


def _moves(result: FitResult, stacked: Any) -> dict[str, NDArray[Any]]:
    found = {}
    for kernel in result.kernels:
        for part, name in enumerate(kernel.parts):
            move = kernel.name if name == kernel.name else f"{kernel.name}_{name}"

            def tally(trace: ChainTrace, kernel: str = kernel.name, part: int = part) -> Any:
                return np.stack(trace.tally[kernel])[:, part, :]

            each = stacked(tally)
            for at, what in enumerate(("proposed", "accepted", "log_ratio")):
                found[f"{what}_{move}"] = each[..., at]
    return found
