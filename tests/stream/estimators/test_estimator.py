"""The estimators: scikit-learn's and River's own checks, and what a notebook asks of them."""

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from river import checks, datasets
from river.checks import common
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from weald.stream.estimators.bayesian_clusterer import NEW_CLUSTER, BayesianClusterer
from weald.stream.estimators.inference_data import library
from weald.stream.estimators.online_clusterer import OnlineBayesianClusterer
from weald.treecore.errors import ObservationError, ParameterError

Matrix = NDArray[np.float64]
CENTRES = (0.0, 9.0, 20.0)


def blobs(rng: np.random.Generator, n: int = 600) -> tuple[Matrix, NDArray[np.int64]]:
    """Three round clusters of unit width, far apart, in random order."""
    truth = rng.integers(0, len(CENTRES), size=n)
    return rng.normal(size=(n, 2)) + np.array(CENTRES)[truth][:, None], truth


@pytest.mark.filterwarnings("ignore:Skipping check check_array_api_input")
@parametrize_with_checks([BayesianClusterer(n_iter=10)])  # type: ignore[untyped-decorator]  # its library has no types
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(
    "check",
    list(checks.yield_checks(OnlineBayesianClusterer())),
    ids=lambda check: check.__name__,
)
def test_rivers_own_checks(check: Any) -> None:
    check(OnlineBayesianClusterer(warmup=20))


# River knows no stream to try clusterers on, so its checks of behaviour wait to be asked.
@pytest.mark.parametrize(
    "check",
    [
        common.check_learn_one,
        common.check_pickling,
        common.check_shuffle_features_no_impact,
        common.check_emerging_features,
        common.check_disappearing_features,
        common.check_radically_disappearing_features,
        common.check_no_state_aliasing_with_input,
        common.check_clone_is_independent,
        common.check_seeding_is_idempotent,
    ],
    ids=lambda check: check.__name__,
)
def test_rivers_checks_of_behaviour_on_a_stream(check: Any) -> None:
    check(OnlineBayesianClusterer(warmup=20), datasets.Phishing().take(120))


def test_a_pipeline_finds_the_kinds_of_iris() -> None:
    measured, kind = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), PCA(2), BayesianClusterer(n_iter=50, random_state=0))
    labels = model.fit_predict(measured)
    # Versicolor and virginica overlap; setosa is far from both.
    assert adjusted_rand_score(kind, labels) > 0.5
    assert adjusted_rand_score(kind == 0, labels == labels[0]) == 1.0
    assert np.isfinite(model.score_samples(measured)).all()


def test_copies_of_rows_are_seen_once(rng: np.random.Generator) -> None:
    values = load_iris().data + rng.normal(0.0, 1e-3, (150, 4))
    alone = BayesianClusterer(n_iter=10, n_chains=1, random_state=0).fit(values)
    copied = np.arange(0, 150, 5)
    twice = BayesianClusterer(n_iter=10, n_chains=1, random_state=0)
    twice.fit(np.vstack([values, values[copied]]))
    assert len(twice.result_.labels) == 150
    for name in ("labels_", "groups_", "probabilities_", "stability_"):
        own = getattr(alone, name)
        assert np.array_equal(getattr(twice, name), [*own, *own[copied]])
    shown = twice.clusters().sort_index()
    assert shown["size"].tolist() == np.bincount(twice.labels_).tolist()
    assert shown["share"].sum() == pytest.approx(1.0)
    known = BayesianClusterer(n_iter=2, params={"kappa": 0.1}).fit(np.vstack([values] * 2))
    assert len(known.result_.labels) == 300


def test_fit_finds_separate_clusters_and_is_sure_of_them(rng: np.random.Generator) -> None:
    values, truth = blobs(rng)
    model = BayesianClusterer(n_iter=40, random_state=0).fit(values)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert model.clusters_.tolist() == [0, 1, 2]
    # An observation far out may visit a cluster of its own.
    assert model.probabilities_.mean() > 0.99
    assert np.median(model.stability_) > 0.95
    assert (model.predict(values) == model.labels_).all()


def test_probabilities_are_of_each_cluster_and_a_new_one(rng: np.random.Generator) -> None:
    values, _ = blobs(rng)
    model = BayesianClusterer(n_iter=20, random_state=0).fit(values)
    asked = np.array([[0.0, 0.0], [9.0, 9.0], [60.0, -60.0]])
    probability = model.predict_proba(asked)
    assert probability.shape == (3, model.n_clusters_ + 1)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    answers = model.predict(asked)
    assert answers[2] == NEW_CLUSTER
    assert (probability[np.arange(3), answers] == probability.max(axis=1)).all()
    density = model.score_samples(asked)
    assert density[2] < density[:2].min()
    assert model.score(asked) == pytest.approx(density.mean())


