"""Data frames as the estimators take them: by dtypes and values, through one schema."""

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV

from weald.stream.estimators.bayesian_clusterer import BayesianClusterer
from weald.stream.estimators.frame_schema import FrameSchema, mixed_rows
from weald.stream.estimators.online_clusterer import OnlineBayesianClusterer
from weald.treecore.errors import ObservationError, ParameterError

N = 240
FAMILIES = ["diagonal", "bernoulli", "categorical"]


def orders(rng: np.random.Generator, n: int = N) -> tuple[pd.DataFrame, Any]:
    """Orders of three kinds, with every dtype that a shop would have, and their kinds."""
    kind = rng.integers(0, 3, n)
    country = np.array(["NO", "SE", "DK"])[np.where(rng.random(n) < 0.9, kind, 0)]
    placed = pd.Timestamp("2024-01-01") + pd.to_timedelta(7 * kind + rng.random(n), unit="h")
    frame = pd.DataFrame(
        {
            "size": np.array([1.0, 6.0, 15.0])[kind] + rng.normal(0.0, 0.3, n),
            "country": pd.Categorical(country),
            "express": rng.random(n) < np.array([0.05, 0.5, 0.95])[kind],
            "placed": placed,
            "colour": np.array(["red", "blue", "green"])[rng.integers(0, 3, n)],
        }
    )
    frame.loc[rng.random(n) < 0.1, "size"] = np.nan
    frame.loc[rng.random(n) < 0.1, "country"] = None
    frame.loc[rng.random(n) < 0.1, "placed"] = pd.NaT
    return frame, kind


def in_polars(frame: pd.DataFrame) -> pl.DataFrame:
    """The same table, built from plain values, so that no library converts for the other."""
    columns = {
        name: frame[name].astype(object).where(frame[name].notna(), None).tolist()
        for name in frame.columns
    }
    return pl.DataFrame(columns, schema_overrides={"country": pl.Categorical})


@pytest.fixture(scope="module")
def fitted() -> tuple[pd.DataFrame, Any, BayesianClusterer]:
    """One model of the orders, which nobody changes."""
    frame, kind = orders(np.random.default_rng(5))
    return frame, kind, BayesianClusterer(n_iter=20, n_chains=1, random_state=0).fit(frame)


Fitted = tuple[pd.DataFrame, Any, BayesianClusterer]


def test_a_mixed_frame_is_clustered_by_its_kinds_of_columns(fitted: Fitted) -> None:
    frame, kind, model = fitted
    assert model.family_ == "mixed"
    assert [part["family"] for part in model._params["parts"]] == FAMILIES
    assert list(model.columns_) == list(model.feature_names_in_) == list(frame.columns)
    assert model.columns_["express"] == "a flag: yes or no in every record"
    assert model.columns_["placed"].startswith(
        "a time: its place in the day and in the week; empty"
    )
    assert model.n_features_in_ == 5
    # Kinds are parts of clusters: a cluster is of one kind.
    of = pd.crosstab(model.labels_, kind)
    assert of.max(axis=1).sum() / N > 0.97


def test_polars_and_pandas_give_the_same_labels(fitted: Fitted) -> None:
    frame, _, model = fitted
    table = in_polars(frame)
    other = BayesianClusterer(n_iter=20, n_chains=1, random_state=0).fit(table)
    assert (other.labels_ == model.labels_).all()
    assert other.columns_ == model.columns_
    assert (other.predict_proba(table) == model.predict_proba(frame)).all()


def test_new_rows_may_have_what_was_never_seen(fitted: Fitted) -> None:
    frame, kind, model = fitted
    asked = frame.groupby(kind).first().assign(country=["FI", None, "DK"])
    before = frame.groupby(kind).first()
    answers = model.predict(asked)
    assert len(set(answers)) == 3
    assert model.predict_proba(asked).sum(axis=1) == pytest.approx(1.0)
    # A country that nobody came from is less probable than one that many did.
    assert model.score_samples(asked)[0] < model.score_samples(before)[0]
    # An empty column is no text any more for pandas.
    nothing = asked.assign(country=np.nan, colour=np.nan, express=np.nan, placed=np.nan)
    assert np.isfinite(model.score_samples(nothing)).all()


