"""Offline fits: seeds, starts, schedules of kernels, and what may be claimed afterwards."""

import time
from itertools import count
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.batch_means import batch_means
from weald.mcmc.contract import Entry
from weald.mcmc.offline import fit as fit_module
from weald.mcmc.offline.fit import FitResult, FitSettings, fit, run_chain
from weald.mcmc.schedule import registry
from weald.mcmc.schedule.kernels import KERNELS
from weald.treecore.errors import ObservationError, ParameterError

N = 90
GROUPS = np.arange(N) % 3
ITERATIONS = 30


@pytest.fixture(scope="module")
def values() -> NDArray[np.float64]:
    """Three groups, two of which touch."""
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 30.0]])
    return centres[GROUPS] + np.random.default_rng(8).normal(size=(N, 2))


def clock() -> float:
    return 0.0


def fitted(values: NDArray[np.float64], **chosen: Any) -> FitResult:
    return fit(values, FitSettings(**{"iterations": ITERATIONS} | chosen), clock)


def test_seeds(values: NDArray[np.float64]) -> None:
    one, again, other = (fitted(values, seed=seed, chains=2) for seed in (1, 1, 2))
    for first, second in zip(one.traces, again.traces, strict=True):
        assert first.log_joint == second.log_joint
        assert first.hyper == second.hyper
    assert (one.labels == again.labels).all()
    assert (one.probability == again.probability).all()
    assert one.traces[0].log_joint != one.traces[1].log_joint
    assert one.traces[0].log_joint != other.traces[0].log_joint


def test_what_would_never_end_is_refused(values: NDArray[np.float64]) -> None:
    for wrong in ({"iterations": -1}, {"iterations": 0}, {"chains": 0}):
        with pytest.raises(ParameterError, match="at least, not"):
            fitted(values, **wrong)
    assert len(fitted(values, iterations=None, seconds=0.0).traces[0].log_joint) == 1


def test_an_unknown_consensus_is_refused_before_anything_is_sampled() -> None:
    with pytest.raises(ParameterError, match="'mode': choose among vi, binder, map"):
        FitSettings(consensus="mode")


def test_a_chain_does_not_depend_on_the_others(values: NDArray[np.float64]) -> None:
    settings = FitSettings(iterations=ITERATIONS, chains=3, seed=5)
    assert (
        run_chain(values, settings, 2, clock).log_joint
        == fit(values, settings, clock).traces[2].log_joint
    )


@pytest.mark.parametrize("prior", ["dp", "nggp", "pitman-yor", "mfm", "emm"])
def test_every_prior(prior: str, values: NDArray[np.float64]) -> None:
    result = fitted(values, prior=prior)
    trace = result.traces[0]
    assert len(trace.log_joint) == ITERATIONS
    assert np.isfinite(trace.log_joint).all()
    assert trace.best_log_joint == max(trace.log_joint)
    assert result.labels.shape == (N,)
    assert result.n_clusters == result.labels.max() + 1
    far = result.labels[GROUPS == 2]
    assert np.bincount(far).max() > 25
    assert ((result.probability >= 0.0) & (result.probability <= 1.0)).all()


@pytest.mark.parametrize("init", ["ibhc", "one", "singletons", "random:5"])
def test_every_start_reaches_the_same_level(init: str, values: NDArray[np.float64]) -> None:
    result = fitted(values, init=init, iterations=400, learn_hyper=False)
    expected = fitted(values, iterations=400, learn_hyper=False, seed=9)
    late = [np.array(each.traces[0].log_joint[100:]) for each in (result, expected)]
    levels, errors = zip(*(batch_means(each, 15) for each in late), strict=True)
    assert abs(levels[0] - levels[1]) < 4.0 * np.hypot(*errors)
    assert np.hypot(*errors) < 2.0


def test_starts_that_the_prior_forbids(values: NDArray[np.float64]) -> None:
    few = {"prior": "emm", "prior_params": {"kmax": 2}}
    for init in ("singletons", "random:40"):
        with pytest.raises(ParameterError, match="2 at most"):
            fitted(values, init=init, **few)
    result = fitted(values, init="ibhc", **few)
    assert result.n_clusters <= 2


SCHEDULES = registry.SCHEDULES["mixture"]


@pytest.mark.parametrize("name", [*KERNELS, *SCHEDULES])
def test_kernels_by_name(name: str, values: NDArray[np.float64]) -> None:
    # Kernels of the entity/mention model take no other prior.
    prior = "emm" if name.endswith(registry.ENTITIES) else "dp"
    # Four chains, because some kernels take their guides from one another's.
    result = fitted(values, kernels=(name,), prior=prior, chains=4, iterations=3)
    # A cycle may come back to a kernel, whose moves are then counted together.
    expected = tuple(dict.fromkeys(SCHEDULES.get(name, (name,))))
    assert tuple(kernel.name for kernel in result.kernels) == expected
    assert set(result.traces[0].tally) == set(expected)
    for kernel in result.kernels:
        assert len(result.traces[0].tally[kernel.name]) == 3
        for moves in result.traces[0].tally[kernel.name]:
            assert moves.shape == (len(kernel.parts), 3)


