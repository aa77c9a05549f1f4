"""How probable rows are to a fit that has not seen them."""

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.estimate.predictive import Predictive
from weald.treecore.family.interface.base import Family, refuse_impossible
from weald.treecore.family.totals import log_predictives, single_rows, totals_of_groups
from weald.treecore.prior import PartitionPrior

from .fit import ChainTrace

__all__ = ["held_out_densities"]

Values = NDArray[np.float64]

# Draws that predict: more change the mean density by less than its standard error.
_DRAWS = 50


def held_out_densities(values: Values, test: Values, traces: list[ChainTrace]) -> Values:
    """Log density (q) of other rows (q, d), by the mean of the draws' predictive densities.

    ``values`` (n, d) are the rows that the chains ran on; there has to be a draw. Raises
    ObservationError for a row that the family cannot take, as it was before anything was learned.
    """
    drawn = [
        each
        for trace in traces
        for each in zip(trace.draws, trace.draw_priors, trace.draw_families, strict=True)
    ]
    refuse_impossible(traces[0].first, test)
    chosen = np.unique(np.linspace(0, len(drawn) - 1, _DRAWS).astype(int))
    found = np.stack([_log_densities(values, test, drawn[at]) for at in chosen])
    return np.asarray(np.logaddexp.reduce(found, axis=0) - np.log(len(chosen)))


def _log_densities(
    values: Values, test: Values, drawn: tuple[NDArray[np.int64], PartitionPrior, Family]
) -> Values:
    labels, prior, family = drawn
    clusters = np.arange(int(labels.max()) + 1)
    totals = totals_of_groups(family, values, labels, clusters.size)
    known = Predictive.of(family, prior, clusters, totals)
    # Each cluster once, not each pair of a cluster and a row.
    log_joint = known.log_weights + log_predictives(family, single_rows(family, test), known.rows)
    return np.asarray(np.logaddexp.reduce(log_joint, axis=1))
