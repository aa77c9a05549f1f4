"""Whether the chain's recent past looks like one distribution: R-hat of its two halves.

The service runs one chain, and the posterior that it samples changes with every observation. So
this is no proof of convergence, as R-hat of several chains of one target would be; `weald fit`
tells that. It says whether the newer half of the last refinements looks like the older half:
near 1 they do, well above it the chain still climbs, or the data changes.
"""

from collections import deque
from collections.abc import Sequence

import numpy as np

__all__ = ["Mixing", "split_rhat"]

# Refinements that are compared, and how many there must be.
REMEMBERED, FEWEST = 64, 8


class Mixing:
    """Where the chain stood after each of its last refinements."""

    def __init__(self) -> None:
        self._log_joint: deque[float] = deque(maxlen=REMEMBERED)
        self._clusters: deque[float] = deque(maxlen=REMEMBERED)

    def add(self, log_joint: float, n_observations: int, n_blocks: int) -> None:
        """Note one refinement; the log joint counts per observation, for those come and go."""
        self._log_joint.append(log_joint / max(n_observations, 1))
        self._clusters.append(float(n_blocks))

    def rhat(self) -> dict[str, float]:
        """Split R-hat of each trace by its name; empty until there are enough refinements."""
        if len(self._log_joint) < FEWEST:
            return {}
        traces = {"log_joint": self._log_joint, "clusters": self._clusters}
        return {name: split_rhat(list(trace)) for name, trace in traces.items()}


def split_rhat(trace: Sequence[float]) -> float:
    """R-hat of the halves of a trace; of an odd number the first value is left out.

    Parameters
    ----------
    trace : sequence of float, at least 4

    Returns
    -------
    float
        1 for a constant trace, infinity for two constant halves that differ.

    References
    ----------
    Gelman et al., "Bayesian Data Analysis", 3rd edition, section 11.4.
    """
    half = len(trace) // 2
    halves = np.array(trace[len(trace) - 2 * half :]).reshape(2, half)
    within = float(halves.var(axis=1, ddof=1).mean())
    between = float(halves.mean(axis=1).var(ddof=1))
    if within == 0.0:
        return 1.0 if between == 0.0 else float("inf")
    return float(np.sqrt((half - 1) / half + between / within))
