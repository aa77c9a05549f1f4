"""The engine with River's verbs, from ``learn_one`` on. Needs ``weald[notebook]``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from weald.mcmc.estimate.predictive import Predictive
from weald.mcmc.offline.preparation import without_absurd
from weald.mcmc.offline.transformation import NUMERIC
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.stream.model.mixture_shard import MixtureShard
from weald.stream.model.model import free_shard, refused_rows
from weald.stream.warm_up.family_choice import family_of_rows
from weald.stream.warm_up.stored_family import family_named
from weald.treecore.errors import ObservationError
from weald.treecore.family import FamilySpec, spec_of
from weald.treecore.family.interface.base import Family

from .frame_schema import FrameSchema, MixedRows, mixed_rows
from .named_parameters import prior_parameters

try:
    from river import base
except ImportError as error:
    raise ImportError("this estimator needs River: pip install 'weald[notebook]'") from error

__all__ = ["OnlineBayesianClusterer"]

_BEFORE_WARM_UP = 0
_NEW_CLUSTER = -1
_OF_NUMBERS = "diagonal"


class OnlineBayesianClusterer(base.Clusterer):
    """Bayesian mixture of a stream of dictionaries, with no number of clusters to choose.

    The first ``warmup`` observations set the hyperparameters that ``params`` leaves open and name
    the features: those seen by then, in any order. A feature that is absent from a later
    observation, or None, is missing, where the family takes missing values; one that was never
    seen before is left out. Values are numbers or flags; in data frames, which ``learn_many``
    takes, also categories, times and texts, as `BayesianClusterer` takes them. After a frame with
    such columns a dictionary may hold them, too.

    Parameters
    ----------
    family
        Likelihood of a cluster: diagonal, gaussian, gamma, bernoulli, categorical, multinomial,
        poisson, negative-binomial, mixed; auto goes by the kinds of a frame's columns, and is
        diagonal for numbers, any of which may be missing later. All but gaussian and multinomial
        take missing values; where numbers go together within clusters and none is missing,
        gaussian tells them better.
    params
        Its hyperparameters; what is not given comes from the first observations.
    prior
        Prior of the partition: dp, pitman-yor, nggp, mfm, emm.
    prior_params
        Its parameters, such as ``{"gamma": 1.0}``.
    alpha, discount, sigma
        Parameters of the prior by their own names: the concentration, the discount of pitman-yor
        and the index of nggp. They are learned from there.
    warmup
        Observations that are awaited before the first cluster.
    refine_every
        Observations between two refinements of the partition.
    rounds
        Rounds of every kernel in one refinement.
    seed
        Same seed, same clusters.

    Examples
    --------
    >>> from weald.stream.estimators.online_clusterer import OnlineBayesianClusterer
    >>> model = OnlineBayesianClusterer(warmup=20)
    >>> for i in range(60):
    ...     model.learn_one({"x": 9.0 * (i % 2) + 0.1 * (i % 7), "y": 0.1 * (i % 5)})
    >>> model.predict_one({"x": 0.2, "y": 0.1}) == model.predict_one({"x": 9.1, "y": 0.1})
    False
    """

    def __init__(  # noqa: PLR0913 - one argument for each thing to choose
        self,
        family: str = "auto",
        params: dict[str, Any] | None = None,
        prior: str = "dp",
        prior_params: dict[str, Any] | None = None,
        warmup: int = 100,
        refine_every: int = 500,
        rounds: int = 10,
        seed: int = 0,
        alpha: float | None = None,
        discount: float | None = None,
        sigma: float | None = None,
    ) -> None:
        self.family = family
        self.params = params
        self.prior = prior
        self.prior_params = prior_params
        self.warmup = warmup
        self.refine_every = refine_every
        self.rounds = rounds
        self.seed = seed
        self.alpha = alpha
        self.discount = discount
        self.sigma = sigma
        self._waiting: list[dict[Any, Any]] = []
        # Of frames with more than numbers in them: columns that their dtypes call categories, and
        # what the columns were taken for when the warm-up was over.
        self._categories: set[str] | None = None
        self._frame: FrameSchema | None = None
        self._features: tuple[Any, ...] = ()
        self._shard: MixtureShard | None = None
        self._predictive: Predictive | None = None

    @property
    def n_clusters(self) -> int:
        """Clusters so far; 0 before the warm-up is over."""
        return 0 if self._shard is None else len(self._shard.table)

    def learn_one(self, x: dict[Any, Any]) -> None:
        """Insert one observation, and refine the partition when ``refine_every`` have passed.

        Raises
        ------
        ObservationError
            If `x` is no dictionary, a value is not a finite number, or the family cannot take it;
            nothing is learned then. When the warm-up is over, those that came before and that the
            family cannot take are named so, too: they are left out, and `x` may be given again.
        """
        self._learn([self._read(x)])

    def learn_many(self, X: Any) -> None:
        """Insert the rows of a data frame of pandas or Polars, in order.

        It is the same as to insert them one by one. Where columns are more than numbers, those of
        the warm-up are read as `weald init` reads a sample, with gaps where something is missing.

        Raises
        ------
        ObservationError
            If `X` is no data frame, it has nothing to cluster by, or the family cannot take a row;
            no row is learned then. Of what came before, see `learn_one`.
        """
        rows = self._rows(X)
        if self._shard is None and mixed_rows(X) is not None:
            self._categories = (self._categories or set()) | rows.categories
        self._learn([self._read(record) for record in rows.records])

    def predict_many(self, X: Any) -> NDArray[np.int64]:
        """Most probable cluster of each row of a data frame, as `predict_one` has it."""
        records = [self._read(record) for record in self._rows(X).records]
        log_joint = self._log_joint(records)
        if log_joint is None or self._predictive is None:
            return np.full(len(records), _BEFORE_WARM_UP)
        ids = np.append(self._predictive.clusters, _NEW_CLUSTER)
        answers: NDArray[np.int64] = ids[np.argmax(log_joint, axis=1)]
        return answers

    def predict_one(self, x: dict[Any, Any]) -> int:
        """Return the most probable cluster; -1 where a new one is more probable than any.

        Before the warm-up is over everything is in cluster 0. Afterwards a cluster keeps its
        number for as long as it lives.
        """
        log_joint = self._log_joint([self._read(x)])
        if log_joint is None or self._predictive is None:
            return _BEFORE_WARM_UP
        return int(np.append(self._predictive.clusters, _NEW_CLUSTER)[np.argmax(log_joint)])

    def predict_proba_one(self, x: dict[Any, Any]) -> dict[int, float]:
        """Return the probability of each cluster, and under -1 that of a new one."""
        log_joint = self._log_joint([self._read(x)])
        if log_joint is None or self._predictive is None:
            return {_BEFORE_WARM_UP: 1.0}
        probability = np.exp(log_joint[0] - logsumexp(log_joint))
        ids = [*self._predictive.clusters.tolist(), _NEW_CLUSTER]
        return dict(zip(ids, probability.tolist(), strict=True))

    def score_one(self, x: dict[Any, Any]) -> float:
        """Return the log predictive density: low for an observation unlike anything seen.

        NaN before the warm-up is over.
        """
        log_joint = self._log_joint([self._read(x)])
        return float("nan") if log_joint is None else float(logsumexp(log_joint))

    def __rich_repr__(self) -> Iterator[Any]:
        yield from self._get_params().items()
        yield "n_clusters", self.n_clusters

    def _learn(self, records: Sequence[dict[Any, Any]]) -> None:
        if self._shard is not None:
            self._insert(self._shard, records)
            return
        n_first = max(self.warmup - len(self._waiting), 1)
        first = [*self._waiting, *records[:n_first]]
        if len(first) < self.warmup:
            self._waiting = first
            return
        shard = self._begun(first)
        # What comes behind the warm-up may be refused, too, and then nothing is learned.
        self._insert(shard, records[n_first:])
        self._shard, self._waiting = shard, []

    def _begun(self, first: Sequence[dict[Any, Any]]) -> MixtureShard:
        """A shard with the observations of the warm-up in it."""
        if self._categories is None:
            # Dictionaries that differ in order only are the same observation.
            names = {name for each in first for name in each}
            self._features = tuple(sorted(names, key=str))
        else:
            self._frame = FrameSchema.inferred(MixedRows(first, frozenset(self._categories)))
        sample = self._values(first)
        family, known = self._chosen(sample)
        model = ModelSettings(
            family=family,
            params={**known, **(self.params or {})},
            prior=self.prior,
            prior_params=prior_parameters(self),
            seed=self.seed,
        )
        cadence = RefinementSettings(self.refine_every, self.refine_every, self.rounds)
        # Before the base measure is learned from what the family cannot take, and then as learned.
        told_by = without_absurd(sample) if family in NUMERIC else sample
        kind = family_named(family)
        self._refuse_of_warm_up(kind, kind.build(model.params, told_by), sample)
        shard = free_shard(model, cadence, sample)
        self._refuse_of_warm_up(kind, shard.first_family, sample)
        self._insert(shard, first)
        return shard

    def _refuse_of_warm_up(
        self, kind: FamilySpec[Any], family: Family, sample: NDArray[np.float64]
    ) -> None:
        """Raise where a family cannot take all of (n, d); what waits of them waits no longer.

        It would be refused again by every call to come.
        """
        refused = refused_rows(kind, family, sample)
        if refused:
            self._waiting = [x for at, x in enumerate(self._waiting) if at not in refused]
            raise _told(refused, 0)

    def _chosen(self, sample: NDArray[np.float64]) -> tuple[str, dict[str, Any]]:
        """Family and what is known of its parameters, for observations (n, d) of the warm-up."""
        if self._frame is None:
            return _OF_NUMBERS if self.family == "auto" else self.family, {}
        family, known = family_of_rows(self._frame.schema, sample, self.family)
        if self.family not in ("auto", "mixed"):
            return family, known
        # A number may be missing later that never was before.
        for part in known.get("parts", ()):
            if part["family"] == "gaussian":
                part["family"] = _OF_NUMBERS
        return _OF_NUMBERS if family in ("auto", "gaussian") else family, known

    def _insert(self, shard: MixtureShard, records: Sequence[dict[Any, Any]]) -> None:
        if not records:
            return
        values = self._values(records)
        refused = refused_rows(spec_of(shard.first_family), shard.first_family, values)
        if refused:
            raise _told(refused, shard.seq)
        shard.apply(values, time.time())
        self._predictive = None

    def _log_joint(self, records: Sequence[dict[Any, Any]]) -> NDArray[np.float64] | None:
        """Log joint (q, k + 1) of each cluster, and last of a new one; None before the warm-up."""
        shard = self._shard
        if shard is None:
            return None
        if self._predictive is None:
            table = shard.table.state()
            chain = shard.chain
            # The service counts clusters from 1, River from 0.
            self._predictive = replace(
                Predictive.of(chain.family, chain.prior, table["ids"] - 1, table["totals"]),
                takes=shard.first_family,
            )
        return self._predictive.log_joint(self._values(records))

    def _values(self, records: Sequence[dict[Any, Any]]) -> NDArray[np.float64]:
        """Features (n, d) of observations."""
        if self._frame is not None:
            return self._frame.values(MixedRows(records, frozenset()))
        rows = [[record.get(name, np.nan) for name in self._features] for record in records]
        return np.array(rows, dtype=np.float64)

    def _read(self, x: Mapping[Any, Any]) -> dict[Any, Any]:
        """An observation: numbers by name, or plain values where columns are more than numbers."""
        if self._categories is not None and isinstance(x, Mapping):
            return dict(x)
        if self._shard is not None and isinstance(x, Mapping):
            # What was never seen before is left out, whatever it is.
            x = {name: x[name] for name in self._features if name in x}
        return _numbers(x)

    def _rows(self, X: Any) -> MixedRows:
        rows = mixed_rows(X, numbers=True)
        if rows is None:
            raise ObservationError(
                f"many observations are a data frame of pandas or Polars, not a {type(X).__name__}"
            )
        return rows


def _told(refused: Mapping[int, str], seen: int) -> ObservationError:
    """The first refusal in words, of observations that come after so many."""
    at = min(refused)
    return ObservationError(f"observation {seen + at + 1}: {refused[at]}")


def _numbers(x: Mapping[Any, Any]) -> dict[Any, float]:
    if not isinstance(x, Mapping):
        raise ObservationError(
            f"one observation is a dictionary, not a {type(x).__name__}: learn_many takes data "
            "frames"
        )
    found = {}
    for name, value in x.items():
        try:
            found[name] = np.nan if value is None else float(value)
        except (TypeError, ValueError) as error:
            raise ObservationError(
                f"feature {name!r} is {value!r}, not a number: learn_many takes data frames with "
                "categories, times and texts"
            ) from error
        if np.isinf(found[name]):
            # In a warm-up it would say how wide clusters are before any family could refuse it.
            raise ObservationError(f"feature {name!r} is {value!r}, not a finite number")
    return found
