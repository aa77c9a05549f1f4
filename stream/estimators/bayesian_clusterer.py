"""The engine as a scikit-learn estimator: the same model and kernels, driven by calls.

``fit`` samples the posterior of one batch offline; ``partial_fit`` does what the service does with
a stream, so that clusters keep their numbers and have a lineage. Needs ``weald[notebook]``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from weald.mcmc.estimate.predictive import Predictive
from weald.mcmc.offline.chains import POPULATION, chains_for
from weald.mcmc.offline.copies import are_originals, originals_seen, place_of_original
from weald.mcmc.offline.family_choice import choose_family
from weald.mcmc.offline.fit import (
    SPARSE_FAMILY,
    ChainTrace,
    FitResult,
    FitSettings,
    combine,
    ground_of,
    is_population,
    kernels_of,
    run_chain,
    run_population,
)
from weald.mcmc.offline.fit_groups import groups_of_fit
from weald.mcmc.schedule.kernels import KERNELS, require_every_partition
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.stream.model.model import free_shard
from weald.stream.model.shard import Shard
from weald.stream.publication.publication import LineageEvent
from weald.stream.warm_up.family_choice import family_of_rows
from weald.treecore.errors import ObservationError
from weald.treecore.family.totals import totals_of_groups

from .frame_schema import FrameSchema, mixed_rows
from .named_parameters import prior_parameters

try:
    from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError("this estimator needs scikit-learn: pip install 'weald[notebook]'") from error

if TYPE_CHECKING:
    import arviz
    import pandas as pd

__all__ = ["NEW_CLUSTER", "BayesianClusterer"]

# What predict answers where a new cluster is more probable than any: it also picks the last column
# of predict_proba.
NEW_CLUSTER = -1
_ALL_PRESENT = ("gaussian", "multinomial")
_LARGEST_SEED = 2**31 - 1
_SPARSE_CHUNK = 4096


def _threads(n_jobs: int | None) -> int:
    """How many, as scikit-learn has it: -1 is all processors, -2 all but one."""
    processors, asked = os.cpu_count() or 1, n_jobs or -1
    return asked if asked > 0 else max(processors + 1 + asked, 1)


class BayesianClusterer(ClusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # untyped library
    """Bayesian mixture with no number of clusters to choose, sampled by exact kernels.

    Observations are a matrix of numbers, a sparse one of counts for ``multinomial``, or a data
    frame of pandas or Polars. A frame with more than numbers in it is read as `weald init` reads
    a sample: categories, flags, counts, times, texts and numbers, by dtypes and values, with gaps
    where something is missing; ``columns_`` says what each column is taken for.

    Rows that are exact copies of others, where that does not happen by chance, ``fit`` sees once,
    unless ``params`` say what clusters are like: they are in their original's cluster.

    Parameters
    ----------
    family : str
        Likelihood of a cluster: gaussian, diagonal, gamma, bernoulli, categorical, multinomial,
        poisson, negative-binomial, mixed; auto goes by the kinds of a frame's columns, and for
        numbers takes gaussian or diagonal, whichever predicts held-out rows better. All but
        gaussian and multinomial take missing values (NaN).
    params : dict, optional
        Its hyperparameters; what is not given comes from the data.
    prior : str
        Prior of the partition: dp, pitman-yor, nggp, mfm, emm.
    prior_params : dict, optional
        Its parameters, such as ``{"gamma": 1.0}``.
    alpha, discount, sigma : float, optional
        Parameters of the prior by their own names, for searches: the concentration, the discount
        of pitman-yor and the index of nggp (of emm the spread of log K). Where they are learned
        they are the start.
    learn_hyper : bool
        Whether the prior's parameters are learned.
    kernels : str
        Comma-joined kernels of a sweep; ``auto`` are exact and mix well. Those that take guides
        from other chains (accord, arm, sarm, bsm) run with others beside them, such as
        ``gibbs,arm``, in 8 chains unless ``n_chains`` says otherwise, 4 at least.
    init : str
        Start of ``fit``: auto, ibhc, one, singletons or random:K. By auto chains start with IBHC's
        trees and, of numbers, with clusters of k-means in turn.
    n_iter : int
        Sweeps of each chain of ``fit``.
    n_chains : int, optional
        Independent chains of ``fit``; by default four for small data, two, or one. One that
        predicts rows clearly worse than the best has no say.
    consensus : str
        Partition reported by ``fit``: of least expected vi or binder loss, or map.
    refine_every : int
        In ``partial_fit``, observations between two refinements of the partition.
    rounds : int
        In ``partial_fit``, rounds of every kernel in one refinement.
    n_jobs : int, optional
        Chains that run at a time, on threads; -1 or None for as many as there are processors.
    random_state : int, RandomState or None
        Same number, same result.

    Attributes
    ----------
    labels_ : ndarray of int64, shape (n,)
        Cluster of every observation: of ``fit``, or of all calls of ``partial_fit``.
    clusters_ : ndarray of int64, shape (k,)
        The numbers in ``labels_``, ascending: 0 to k - 1 after ``fit``; after ``partial_fit`` a
        cluster keeps its number while it lives, and no number is used again.
    probabilities_, stability_ : ndarray of float64, shape (n,)
        After ``fit`` only: the share of draws in which the observation is in its cluster, and its
        mean probability of being with the cluster's other members.
    family_ : str
        The family; with ``family="auto"`` the one that was chosen.
    columns_ : dict of str to str
        Of a data frame with more than numbers in it only: what each column is taken for, or why
        it is left out.
    groups_ : ndarray of int64, shape (n,)
        After ``fit`` only: groups of clusters between which density has no valley.
    result_ : FitResult
        After ``fit`` only: draws and traces, of the observations that are no copies.
    n_clusters_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Names of the columns of the data frame that was fitted.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.concatenate([np.random.default_rng(0).normal(m, 1, (40, 2)) for m in (0, 9)])
    >>> model = BayesianClusterer(n_iter=20, random_state=0).fit(X)
    >>> model.n_clusters_, model.predict([[0.0, 0.0], [9.0, 9.0]])
    (2, array([0, 1]))
    """

    _frame: FrameSchema | None

    def __init__(  # noqa: PLR0913 - one argument for each thing to choose
        self,
        family: str = "auto",
        *,
        params: dict[str, Any] | None = None,
        prior: str = "dp",
        prior_params: dict[str, Any] | None = None,
        alpha: float | None = None,
        discount: float | None = None,
        sigma: float | None = None,
        learn_hyper: bool = True,
        kernels: str = "auto",
        init: str = "auto",
        n_iter: int = 100,
        n_chains: int | None = None,
        consensus: str = "vi",
        refine_every: int = 500,
        rounds: int = 10,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.family = family
        self.params = params
        self.prior = prior
        self.prior_params = prior_params
        self.alpha = alpha
        self.discount = discount
        self.sigma = sigma
        self.learn_hyper = learn_hyper
        self.kernels = kernels
        self.init = init
        self.n_iter = n_iter
        self.n_chains = n_chains
        self.consensus = consensus
        self.refine_every = refine_every
        self.rounds = rounds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 - scikit-learn's shape
        """Sample the posterior of these observations (n, d) and report one partition.

        Parameters
        ----------
        X : array, sparse matrix, or data frame of pandas or Polars
        y : ignored

        Raises
        ------
        ParameterError
            For a setting that no model can have.
        ObservationError
            For a row that the family cannot take, or a data frame with nothing to cluster by.
            Both are ValueErrors.
        """
        everyone = self._values(X, reset=True)
        original = originals_seen(everyone, self.family, self.params or {})
        once = are_originals(original)
        values = everyone if once.all() else everyone[once]
        self._choose_family(values)
        settings = self._fit_settings(chains_for(*values.shape))
        require_every_partition(kernels_of(settings))
        result = combine(settings, self._traces(values, settings), values)
        self.result_: FitResult = result
        self._begun = everyone
        self._shard: Shard | None = None
        self._lineage: list[LineageEvent] = []
        place = place_of_original(original)
        self.labels_: NDArray[np.int64] = result.labels[place]
        self.probabilities_ = result.probability[place]
        self.stability_ = result.stability[place]
        groups = groups_of_fit(result, values)
        self.groups_: NDArray[np.int64] = groups.group[self.labels_]
        totals = totals_of_groups(result.family, values, result.labels, result.n_clusters)
        ids = np.arange(result.n_clusters, dtype=np.int64)
        found = Predictive.of(result.family, result.prior, ids, totals)
        self._show(replace(found, takes=result.traces[0].first))
        return self

    def partial_fit(self, X: Any, y: object = None) -> Self:  # noqa: ARG002 - as above
        """Insert the next observations (n, d) of a stream, and refine when ``refine_every`` passed.

        The first call sets the hyperparameters that ``params`` leaves open, and what the columns
        of a data frame are taken for, so it should be given some hundred observations. How later
        ones are cut into calls changes nothing. After ``fit``, the stream begins with what was
        fitted. Raises as ``fit``.
        """
        begun = hasattr(self, "clusters_")
        values = self._values(X, reset=not begun)
        if not begun or self._shard is None:
            first = _dense(self._begun if begun else values)
            if not begun:
                self._choose_family(values)
            self._begin(first)
            if begun:
                self._apply(first)
        self._apply(_dense(values))
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Most probable cluster of each row; -1 where a new cluster is more probable than any."""
        best = np.argmax(self._log_joint(X), axis=1)
        answers: NDArray[np.int64] = np.append(self.clusters_, NEW_CLUSTER)[best]
        return answers

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Probability of each of ``clusters_``, and last of a new one, as `predict_proba`.

        ``set_output`` makes a data frame of it, as of any transformer of scikit-learn.
        """
        return self.predict_proba(X)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:  # noqa: ARG002 - as above
        """Names of what `transform` gives: cluster_0, cluster_1, ..., new_cluster."""
        check_is_fitted(self)
        names = [f"cluster_{cluster}" for cluster in self.clusters_.tolist()]
        return np.array([*names, "new_cluster"], dtype=object)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each of ``clusters_``, and last of a new one: shape (q, k + 1)."""
        log_joint = self._log_joint(X)
        probability: NDArray[np.float64] = np.exp(
            log_joint - logsumexp(log_joint, axis=1, keepdims=True)
        )
        return probability

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Log predictive density of each row: low for one unlike anything seen."""
        density: NDArray[np.float64] = logsumexp(self._log_joint(X), axis=1)
        return density

    def score(self, X: Any, y: object = None) -> float:  # noqa: ARG002 - as above
        """Mean log predictive density, for model selection on held-out rows.

        It is that of the partition that is reported, as all answers here are. `weald fit --test`
        takes the mean of the draws' densities in its place, which is mostly a little higher, and
        sees rows as its table is prepared.
        """
        return float(self.score_samples(X).mean())

    def feature_names(self) -> list[str]:
        """Names of the features: those of the data frame that was fitted, or x0, x1, ...

        Of a frame with more than numbers in it a time has several, and what is left out has none.
        """
        if self._frame is not None:
            return list(self._frame.schema.features)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return [f"x{index}" for index in range(self.n_features_in_)]
        return [str(name) for name in names]

    def assignments(self) -> pd.DataFrame:
        """One row an observation: cluster; after ``fit`` group, probability and stability."""
        from .frames import assignment_frame

        check_is_fitted(self)
        columns = {"group": "groups_", "probability": "probabilities_", "stability": "stability_"}
        certainty = {
            name: getattr(self, attribute)
            for name, attribute in columns.items()
            if hasattr(self, attribute)
        }
        return assignment_frame(self.labels_, certainty)

    def clusters(self) -> pd.DataFrame:
        """One row a cluster, largest first: size, share, and what is typical of each feature.

        Columns of a feature are its name, a point and a word: ``width.centre`` and
        ``width.spread`` of numbers in their own units, ``ok.share`` of flags,
        ``country.commonest`` of categories, ``at.day`` of times; none can be ``size`` or
        ``share``.
        """
        from .frames import cluster_frame

        check_is_fitted(self)
        schema = None if self._frame is None else self._frame.schema
        sizes = np.unique(self.labels_, return_counts=True)[1]
        return cluster_frame(self._predictive, sizes, self.feature_names(), schema)

    def lineage(self) -> pd.DataFrame:
        """Births, splits, merges, moves and ends over the calls of ``partial_fit``, in order."""
        from .frames import lineage_frame

        check_is_fitted(self)
        return lineage_frame(self._lineage)

    def inference_data(self) -> arviz.InferenceData:
        """The chains of ``fit`` for ArviZ: log joint, clusters, hyperparameters, moves."""
        from .inference_data import inference_data

        check_is_fitted(self, "result_")
        return inference_data(self.result_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.family not in _ALL_PRESENT
        tags.input_tags.sparse = self.family == SPARSE_FAMILY
        return tags

    def __rich_repr__(self) -> Iterator[Any]:
        defaults = type(self)().get_params()
        for name, value in self.get_params().items():
            yield name, value, defaults[name]
        if hasattr(self, "clusters_"):
            yield "n_observations", len(self.labels_)
            yield "n_clusters_", self.n_clusters_

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if "result_" in state:
            # Kernels are code, known by name.
            state = {**state, "result_": replace(state["result_"], kernels=())}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "result_" in state:
            result = state["result_"]
            # Those that ran: the parameter may have been set to others since.
            ran = tuple(KERNELS.named(",".join(result.traces[0].tally)))
            state = {**state, "result_": replace(result, kernels=ran)}
        super().__setstate__(state)

    def _values(self, X: Any, *, reset: bool) -> Any:
        """Observations (n, d) as the family takes them; a sparse matrix stays one."""
        if reset:
            rows = mixed_rows(X)
            self._frame = None if rows is None else FrameSchema.inferred(rows)
            self.__dict__.pop("columns_", None)
        else:
            rows = mixed_rows(X, numbers=self._frame is not None)
        if self._frame is None:
            return self._checked(X, reset=reset)
        if rows is None:
            raise ObservationError(
                "the model was fitted on a data frame, so it needs one, with the columns "
                f"{', '.join(self._frame.columns)}"
            )
        validate_data(self, X, reset=reset, skip_check_array=True)
        self.columns_ = self._frame.columns
        return self._frame.values(rows)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        finite = "allow-nan" if self.family not in _ALL_PRESENT else True
        # A copy, because compiled code has one signature and read-only arrays are another type.
        return validate_data(
            self,
            X,
            reset=reset,
            dtype=np.float64,
            order="C",
            copy=True,
            accept_sparse="csr" if self.family == SPARSE_FAMILY else False,
            ensure_all_finite=finite,
        )

    def _choose_family(self, values: Any) -> None:
        self.family_, self._params = self.family, dict(self.params or {})
        if self._frame is not None:
            self.family_, known = family_of_rows(self._frame.schema, values, self.family)
            self._params = {**known, **self._params}
        if self.family_ == "auto":
            settings = self._fit_settings(1)
            self.family_ = choose_family(values, settings, time.perf_counter).family

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(_LARGEST_SEED))

    def _model(self) -> ModelSettings:
        return ModelSettings(
            family=self.family_,
            params=self._params,
            prior=self.prior,
            prior_params=prior_parameters(self),
            learn_hyper=self.learn_hyper,
            seed=self._seed(),
        )

    def _fit_settings(self, chains: int) -> FitSettings:
        return FitSettings(
            family=self.family_,
            params=self._params,
            prior=self.prior,
            prior_params=prior_parameters(self),
            learn_hyper=self.learn_hyper,
            kernels=tuple(name.strip() for name in self.kernels.split(",")),
            init=self.init,
            iterations=self.n_iter,
            chains=self.n_chains or chains,
            seed=self._seed(),
            consensus=self.consensus,
        )

    def _traces(self, values: Any, settings: FitSettings) -> list[ChainTrace]:
        """Chains on observations (n, d): side by side, or together where they guide each other."""
        if is_population(settings):
            settings = replace(settings, chains=self.n_chains or POPULATION)
            return run_population(values, settings, time.perf_counter)
        ground = ground_of(values, settings)

        def one(index: int) -> ChainTrace:
            return run_chain(values, settings, index, time.perf_counter, ground=ground)

        with ThreadPoolExecutor(_threads(self.n_jobs)) as pool:
            return list(pool.map(one, range(settings.chains)))

    def _begin(self, sample: NDArray[np.float64]) -> None:
        cadence = RefinementSettings(self.refine_every, self.refine_every, self.rounds)
        self._shard = free_shard(self._model(), cadence, sample)
        self._lineage = []
        for name in ("probabilities_", "stability_", "groups_", "result_"):
            self.__dict__.pop(name, None)

    def _apply(self, values: NDArray[np.float64]) -> None:
        shard = self._shard
        if shard is None:
            raise AssertionError("begun before anything is applied")
        self._lineage += shard.apply(values, time.time()).lineage
        # The service counts clusters from 1, scikit-learn from 0.
        self.labels_ = shard.clusters - 1
        table, chain = shard.table.state(), shard.chain
        found = Predictive.of(chain.family, chain.prior, table["ids"] - 1, table["totals"])
        self._show(replace(found, takes=shard.first_family))

    def _show(self, predictive: Predictive) -> None:
        self._predictive = predictive
        self.clusters_ = predictive.clusters
        self.n_clusters_ = len(predictive.clusters)

    def _log_joint(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        values = self._values(X, reset=False)
        if isinstance(values, np.ndarray):
            return self._predictive.log_joint(values)
        # Few rows at a time, for they are dense.
        parts = [
            self._predictive.log_joint(_dense(values[start : start + _SPARSE_CHUNK]))
            for start in range(0, values.shape[0], _SPARSE_CHUNK)
        ]
        return np.concatenate(parts)


def _dense(values: Any) -> NDArray[np.float64]:
    dense: NDArray[np.float64] = values if isinstance(values, np.ndarray) else values.toarray()
    return dense