def test_results_are_told_as_they_came_in_and_never_collide(fitted: Fitted) -> None:
    _, _, model = fitted
    clusters = model.clusters()
    assert list(clusters.columns) == [
        "size",
        "share",
        "size.centre",
        "size.spread",
        "country.commonest",
        "express.share",
        "placed.day",
        "placed.week",
        "colour.commonest",
    ]
    assert clusters["size"].sum() == N
    assert set(clusters["country.commonest"]) <= {"NO", "SE", "DK"}
    assert set(clusters["placed.week"].str[:3]) == {"Mon"}


def test_columns_named_as_the_table_s_own_are_kept_apart(rng: np.random.Generator) -> None:
    names = ["size", "share", "cluster", "size.centre", "size.spread"]
    frame = pd.DataFrame(rng.normal(size=(60, 5)), columns=names)
    clusters = BayesianClusterer("diagonal", n_iter=5, n_chains=1, random_state=0).fit(frame)
    told = clusters.clusters()
    assert told.columns.is_unique
    assert told["size"].sum() == 60
    mean = (told["size.centre.centre"] * told["share"]).sum()
    assert mean == pytest.approx(frame["size.centre"].mean())


def test_vectors_are_told_number_by_number(rng: np.random.Generator) -> None:
    vectors = rng.normal(size=(40, 3)) + 9.0 * rng.integers(0, 2, (40, 1))
    frame = pd.DataFrame({"x": list(vectors), "x.0": rng.normal(size=40)})
    model = BayesianClusterer("diagonal", n_iter=10, n_chains=1, random_state=0).fit(frame)
    table = pl.DataFrame({"x": vectors.tolist(), "x.0": frame["x.0"].to_list()})
    same = BayesianClusterer("diagonal", n_iter=10, n_chains=1, random_state=0).fit(table)
    assert (same.labels_ == model.labels_).all()
    told = model.clusters()
    assert list(told.columns[2:5]) == ["x.centre.0", "x.spread.0", "x.centre.1"]
    assert told.columns.is_unique
    assert (told["x.centre.2"] * told["share"]).sum() == pytest.approx(vectors[:, 2].mean())


def test_a_model_of_a_frame_travels_and_asks_for_its_columns(fitted: Fitted) -> None:
    frame, _, model = fitted
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    assert (again.predict(frame) == model.predict(frame)).all()
    with pytest.raises(ObservationError, match=r"fitted on a data frame.*size, country"):
        model.predict(np.zeros((2, 5)))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"size": "weight"}))


def test_set_output_makes_a_frame_of_a_transform(fitted: Fitted) -> None:
    frame, _, model = fitted
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    plain = again.transform(frame)
    names = [*(f"cluster_{cluster}" for cluster in model.clusters_), "new_cluster"]
    shown = again.set_output(transform="pandas").transform(frame)
    assert list(shown.columns) == names == again.get_feature_names_out().tolist()
    assert (shown.to_numpy() == plain).all()
    assert (shown.index == frame.index).all()
    table = again.set_output(transform="polars").transform(frame)
    assert isinstance(table, pl.DataFrame)
    assert table.columns == names
    # scikit-learn leaves predictions as arrays, whatever is set.
    assert isinstance(again.predict(frame), np.ndarray)


def test_a_stream_of_frames_keeps_its_schema(rng: np.random.Generator) -> None:
    frame, kind = orders(rng)
    model = BayesianClusterer(refine_every=60, random_state=0)
    for start in range(0, N, 60):
        model.partial_fit(frame[start : start + 60])
    assert model.family_ == "mixed"
    of = pd.crosstab(model.labels_, kind)
    assert of.max(axis=1).sum() / N > 0.95


