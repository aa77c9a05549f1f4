"""Every kernel leaves the entity/mention posterior over (K, partition) invariant."""

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.exact.enumeration import Paths, is_irreducible, stationary
from tests.exact.mentions import (
    ATOMS,
    FAMILY,
    MODEL,
    POINTS,
    PRIOR,
    TARGET,
    N,
    gibbs_scan,
    matrix_of,
    steps,
)
from weald.mcmc.entities import entities
from weald.mcmc.split_merge import proposal as split_merge
from weald.mcmc.split_merge import rgsm, rm, rsm, sams, sdds, ss
from weald.mcmc.split_merge.selection import EQUAL, TEMPERED, Selection, paper_selection
from weald.mcmc.split_merge.trial_split import log_number
from weald.mcmc.state.atom_state import SPLIT
from weald.mcmc.state.entity_state import EntityState
from weald.treecore.family.interface.base import log_marginal

TOLERANCE = 1e-12

ALONE: dict[str, tuple[Any, Any]] = {
    "sdds": (sdds, sdds.SddsPlan()),
    "sdds-a": (sdds, sdds.SddsPlan(1, 1.0)),
    "sdds-a-equal": (sdds, sdds.SddsPlan(1, 1.0, Selection(EQUAL))),
    "sdds-a-paper": (sdds, sdds.SddsPlan(1, 1.0, Selection(TEMPERED, floor=0.0))),
    "sdds-b": (sdds, sdds.SddsPlan(1, 0.0)),
    "sdds-b-paper": (sdds, sdds.SddsPlan(1, 0.0, paper_selection())),
    "ss": (ss, ss.SsPlan()),
}
WITH_GIBBS: dict[str, tuple[Any, Any]] = {
    "rm": (rm, rm.RmPlan()),
    "rm-half": (rm, rm.RmPlan(share=rm.HALF)),
    "rgsm": (rgsm, rgsm.RgsmPlan(0, 1, 0)),
    "rgsm-1-anchored": (rgsm, rgsm.RgsmPlan(1, 1, 0, rgsm.ANCHORED)),
    "rsm": (rsm, rsm.RsmPlan()),
    "sams": (sams, sams.SamsPlan()),
}


def test_weights() -> None:
    found = np.array(
        [PRIOR.log_weight(k, max(shape) + 1, N) + _log_likelihood(shape) for k, shape in POINTS]
    )
    assert np.exp(found - np.log(np.exp(found).sum())) == pytest.approx(TARGET, abs=1e-12)


def _log_likelihood(shape: tuple[int, ...]) -> float:
    labels = np.array(shape)
    rows = [ATOMS.rows[labels == k].sum(axis=0, keepdims=True) for k in range(max(shape) + 1)]
    return sum(log_marginal(FAMILY, row, 0, MODEL.work) for row in rows)


@pytest.mark.parametrize("name", ALONE)
def test_alone(name: str) -> None:
    matrix = matrix_of(steps(*ALONE[name]))
    assert np.abs(TARGET @ matrix - TARGET).max() < TOLERANCE
    assert is_irreducible(matrix)


def test_random_order() -> None:
    matrix = matrix_of(steps(*ALONE["ss"]), Paths)
    assert np.abs(TARGET @ matrix - TARGET).max() < TOLERANCE


@pytest.mark.parametrize("name", WITH_GIBBS)
def test_with_gibbs(name: str) -> None:
    matrix = matrix_of(steps(*WITH_GIBBS[name]))
    assert np.abs(TARGET @ matrix - TARGET).max() < TOLERANCE
    scan = gibbs_scan()
    assert np.abs(TARGET @ scan - TARGET).max() < TOLERANCE
    assert is_irreducible(matrix @ scan)


# Wrong forms, with the distance from the posterior that an independent program computed for them.


def wrong(matrix: NDArray[np.float64]) -> tuple[float, float]:
    """Total variation between what the kernel converges to and the posterior; its mean K."""
    found = stationary(matrix)
    n_entities = np.array([k for k, _ in POINTS])
    return float(np.abs(found - TARGET).sum() / 2), float(found @ n_entities)


def test_dumb_merge_counted_once_when_imagined(monkeypatch: pytest.MonkeyPatch) -> None:
    """E1: splits get a factor of two too many."""
    decide = split_merge.decide
    monkeypatch.setattr(
        split_merge,
        "decide",
        lambda rng, move, ratio: decide(rng, move, ratio + log(2.0) * (move == SPLIT)),
    )
    distance, _ = wrong(matrix_of(steps(*ALONE["sdds-a-paper"])))
    assert distance == pytest.approx(0.303, abs=5e-4)


def test_dumb_split_counts_one_side_order_and_no_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """E2 and E3: the posterior is tilted by 2^K / K!."""
    tilt(monkeypatch, lambda labels: log(2.0) - labels)
    distance, mean = wrong(matrix_of(steps(*ALONE["sdds-b"])))
    assert distance == pytest.approx(0.266, abs=5e-4)
    assert mean == pytest.approx(2.19, abs=5e-3)


def test_restricted_gibbs_without_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """E3: the factor of K + 1 is nowhere in the paper."""
    scan = gibbs_scan()
    tilt(monkeypatch, lambda labels: -labels)
    distance, mean = wrong(matrix_of(steps(*WITH_GIBBS["rgsm"])) @ scan)
    assert distance == pytest.approx(0.454, abs=5e-4)
    assert mean == pytest.approx(1.64, abs=5e-3)


def tilt(monkeypatch: pytest.MonkeyPatch, more: Callable[[float], float]) -> None:
    """Add to a split's log ratio, and take off a merge's, given the log of the labels' factor."""

    def number(state: EntityState, model: Any, way: int) -> float:
        labels = log(state.entities.number[0] + (1 if way > 0 else 0))
        return entities.entity_log_number(state, model, way) + way * more(labels)

    monkeypatch.setitem(log_number.implementations, EntityState, number)  # type: ignore[attr-defined]  # set by generic()