def test_a_density_integrates_to_one(rng: np.random.Generator) -> None:
    values, _ = blobs(rng)
    model = BayesianClusterer("diagonal", random_state=0).partial_fit(values[:, :1])
    grid = np.linspace(-300.0, 320.0, 40_001)
    mass = np.trapezoid(np.exp(model.score_samples(grid[:, None])), grid)
    # Tails of a t density beyond the grid.
    assert mass == pytest.approx(1.0, abs=2e-3)


def test_a_stream_may_be_cut_anywhere(rng: np.random.Generator) -> None:
    values, truth = blobs(rng)
    whole, parts = (BayesianClusterer(refine_every=150, random_state=1) for _ in range(2))
    whole.partial_fit(values[:200]).partial_fit(values[200:])
    parts.partial_fit(values[:200])
    for row in values[200:]:
        parts.partial_fit(row[None])
    assert (whole.labels_ == parts.labels_).all()
    assert adjusted_rand_score(truth, whole.labels_) == 1.0
    events = whole.lineage().drop(columns="time")
    assert events.equals(parts.lineage().drop(columns="time"))
    # Clusters that are told of in the lineage are those of the labels.
    born = set(events[events.kind.isin(["birth", "split"])].cluster)
    ended = set(events[events.kind == "retire"].cluster)
    assert set(whole.labels_) == born - ended == set(whole.clusters_)


def test_a_stream_goes_on_from_what_was_fitted(rng: np.random.Generator) -> None:
    values, _ = blobs(rng)
    model = BayesianClusterer(n_iter=20, random_state=0).fit(values[:300])
    model.partial_fit(values[300:])
    assert len(model.labels_) == len(values)
    assert not hasattr(model, "probabilities_")
    assert model.clusters()["size"].sum() == len(values)


def test_missing_values_are_taken_where_the_family_takes_them(rng: np.random.Generator) -> None:
    values, truth = blobs(rng)
    holes = values.copy()
    holes[rng.random(len(values)) < 0.2, 0] = np.nan
    model = BayesianClusterer("diagonal", refine_every=200, random_state=0).partial_fit(holes)
    assert adjusted_rand_score(truth, model.labels_) > 0.99
    with pytest.raises(ValueError, match="NaN"):
        BayesianClusterer("gaussian").fit(holes)


def test_all_processors_are_minus_one_as_elsewhere(rng: np.random.Generator) -> None:
    """It was an error of the pool of threads; the result is the same however many there are."""
    values, _ = blobs(rng)
    labels = [
        BayesianClusterer(n_iter=20, n_chains=2, n_jobs=jobs, random_state=0).fit(values).labels_
        for jobs in (1, -1, None)
    ]
    np.testing.assert_array_equal(labels[1:], [labels[0]] * 2)


def test_frames_and_inference_data_tell_the_result(rng: np.random.Generator) -> None:
    values, _ = blobs(rng)
    table = pd.DataFrame(values, columns=["width", "height"])
    model = BayesianClusterer(n_iter=30, n_chains=2, n_jobs=2, random_state=0).fit(table)
    clusters = model.clusters()
    told = ["size", "share", "width.centre", "width.spread", "height.centre", "height.spread"]
    assert list(clusters.columns) == told
    assert clusters["size"].is_monotonic_decreasing
    found = np.sort(clusters["width.centre"].to_numpy())
    # 200 values of unit width in each: 5 standard errors of their mean.
    np.testing.assert_allclose(found, CENTRES, atol=5 / np.sqrt(150))
    assert list(model.assignments().columns) == [
        "cluster",
        "group",
        "probability",
        "stability",
    ]
    data: Any = model.inference_data()
    assert data.posterior["n_clusters"].shape == (2, 15)
    assert data.warmup_posterior["n_clusters"].shape == (2, 15)
    assert float(library().ess(data, var_names=["alpha"])["alpha"]) > 1.0
    proposed = data.sample_stats["proposed_gibbs"]
    # The default cycle scans twice.
    assert (proposed == 2 * len(values)).all()


def test_what_cannot_be_is_refused_in_words() -> None:
    values = np.zeros((5, 2))
    with pytest.raises(ParameterError, match="family 'gausian'"):
        BayesianClusterer("gausian").fit(values)
    with pytest.raises(ParameterError, match="unknown family 'gausian'"):
        BayesianClusterer("gausian").partial_fit(values)
    with pytest.raises(ObservationError, match="row 1"):
        BayesianClusterer("poisson").fit([[1.0], [-1.0]])
    with pytest.raises(ParameterError, match="one sweep at least, not -1"):
        BayesianClusterer("gaussian", n_iter=-1).fit(values)


def test_heavy_tails_are_predicted_as_they_were_fitted() -> None:
    """Clusters are learned to be over a million times narrower than the tail is long."""
    values = np.exp(np.random.default_rng(0).normal(0.0, 5.0, (1000, 2)))
    model = BayesianClusterer("gaussian", n_iter=20, n_chains=1, random_state=0).fit(values)
    assert values.max() > 1e6 * np.sqrt(model.result_.family.psi.max())
    assert np.isfinite(model.score_samples(values)).all()


