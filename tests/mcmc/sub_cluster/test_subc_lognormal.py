"""Counts with log-normal rates, against the posterior that an independent program integrated."""

import json
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from weald.mcmc.state.atom_state import MERGE, SPLIT
from weald.mcmc.sub_cluster import launched_sides, subc_lognormal
from weald.mcmc.sub_cluster.launched_sides import LaunchPlan
from weald.mcmc.sub_cluster.subc_lognormal import Counts, PoissonLogNormal, begin, model_of, sweep
from weald.treecore.errors import ObservationError, ParameterError
from weald.treecore.partition.partition import Model
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels

DATA = Path(__file__).parents[2] / "exact" / "data"

N_BATCHES = 16
ORACLE = json.loads((DATA / "poissonln5.json").read_text())
VALUES = np.array(ORACLE["x"], dtype=np.float64)[:, None]


def posed() -> tuple[Model, Counts, np.random.Generator]:
    family = PoissonLogNormal(ORACLE["mean"], ORACLE["sd"])
    model = model_of(family, build_prior("dp", {"alpha": ORACLE["alpha"]}), 5)
    rng = np.random.default_rng(3)
    return model, begin(rng, VALUES, np.zeros(5, dtype=np.int64), model), rng


def run(n_steps: int, plan: LaunchPlan) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Share of each partition's visits in each batch (batches, 52), and the exact ones."""
    model, state, rng = posed()
    codes = list(ORACLE["post"])
    counts = np.zeros((N_BATCHES, len(codes)))
    index = {tuple(int(c) - 1 for c in code): at for at, code in enumerate(codes)}
    for at in range(n_steps):
        state, _ = sweep(rng, state, model, plan)
        shape = tuple(canonical_labels(state.labels).tolist())
        counts[at * N_BATCHES // n_steps, index[shape]] += 1.0
    return counts * N_BATCHES / n_steps, np.array([ORACLE["post"][code] for code in codes])


def off(shares: NDArray[np.float64], exact: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard errors by which blocks and pairs are off."""
    shapes = np.array([[int(c) for c in code] for code in ORACLE["post"]])
    table = [shapes.max(axis=1) == k for k in range(2, 5)]
    table += [shapes[:, i] == shapes[:, j] for i, j in ((0, 1), (1, 2), (3, 4), (2, 3))]
    values = np.array(table, dtype=np.float64).T
    batches = shares @ values
    error = batches.std(axis=0, ddof=1) / np.sqrt(N_BATCHES)
    assert error.max() < 0.08
    return np.asarray((batches.mean(axis=0) - exact @ values) / error)


def test_long_run() -> None:
    assert (np.abs(off(*run(1_280, LaunchPlan(2, 1)))) < 4.0).all()


def test_without_the_density_of_the_proposal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio must know how the present thetas would have been drawn."""
    posterior = subc_lognormal._log_posterior
    monkeypatch.setattr(subc_lognormal, "_log_worth", posterior)
    assert np.abs(off(*run(640, LaunchPlan(2, 1)))).max() > 10.0


def test_the_fit_is_at_the_mode() -> None:
    family = PoissonLogNormal(1.0, 2.0)
    sums = np.array([[0.0, 0.0], [3.0, 0.0], [1.0, 1e6], [1e6, 3.0]])
    mode, _ = subc_lognormal._fit(family, sums)
    slope = sums[:, 1:] - sums[:, :1] * np.exp(mode) - (mode - 1.0) / 4.0
    assert (np.abs(slope) <= 1e-9 * (1.0 + sums[:, 1:])).all()


def test_a_merge_undoes_a_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same thetas and odds the two log ratios sum to zero."""
    model, state, _ = posed()
    odds = np.array([0.0, 0.0, 0.3, -1.2, 2.0])
    thetas = {1: np.array([[1.1]]), 2: np.array([[-0.2], [1.9]])}
    ratios = []
    monkeypatch.setattr(launched_sides, "launched", lambda *_: odds)
    monkeypatch.setattr(launched_sides, "drawn_sides", lambda *_: np.array([0, 1, 0, 1, 1]))
    monkeypatch.setattr(subc_lognormal, "_proposed", lambda _, __, sums: thetas[len(sums)])

    class Willing:
        random = partial(float, 1.0 - 1e-16)

    willing = cast("np.random.Generator", Willing())
    start = state._replace(theta=thetas[1])
    for before, move in ((start, SPLIT), (None, MERGE)):
        state, info = subc_lognormal.split_merge(
            willing, before or state, model, LaunchPlan(), (0, 1)
        )
        assert info.move == move
        assert info.accepted
        ratios.append(info.log_ratio)
    assert abs(sum(ratios)) < 1e-9
    assert state.labels.tolist() == start.labels.tolist()


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="deviation"):
        model_of(PoissonLogNormal(0.0, 0.0), build_prior("dp", {}), 5)
    model, _, rng = posed()
    with pytest.raises(ObservationError, match=r"observation 2: feature 0 is 1\.5"):
        begin(rng, np.array([[1.0], [2.0], [1.5]]), np.zeros(3, dtype=np.int64), model)
