"""Whether to believe a fit."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from weald.answers.diagnostics.fit_diagnostics import (
    chains_of,
    diagnostics,
    held_out_density,
    settled_by_r_hat,
    settled_in_words,
    shares_alone,
)
from weald.answers.diagnostics.trust import Trust, stayed_in_words
from weald.answers.errors import UnsuitableError
from weald.mcmc.offline.fit import FitResult, FitSettings, fit
from weald.mcmc.offline.fit_groups import DrawnGroups


def flags(values: list[tuple[int, ...]]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


TRAIN = flags([(1, 1, 0), (1, 1, 1), (0, 0, 1), (0, 1, 1), (1, 0, 0), (0, 0, 0)])


def fitted(
    kernels: tuple[str, ...] = ("gibbs",), chains: int = 3, iterations: int = 60
) -> FitResult:
    settings = FitSettings(
        family="bernoulli", kernels=kernels, init="one", chains=chains, iterations=iterations
    )
    return fit(TRAIN, settings, lambda: 0.0)


def test_predictive_probabilities_of_all_records_add_up_to_one() -> None:
    result = fitted()
    found = [held_out_density(TRAIN, flags([row]), result) for row in product((0, 1), repeat=3)]
    assert abs(sum(np.exp(each["mean_log_density"]) for each in found) - 1.0) < 1e-9


def test_chains_that_agree_are_told_from_chains_that_do_not() -> None:
    result = fitted(iterations=400)
    rows = {row["name"]: row for row in diagnostics(result)}
    assert {"log joint", "clusters", "sum of squared shares", "pairs together"} <= rows.keys()
    assert all(row["r_hat"] < 1.1 and row["ess_bulk"] > 50 for row in rows.values())
    # A chain that stands still elsewhere.
    stuck = result.traces[0]
    stuck.together[:] = [1.0 - share for share in stuck.together]
    apart = {row["name"]: row for row in diagnostics(result)}
    assert apart["pairs together"]["r_hat"] > 1.05 > rows["pairs together"]["r_hat"]


def test_an_approximate_kernel_has_neither() -> None:
    result = fitted(("fsd",))
    assert not chains_of(result).stationary
    assert diagnostics(result) == []
    with pytest.raises(UnsuitableError, match="approximate"):
        held_out_density(TRAIN, TRAIN, result)


def followed(r_hat: float, ess: float) -> list[dict[str, object]]:
    """What diagnostics say of two numbers, the second of which never moved."""
    moved = {"name": "clusters", "r_hat": r_hat, "ess_bulk": ess, "ess_tail": ess}
    still = {"name": "alpha", "r_hat": np.nan, "ess_bulk": np.nan, "ess_tail": np.nan}
    return [moved, still]


@pytest.mark.parametrize(
    ("rows", "begins", "has"),
    [
        (followed(1.005, 900.0), "yes: ", "900 effective draws"),
        (followed(1.005, 50.0), "nearly: ", "clusters has 50"),
        (followed(1.05, 900.0), "nearly: ", "R-hat 1.05"),
        (followed(1.0149, 900.0), "yes: ", "at most 1.01"),
        (followed(2.1, 10.0), "no: ", "clusters (R-hat 2.10"),
        (followed(np.inf, 10.0), "no: ", "clusters"),
        (followed(np.nan, np.nan), "not known", "nothing"),
        ([], "not known", "too few draws"),
    ],
)
def test_one_sentence_says_whether_a_chain_without_draws_has_settled(
    rows: list[dict[str, object]], begins: str, has: str
) -> None:
    sentence = settled_by_r_hat(rows)
    assert sentence.startswith(begins)
    assert has in sentence
    assert "nan" not in sentence


def test_groups_have_settled_where_each_run_alone_shows_them(rng: np.random.Generator) -> None:
    """Chains of which one is elsewhere, and a lone chain whose second half is."""
    kind = np.repeat([0, 1, 2], [40, 60, 20])
    values = 20.0 * kind[:, None] + rng.normal(size=(120, 2))
    settings = FitSettings(family="gaussian", chains=2, iterations=24)
    result = fit(values, settings, lambda: 0.0)
    assert shares_alone(DrawnGroups(result, values), kind) == [1.0, 1.0]
    elsewhere = np.where(kind == 2, 1, kind)
    for trace in result.traces[1:]:
        assert trace.relabelled is not None
        trace.relabelled[:] = elsewhere
    assert shares_alone(DrawnGroups(result, values), kind) == [1.0, pytest.approx(5 / 6)]
    lone = replace(result, traces=result.traces[:1], trusted=(0,))
    relabelled = lone.traces[0].relabelled
    assert relabelled is not None
    relabelled[len(relabelled) // 2 :] = elsewhere
    assert shares_alone(DrawnGroups(lone, values), kind) == [1.0, pytest.approx(5 / 6)]
    lone.traces[0].relabelled = relabelled[:6]
    assert shares_alone(DrawnGroups(lone, values), kind) == []


@pytest.mark.parametrize(
    ("shares", "n_chains", "begins"),
    [
        ([1.0, 0.9599], 2, "yes: each of 2 runs alone puts 95 % of the rows or more"),
        ([1.0, 1.0], 2, "yes: each of 2 runs alone puts all rows into the same groups"),
        ([0.9, 1.0], 1, "nearly: each half of the run alone puts 90 %"),
        ([0.4, 1.0, 1.0], 3, "no: each of 3 runs alone puts 40 %"),
        ([], 1, "not known: too few draws"),
    ],
)
def test_one_sentence_says_whether_groups_have_settled(
    shares: list[float], n_chains: int, begins: str
) -> None:
    assert settled_in_words(shares, n_chains).startswith(begins)


@pytest.mark.parametrize(
    ("settled", "verdict"),
    [
        (settled_in_words([1.0], 2), "believe it"),
        (settled_in_words([0.9], 2), "believe it"),
        (settled_in_words([0.8], 2), "believe it for now"),
        (settled_in_words([], 2), "believe it for now"),
        (stayed_in_words(0.8), "believe it for now"),
        (stayed_in_words(0.99), "believe it"),
        (settled_by_r_hat([]), "believe it for now"),
        ("", "believe it"),
    ],
)
def test_what_has_not_settled_is_believed_for_now(settled: str, verdict: str) -> None:
    assert Trust([], settled).verdict == verdict
    assert Trust(["too few"], settled).verdict == "doubt it"