@pytest.mark.parametrize(
    ("kernel", "prior", "why"),
    [
        ("sdds-entities", "dp", "may be empty, which the prior emm has, not dp"),
        ("slice", "emm", "needs a prior of product form"),
    ],
)
def test_a_kernel_that_the_prior_does_not_let_run(
    kernel: str, prior: str, why: str, values: NDArray[np.float64]
) -> None:
    with pytest.raises(ParameterError, match=f"{kernel} .*{why}"):
        fitted(values, kernels=("gibbs", kernel), prior=prior)


def test_an_unknown_kernel(values: NDArray[np.float64]) -> None:
    with pytest.raises(ParameterError, match="tgmcmc"):
        fitted(values, kernels=("metropolis",))


@pytest.mark.parametrize(
    ("setting", "value", "known"), [("family", "cauchy", "gaussian"), ("prior", "crp", "dp")]
)
def test_unknown_names_say_what_there_is(
    setting: str, value: str, known: str, values: NDArray[np.float64]
) -> None:
    with pytest.raises(ParameterError, match=known):
        fitted(values, **{setting: value})


def test_a_row_that_the_family_cannot_take(values: NDArray[np.float64]) -> None:
    bad = values.copy()
    bad[7, 0] = np.inf
    with pytest.raises(ObservationError, match="row 7"):
        fitted(bad, params={"mean": [0.0, 0.0], "psi": np.eye(2).tolist()})


@pytest.fixture
def approximate(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a kernel that puts everything into one cluster."""
    lumping = Entry("lumping", "approximate", "tests.mcmc.offline.lumping")
    monkeypatch.setattr(registry, "REGISTRY", [*registry.REGISTRY, lumping])
    return lumping.name


@pytest.mark.parametrize("consensus", ["map", "vi", "binder"])
def test_no_probabilities_from_approximate_draws(
    consensus: str, approximate: str, values: NDArray[np.float64]
) -> None:
    result = fitted(values, kernels=("gibbs", approximate), consensus=consensus)
    assert np.isnan(result.probability).all()
    assert np.isnan(result.stability).all()
    assert all(trace.draws == [] for trace in result.traces)
    assert (result.labels == 0).all()


@pytest.mark.parametrize("consensus", ["vi", "binder"])
def test_consensus(consensus: str, values: NDArray[np.float64]) -> None:
    result = fitted(values, consensus=consensus, chains=2)
    assert len(result.traces[0].draws) == ITERATIONS // 2
    assert np.median(result.probability[GROUPS == 2]) > 0.9


def test_draws_span_the_second_half(values: NDArray[np.float64]) -> None:
    trace = run_chain(values[:12], FitSettings(iterations=1000, keep_labels=True), 0, clock)
    assert len(trace.labels) == 1000
    assert 100 <= len(trace.draws) <= 200
    kept = [at for at, labels in enumerate(trace.labels) if labels is trace.draws[0]]
    assert 450 <= kept[0] <= 550
    assert trace.draws[-1] is trace.labels[999 - 1000 % 4]


def test_seconds_bound_a_chain(values: NDArray[np.float64]) -> None:
    ticks = count()
    trace = run_chain(values, FitSettings(seconds=7.0), 0, lambda: float(next(ticks)))
    assert len(trace.log_joint) == 7
    ticks = count()
    both = FitSettings(seconds=7.0, iterations=3)
    assert len(run_chain(values, both, 0, lambda: float(next(ticks))).log_joint) == 3


def test_a_chain_asks_what_it_has_once_it_is_where_it_starts(
    values: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten seconds the start takes four; other settings have no say."""
    ticks = count()
    start = fit_module._start

    def slow(*arguments: Any) -> Any:
        for _ in range(4):
            next(ticks)
        return start(*arguments)

    monkeypatch.setattr(fit_module, "_start", slow)
    settings = FitSettings(seconds=50.0, iterations=2)
    trace = run_chain(
        values, settings, 0, lambda: float(next(ticks)), seconds=lambda: 10.0 - float(next(ticks))
    )
    assert len(trace.log_joint) == 6


def test_progress_ends_at_one(values: NDArray[np.float64]) -> None:
    told: list[float] = []
    fit(values, FitSettings(iterations=4, chains=2), time.perf_counter, told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows(n: int, values: NDArray[np.float64]) -> None:
    params = {"mean": [0.0, 0.0], "psi": np.eye(2).tolist()}
    result = fitted(values[:n], params=params)
    assert result.labels.shape == (n,)
    assert result.labels[0] == 0