def test_chains_may_guide_one_another(rng: np.random.Generator) -> None:
    values, truth = blobs(rng, 60)
    # So few sweeps are enough for chains that begin with trees.
    model = BayesianClusterer(
        "gaussian", kernels="gibbs,accord", init="ibhc", n_iter=4, random_state=0
    )
    assert adjusted_rand_score(truth, model.fit(values).labels_) == 1.0
    assert len(model.result_.traces) == 8
    assert len(model.set_params(n_chains=4).fit(values).result_.traces) == 4
    with pytest.raises(ParameterError, match="4 at least, not 2"):
        model.set_params(n_chains=2).fit(values)
    with pytest.raises(ParameterError, match="accord alone does not reach every partition"):
        model.set_params(kernels="accord").fit(values)


def test_a_model_travels_with_the_kernels_that_ran(rng: np.random.Generator) -> None:
    model = BayesianClusterer("gaussian", kernels="gibbs", n_iter=4, random_state=0)
    model.fit(blobs(rng, 60)[0]).set_params(kernels="sams")
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    assert [kernel.name for kernel in again.result_.kernels] == ["gibbs"]


def observations(values: Matrix) -> Iterator[dict[str, float]]:
    for x, y in values.tolist():
        yield {"x": x, "y": y}


def test_an_online_model_agrees_with_the_estimator(rng: np.random.Generator) -> None:
    values, _ = blobs(rng)
    online = OnlineBayesianClusterer("gaussian", warmup=100, refine_every=150)
    for x in observations(values):
        online.learn_one(x)
    batch = BayesianClusterer("gaussian", refine_every=150, random_state=0)
    batch.partial_fit(values[:100]).partial_fit(values[100:])
    assert online.n_clusters == batch.n_clusters_ == 3
    asked = np.array([[0.0, 0.0], [9.0, 9.0], [20.0, 20.0]])
    answers = [online.predict_one(x) for x in observations(asked)]
    assert len(set(answers)) == 3
    assert online.predict_one({"x": 1e4, "y": -1e4}) == NEW_CLUSTER
    near = online.predict_proba_one({"x": 0.0, "y": 0.0})
    assert sum(near.values()) == pytest.approx(1.0)
    assert max(near, key=lambda cluster: near[cluster]) == answers[0]
    assert online.score_one({"x": 0.0, "y": 0.0}) > online.score_one({"x": 50.0, "y": 0.0})


def test_an_online_model_refuses_what_is_no_number() -> None:
    with pytest.raises(ObservationError, match="feature 'where' is 'here'"):
        OnlineBayesianClusterer().learn_one({"where": "here"})


@pytest.mark.parametrize(
    ("family", "bad", "fault"),
    [
        ("gaussian", {"x": 1.0, "y": None}, "feature 1 is nan"),
        ("diagonal", {"x": 1e200, "y": 1.0}, r"feature 0 is 1e\+200"),
    ],
)
def test_an_observation_refused_at_the_end_of_a_warm_up_does_not_stop_a_model(
    rng: np.random.Generator, family: str, bad: dict[str, Any], fault: str
) -> None:
    """Each call was refused for ever, for what waited in it could not leave."""
    values, _ = blobs(rng, 60)
    stream = list(observations(values))
    online = OnlineBayesianClusterer(family, warmup=20)
    for x in [*stream[:5], bad, *stream[5:18]]:
        online.learn_one(x)
    with pytest.raises(ObservationError, match=f"observation 6: {fault}"):
        online.learn_one(stream[18])
    for x in stream[18:]:
        online.learn_one(x)
    other = OnlineBayesianClusterer(family, warmup=20)
    other.learn_many(pd.DataFrame(stream))
    assert [online.score_one(x) for x in stream] == [other.score_one(x) for x in stream]


def test_of_many_rows_all_are_learned_or_none(rng: np.random.Generator) -> None:
    table = pd.DataFrame(blobs(rng, 60)[0], columns=["x", "y"])
    spoiled = table.copy()
    spoiled.loc[40, "y"] = 1e99
    online = OnlineBayesianClusterer(warmup=20)
    for _ in range(2):
        with pytest.raises(ObservationError, match=r"observation 41: feature 1 is 1e\+99"):
            online.learn_many(spoiled)
        assert online.n_clusters == 0
    with pytest.raises(ObservationError, match="'x' is inf, not a finite number"):
        online.learn_one({"x": np.inf})


def test_a_column_that_comes_after_the_warm_up_is_left_out(rng: np.random.Generator) -> None:
    table = pd.DataFrame(blobs(rng, 60)[0], columns=["x", "y"])
    online = OnlineBayesianClusterer(warmup=20)
    online.learn_many(table[:40])
    wider = table[40:].assign(note="late")
    online.learn_many(wider)
    assert (online.predict_many(wider) == online.predict_many(table[40:])).all()