def test_a_search_reaches_the_concentration(rng: np.random.Generator) -> None:
    values = np.concatenate([rng.normal(at, 1.0, (40, 2)) for at in (0.0, 12.0)])
    table = pl.DataFrame(rng.permutation(values), schema=["x", "y"])
    model = BayesianClusterer(
        "diagonal", learn_hyper=False, n_iter=20, n_chains=1, init="one", random_state=0
    )
    search = GridSearchCV(model, {"alpha": np.array([1e-3, 1e3])}, cv=3).fit(table)
    # With so high a concentration nearly every point is by itself, and predicts no other.
    assert search.best_params_ == {"alpha": 1e-3}
    low, high = search.cv_results_["mean_test_score"]
    assert low > high + 0.5
    assert search.best_estimator_.result_.prior.parameters()["alpha"] == 1e-3
    assert search.best_estimator_.n_clusters_ == 2
    again = search.best_estimator_.set_params(alpha=2.0, prior="pitman-yor", discount=0.25)
    learned = again.fit(table).result_.prior.parameters()
    assert (learned["alpha"], learned["discount"]) == (2.0, 0.25)


def test_a_parameter_is_given_once() -> None:
    model = BayesianClusterer(alpha=1.0, prior_params={"alpha": 2.0})
    with pytest.raises(ParameterError, match="alpha is given twice"):
        model.fit(np.zeros((4, 2)))


