"""Wrong forms that papers print or that are easily written, each of which must fail here.

Their distance from the posterior was computed by an independent program (total variation, no Monte
Carlo error). A suite that passed them would be too weak. ``split-merge-samplers.md``, section 4.
"""

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np
import pytest

from tests.exact.cases import FORMS, KERNELS, Kernel, problem
from tests.exact.enumeration import IdOrder, stationary
from weald.mcmc.split_merge import dm, selection
from weald.mcmc.split_merge import proposal as split_merge
from weald.mcmc.state.atom_state import MERGE, SPLIT, Info


def distance(kernel: Kernel) -> float:
    """Total variation between what the kernel converges to and the posterior."""
    small = problem("bernoulli", "dp", 5)
    matrix = small.matrix(kernel, IdOrder)
    assert np.abs(small.target @ matrix - small.target).max() > 1e-3
    return float(np.abs(stationary(matrix) - small.target).sum() / 2)


def tilted(on_split: float, on_merge: float) -> Callable[[Any, int, float], Info]:
    """The decision with something added to the log ratios."""
    decide, extra = split_merge.decide, {SPLIT: on_split, MERGE: on_merge}
    return lambda rng, move, log_ratio: decide(rng, move, log_ratio + extra.get(move, 0.0))


def test_dumb_merge_counted_once_when_imagined(monkeypatch: pytest.MonkeyPatch) -> None:
    """E1: splits get a factor of two too many."""
    monkeypatch.setattr(split_merge, "decide", tilted(log(2.0), 0.0))
    assert distance(FORMS["sdds-a-paper"]) == pytest.approx(0.092, abs=5e-4)


def test_dumb_split_counts_one_side_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """E2: the merge counts both orders; the posterior is tilted by two to the number of blocks."""
    monkeypatch.setattr(split_merge, "decide", tilted(log(2.0), -log(2.0)))
    assert distance(KERNELS["sdds-b"]) == pytest.approx(0.228, abs=5e-4)


def test_smart_merge_counts_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """E2: f_merge(j | i) without f_merge(i | j)."""
    monkeypatch.setattr(selection, "_log_either_partner", selection._log_one_partner)
    assert distance(KERNELS["sdds-b"]) == pytest.approx(0.254, abs=5e-4)


def test_random_split_without_its_selection_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio of Chang and Fisher's supplement and code."""
    monkeypatch.setattr(dm, "log", lambda _: 0.0)
    assert distance(KERNELS["dm"]) == pytest.approx(0.488, abs=5e-4)