@pytest.mark.parametrize("of", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_counts_are_what_dense_ones_are(rng: np.random.Generator, of: Any) -> None:
    words = rng.dirichlet(np.full(30, 0.1), size=3)
    topic = rng.integers(0, 3, 90)
    counts = np.array([rng.multinomial(40, words[each]) for each in topic], dtype=np.float64)
    model = BayesianClusterer("multinomial", n_iter=10, n_chains=1, random_state=0)
    model.fit(of(counts))
    assert adjusted_rand_score(topic, model.labels_) > 0.95
    np.testing.assert_allclose(model.predict_proba(of(counts)), model.predict_proba(counts))
    assert model.clusters()["x0.centre"].notna().all()
    assert "x0.spread" not in model.clusters()
    model.partial_fit(of(counts[:5]))
    assert len(model.labels_) == 95
    with pytest.raises(TypeError, match="Sparse data was passed"):
        BayesianClusterer("poisson").fit(of(counts))


def test_what_is_left_out_is_said(rng: np.random.Generator) -> None:
    frame, _ = orders(rng, 60)
    frame = frame.assign(
        order=[f"o{at}" for at in range(60)],
        note=None,
        shop=pd.Categorical(["Oslo"] * 60),
        customer=pd.Categorical([f"c{at}" for at in range(60)]),
    )
    rows = mixed_rows(frame)
    assert rows is not None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = FrameSchema.inferred(rows)
    said = {str(each.message) for each in caught}
    assert said == {
        "column 'order' is not clustered by: left out: names, 60 different in 60 records",
        "column 'note' is not clustered by: left out: empty in every record",
        "column 'shop' is not clustered by: left out: the same in every record",
        "column 'customer' is not clustered by: left out: names, 60 different in 60 records",
    }
    assert [field.name for field in found.settings.fields] == list(frame.columns[:5])


def test_what_a_frame_cannot_be_is_refused_in_words(rng: np.random.Generator) -> None:
    frame, _ = orders(rng, 60)
    with pytest.raises(ParameterError, match="'country' is a category, which family gaussian"):
        BayesianClusterer("gaussian").fit(frame)
    with pytest.raises(ObservationError, match="no rows"):
        BayesianClusterer().fit(frame[:0])
    with pytest.raises(ObservationError, match="two columns of the data frame are called 'size'"):
        BayesianClusterer().fit(frame.rename(columns={"country": "size"}))
    with pytest.raises(ObservationError, match="no field holds anything to cluster by"):
        BayesianClusterer().fit(pd.DataFrame({"name": list("abcdef")}))
    with pytest.raises(ObservationError, match="dictionary, not a DataFrame: learn_many takes"):
        OnlineBayesianClusterer().learn_one(frame)
    with pytest.raises(ObservationError, match="data frame of pandas or Polars, not a ndarray"):
        OnlineBayesianClusterer().learn_many(np.zeros((3, 2)))


def test_a_stream_of_frames_is_clustered_by_its_kinds_of_columns(rng: np.random.Generator) -> None:
    frame, kind = orders(rng)
    model, other = (OnlineBayesianClusterer(warmup=100, refine_every=80) for _ in range(2))
    for start in range(0, N, 60):
        model.learn_many(frame[start : start + 60])
    found = model.predict_many(frame)
    of = pd.crosstab(found, kind)
    assert of.max(axis=1).sum() / N > 0.97
    # How rows are cut into calls changes nothing, nor does the library or who asks for one.
    other.learn_many(in_polars(frame))
    assert (other.predict_many(in_polars(frame)) == found).all()
    known = {"size": 6.0, "country": "SE", "express": None, "colour": "red"}
    assert other.predict_one(known) == model.predict_one(known)
    assert model.score_one({**known, "size": 9.0}) < model.score_one(known) - 5.0
    # Without its size it is as before, but for what the size said.
    unsized = {name: value for name, value in known.items() if name != "size"}
    assert model.predict_one(unsized) == model.predict_one({**known, "size": None})
    with pytest.raises(ParameterError, match="'country' is a category, which family diagonal"):
        OnlineBayesianClusterer("diagonal", warmup=20).learn_many(frame)


def test_a_frame_of_numbers_is_learned_as_its_rows_are(rng: np.random.Generator) -> None:
    values = rng.normal(size=(90, 2)) + np.repeat([0.0, 9.0], 45)[:, None]
    frame = pd.DataFrame(values, columns=["x", "y"]).sample(frac=1.0, random_state=0)
    many, one = (OnlineBayesianClusterer(warmup=30, refine_every=40) for _ in range(2))
    assert (many.predict_many(frame[:2]) == 0).all()
    many.learn_many(frame[:50])
    many.learn_many(frame[50:])
    for record in frame.to_dict("records"):
        one.learn_one(record)
    asked: list[dict[Any, Any]] = [{"x": 0.0, "y": 1.0}, {"x": 9.0, "y": None}]
    assert [many.score_one(x) for x in asked] == [one.score_one(x) for x in asked]
    assert many.n_clusters == 2


def test_every_dtype_becomes_a_plain_value() -> None:
    at = pd.Timestamp("2024-05-06T07:08:09", tz="UTC")
    frame = pd.DataFrame(
        {
            "moment": [at, pd.NaT],
            "took": [pd.Timedelta(seconds=90), pd.NaT],
            "whole": pd.array([3, None], dtype="Int64"),
            "sure": pd.array([True, None], dtype="boolean"),
            "word": ["a", None],
            "level": pd.Categorical([7, None]),
        }
    )
    rows = mixed_rows(frame)
    assert rows is not None
    assert rows.categories == {"level"}
    first, second = rows.records
    assert first == {
        "moment": "2024-05-06T07:08:09+00:00",
        "took": 90.0,
        "whole": 3,
        "sure": True,
        "word": "a",
        "level": "7",
    }
    assert set(second.values()) == {None}
    assert mixed_rows(frame[["whole"]]) is None
    table = pl.DataFrame({"level": pl.Series(["x"], dtype=pl.Enum(["x", "y"])), "day": [at.date()]})
    same = mixed_rows(table)
    assert same is not None
    assert same.categories == {"level"}
    assert same.records == [{"level": "x", "day": "2024-05-06"}]
