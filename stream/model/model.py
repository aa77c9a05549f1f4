"""From settings and a first sample to a stream's model, and to the words that SQL keeps of it."""

import logging
import time
from dataclasses import dataclass, field, fields, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.hyperparameters.learner import hyperprior_of, learner_of_hyperprior
from weald.mcmc.offline.base_from_sample import Learned, base_from_sample
from weald.mcmc.offline.family_choice import choose_family as better_family
from weald.mcmc.offline.preparation import without_absurd
from weald.mcmc.offline.transformation import FULL, NUMERIC
from weald.mcmc.relational.chain import NetworkChain
from weald.mcmc.schedule.stream_kernels import kernels_of_networks, require_runnable
from weald.mcmc.settings import FeatureSettings, FitSettings, ModelSettings, RefinementSettings
from weald.storage.commit.commit import REVISED, Arrays, StreamSpec
from weald.storage.commit.parts import part_name
from weald.storage.errors import StreamConflict
from weald.storage.settings import RetentionSettings
from weald.stream.record.schema import Schema
from weald.stream.settings import MemorySettings, SchemaSettings, StreamSettings
from weald.stream.warm_up.family_choice import choose_family
from weald.stream.warm_up.log_moves import moved_before_logarithms
from weald.stream.warm_up.stored_family import family_named, family_of, parameters_over
from weald.stream.warm_up.stored_transformation import (
    learned_from,
    packed,
    refuse_other_features,
    refuse_unsuited,
    sees_components,
    transformation_of,
)
from weald.treecore.errors import ParameterError
from weald.treecore.family import FamilySpec
from weald.treecore.family.interface.base import Family
from weald.treecore.family.product import Product
from weald.treecore.prior import PRIORS, PartitionPrior, build_prior
from weald.treecore.relational.family import IRM

from .leaf_budget import Bounding, leaves_within
from .left_out import Revise
from .mixture_shard import MixtureShard
from .network_shard import NetworkShard
from .part_shard import PartShard
from .shard import Shard

__all__ = [
    "Fitness",
    "StreamConfig",
    "bounded_by_memory",
    "chosen_family",
    "free_shard",
    "new_shard",
    "prior_of",
    "prior_parameters",
    "refused_rows",
    "restored_shard",
    "revision_of",
    "spec_from_sample",
    "spec_on_record",
    "told_of_memory",
]


_log = logging.getLogger(__name__)

AUTO = "auto"
# Columns from which two families are tried.
_COLUMNS_ASKED = 8
_GIB = 2**30


@dataclass(frozen=True)
class StreamConfig:
    """Everything that the settings say of a stream.

    Parameters
    ----------
    stream : StreamSettings
    schema : SchemaSettings
    model : ModelSettings
    refinement : RefinementSettings
    retention : RetentionSettings
    memory : MemorySettings
    features : FeatureSettings
    shard : int, optional
        Which part of the stream is meant, where it has several.
    memory_bytes : int, optional
        Memory that the process may take where `memory` does not say what is kept.
    """

    stream: StreamSettings
    schema: SchemaSettings
    model: ModelSettings
    refinement: RefinementSettings
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    features: FeatureSettings = field(default_factory=FeatureSettings)
    shard: int | None = None
    memory_bytes: int | None = None

    @property
    def name(self) -> str:
        """Name under which SQL has it."""
        return part_name(self.stream.name, self.shard)

    @property
    def cadence(self) -> RefinementSettings:
        """How the model is refined: that of a shard from outside, as by workers."""
        if self.shard is None:
            return self.refinement
        return msgspec.structs.replace(self.refinement, mode="workers")

    def __post_init__(self) -> None:
        if self.stream.duplicate_keys == "update" and self.memory.leaf_budget is not None:
            raise ParameterError(
                'stream.duplicate_keys = "update" takes single observations out of the model, and '
                "memory.leaf_budget lets them become one with others, or samples all that came: "
                "choose one of the two"
            )
        if self.refinement.mode == "workers" and self.memory.bundle_budget is not None:
            raise ParameterError(
                'memory.policy = "bundles" needs refinement.mode = "inline": compaction makes one '
                "atom of many while workers hold them. Windows, half-lives and samples go with "
                "workers"
            )
        Bounding.check(self.memory.leaf_budget, self.refinement.every_records)
        family = chosen_family(self.model, self.schema, self.features)[0]
        refuse_unsuited(self.features, family, Schema.of(self.schema))
        if self.stream.shards > 1:
            _refuse_undivided(self, family)
        if family == IRM.name:
            _refuse_of_network(self)
            kernels_of_networks(self.refinement.kernels)
        else:
            require_runnable(self.refinement.kernels, prior_of(self.model))


def _refuse_of_network(plan: StreamConfig) -> None:
    """Refuse what no network can have; what some cannot, those refuse that know their family."""
    if plan.refinement.mode == "workers":
        raise ParameterError(
            "a network is refined by its writer: all its clusters are coupled, so that none can be "
            'lent to a worker. Set refinement.mode = "inline"'
        )
    if plan.memory.leaf_budget is not None:
        raise ParameterError(
            "memory.leaf_budget is not for networks: vertices are neither compacted nor sampled, "
            "as each has edges of its own. A window bounds the edges"
        )
    if plan.stream.duplicate_keys != "allow":
        raise ParameterError(
            "stream.duplicate_keys: records of a network have no keys. An edge that has come "
            "before changes nothing, or adds to the count where params.counts = true"
        )


def _refuse_undivided(plan: StreamConfig, family: str) -> None:
    """Refuse what a stream in shards cannot be: see the law in ``docs/many-machines.md``."""
    memory = plan.memory
    reasons = {
        f'stream.source = "{plan.stream.source}", which has no partitions to deal out': (
            plan.stream.source != "kafka"
        ),
        'refinement.mode = "workers", whose leases are of one process\'s blocks': (
            plan.refinement.mode == "workers"
        ),
        "records of a network, whose vertices come in several partitions": family == IRM.name,
        "memory.leaf_budget, as no round counts what a budget leaves out": (
            memory.leaf_budget is not None
        ),
        "memory.half_life_records, which would be counted in each shard by itself; "
        "memory.half_life_seconds goes with shards": memory.half_life_records is not None,
        "memory.window_records, which would be counted in each shard by itself; "
        "memory.window_seconds goes with shards": memory.window_records is not None,
    }
    for reason, found in reasons.items():
        if found:
            raise ParameterError(
                f"stream.shards = {plan.stream.shards} does not go with {reason}. Leave one of the "
                "two out"
            )


def spec_from_sample(plan: StreamConfig, sample: NDArray[np.float64]) -> StreamSpec:
    """Say what a new stream is; hyperparameters that the settings leave open follow the sample.

    Parameters
    ----------
    plan : StreamConfig
    sample : ndarray of float64, shape (n, d)
        The first observations, as many as the warm-up asks for.

    Raises
    ------
    ParameterError
        When the settings name a family, a prior or a parameter that does not exist.
    """
    name, params = chosen_family(plan.model, plan.schema, plan.features)
    schema = Schema.of(plan.schema)
    if name in NUMERIC:
        sample = without_absurd(sample)
    learned, words, before = None, None, None
    if plan.features.asks or not plan.model.params:
        learned, words = learned_from(sample, plan.features, name, schema)
    if not plan.model.params:
        sample, before = moved_before_logarithms(schema, sample)
    if learned is not None:
        sample = learned.seen(sample)
        sample = sample[np.isfinite(sample).all(axis=1)]
    if name == FULL:
        along = learned is not None and learned.axes is not None
        name = _better_for(plan.model, sample, always=along)
    begun = Learned(family_named(name).build(params, sample))
    if not plan.model.params:
        begun = base_from_sample(begun.family, prior_of(plan.model), sample)
    moves = begun.moves
    return replace(
        _spec(plan, name, family_named(name).parameters(begun.family)),
        transformation=None if learned is None else packed(learned, plan.features),
        seen_as=words,
        hyperprior=None if begun.learner is None else hyperprior_of(begun.learner),
        resolution=None if moves is None else moves.step.tolist(),
        moves=None if moves is None else moves.law,
        log_steps=None if before is None else before.step.tolist(),
    )


def spec_on_record(plan: StreamConfig, stored: StreamSpec) -> StreamSpec:
    """Say what the settings make of a stored stream: the same, unless somebody changed them."""
    refuse_other_features(plan.features, stored)
    if stored.hyperprior is not None and plan.model.params:
        raise StreamConflict(
            f"stream {stored.name!r} learns its base measure, which model.params would fix. Give "
            "the new stream another name, or leave model.params out"
        )
    learned = transformation_of(stored)
    # One that began without sees many columns as "auto" did before there were features.
    asked = FeatureSettings(components="all") if learned is None else plan.features
    name, params = chosen_family(plan.model, plan.schema, asked)
    two = {name, stored.family} <= set(NUMERIC)
    if plan.model.family == AUTO and (learned is not None or two):
        name = stored.family
    if name != stored.family:
        return _spec(plan, name, params)
    family = family_named(name)
    merged = parameters_over(stored.family_params, plan.model.params)
    width = Schema.of(plan.schema).dimension if learned is None else learned.width
    wanted = _spec(plan, name, family.parameters(family.build(merged, np.empty((0, width)))))
    wanted = replace(
        wanted,
        transformation=stored.transformation,
        seen_as=stored.seen_as,
        hyperprior=stored.hyperprior,
        resolution=stored.resolution,
        moves=stored.moves,
        log_steps=stored.log_steps,
    )
    # The same schema may have been written down by a version that spelt out less, or more.
    same = _schema_of(stored) == _schema_of(wanted)
    return replace(wanted, schema=stored.schema) if same else wanted


def revision_of(plan: StreamConfig, stored: StreamSpec) -> Revise | None:
    """What a stream is to be where columns that it leaves out begin to say something.

    From a sample (n, d) of its records. None where it keeps what it is: where its parameters were
    given, where workers have its clusters or observations become bundles, and in shards.
    """
    inline = plan.refinement.mode == "inline" and plan.memory.bundle_budget is None
    # Another shard would go on seeing the records as before.
    whole = stored.shard is None
    if plan.model.params or not (inline and whole) or stored.transformation is None:
        return None

    def revised(sample: NDArray[np.float64]) -> StreamSpec:
        found = spec_from_sample(plan, sample)
        return replace(stored, **{name: getattr(found, name) for name in REVISED})

    return revised


def bounded_by_memory(plan: StreamConfig, spec: StreamSpec, *, bundled: bool) -> MemorySettings:
    """What the stream's model keeps: what its settings say, or as much as there is memory for.

    Parameters
    ----------
    plan : StreamConfig
    spec : StreamSpec
        What the stream is.
    bundled : bool
        Whether observations have become one with others under a budget that is no more.
    """
    n_bytes = plan.memory_bytes
    if n_bytes is None or not plan.memory.says_nothing or _holds_all(plan, spec, bundled=bundled):
        return plan.memory
    every = plan.refinement.every_records
    return MemorySettings(leaf_budget=leaves_within(n_bytes, family_of(spec), every))


def _holds_all(plan: StreamConfig, spec: StreamSpec, *, bundled: bool) -> bool:
    """Whether no sample of this stream can be held: for why not, see what refuses a budget."""
    replaces, in_shards = plan.stream.duplicate_keys == "update", plan.stream.shards > 1
    return replaces or in_shards or bundled or spec.family == IRM.name


def told_of_memory(plan: StreamConfig, memory: MemorySettings) -> str | None:
    """Say what bounds the memory of a stream whose settings do not; None where they do."""
    if plan.memory_bytes is None or not plan.memory.says_nothing:
        return None
    if memory.leaf_budget is None:
        return (
            "the model holds all that comes: of a stream like this no sample can be held. A window "
            "bounds its memory ([memory])"
        )
    return (
        f"the model holds at most {memory.leaf_budget:,} observations, and beyond these a uniform "
        f"sample: there are {plan.memory_bytes / _GIB:.1f} GiB of memory for it ([memory])"
    )


def new_shard(
    spec: StreamSpec,
    cadence: RefinementSettings,
    memory: MemorySettings | None = None,
    whole: StreamSpec | None = None,
) -> Shard:
    """Make the empty model of a stream, or of the shard of a stream that is the ``whole``."""
    family, prior = family_of(spec), build_prior(spec.prior, spec.prior_params)
    if spec.family == IRM.name:
        network = NetworkChain.start(family, prior, seed=spec.seed)
        return NetworkShard(network, family, cadence, memory)
    learner = learner_of_hyperprior(family, spec.hyperprior)
    chain = MixtureChain.start(family, prior, seed=spec.seed, learner=learner)
    if whole is None or spec.shard is None:
        shard = MixtureShard(chain, family, cadence, memory)
    else:
        place, settings = (spec.shard, whole.shards), (cadence, memory or MemorySettings())
        shard = PartShard.begin(chain, place, settings)
    shard.see_by(spec)
    return shard


def restored_shard(spec: StreamSpec, arrays: Arrays) -> Shard:
    """Make the shard that a snapshot's arrays are of."""
    if spec.family == IRM.name:
        return NetworkShard.restore(arrays, family_of(spec))
    kind = MixtureShard if spec.shard is None else PartShard
    shard = kind.restore(arrays, family_of(spec))
    shard.see_by(spec)
    return shard


def free_shard(
    model: ModelSettings,
    cadence: RefinementSettings,
    sample: NDArray[np.float64],
    memory: MemorySettings | None = None,
) -> MixtureShard:
    """Make an empty shard that no database knows; what is left open follows the sample (n, d).

    Raises
    ------
    ParameterError
        When the settings name a family, a prior or a parameter that does not exist.
    """
    name = FULL if model.family == AUTO else model.family
    if name in NUMERIC:
        sample = without_absurd(sample)
    if name == FULL:
        name = _better_for(model, sample)
    family = family_named(name).build(model.params, sample)
    prior, begun = prior_of(model), Learned(family)
    if not model.params or isinstance(family, Product):
        begun = base_from_sample(family, prior, sample)
    chain = MixtureChain.start(begun.family, prior, seed=model.seed, learner=begun.learner)
    shard = MixtureShard(chain, begun.family, cadence, memory)
    shard.sample.seed, shard.moves = model.seed, begun.moves
    return shard


def prior_of(model: ModelSettings) -> PartitionPrior:
    """Build the prior of partitions; raises ParameterError where there is none like it."""
    return build_prior(model.prior, prior_parameters(model))


def prior_parameters(model: ModelSettings) -> dict[str, Any]:
    """Return the prior's parameters, with whether they are learned where the prior can."""
    given = dict(model.prior_params)
    kind = PRIORS.get(model.prior)
    if kind is not None and "learn" in {field.name for field in fields(kind)}:
        given.setdefault("learn", model.learn_hyper)
    return given


class Fitness:
    """What the family of a stream can take: a negative count or a flag of 7 it cannot.

    Parameters
    ----------
    spec : StreamSpec
    """

    def __init__(self, spec: StreamSpec) -> None:
        self._kind, self._family = family_named(spec.family), family_of(spec)
        self._learned = transformation_of(spec)
        self._names = Schema.of(_schema_of(spec)).features

    def refused(self, values: NDArray[np.float64]) -> dict[int, str]:
        """Rows of values (n, d) that it cannot take, with the reason."""
        refused: dict[int, str] = {}
        if self._learned is not None:
            refused = {
                row: _no_logarithm(self._names[at], values[row, at])
                for row, at in self._learned.unfit(values)
            }
            values = self._learned.seen(values)
        for row, reason in refused_rows(self._kind, self._family, values).items():
            refused.setdefault(row, reason)
        return refused


def refused_rows(
    kind: FamilySpec[Any], family: Family, values: NDArray[np.float64]
) -> dict[int, str]:
    """Rows of values (n, d) that a family of this kind cannot take, with the reason."""
    refused: dict[int, str] = {}
    start = 0
    while (verdict := kind.validate(family, values[start:])) is not None:
        row, reason = verdict
        refused[start + row] = reason
        start += row + 1
    return refused


def _no_logarithm(name: str, value: float) -> str:
    return f"field {name!r} is {value:g}, and only numbers above 0 have logarithms"


def _schema_of(spec: StreamSpec) -> SchemaSettings:
    return msgspec.convert(spec.schema, SchemaSettings)


def chosen_family(
    model: ModelSettings, schema: SchemaSettings, features: FeatureSettings
) -> tuple[str, dict[str, Any]]:
    """Name of the family, and what the settings or the schema say of its parameters."""
    compiled = Schema.of(schema)
    if model.family == AUTO:
        name, params = choose_family(compiled)
        # Parameters that somebody gave are of the columns as they are.
        if sees_components(features, AUTO, compiled) and (features.asks or not model.params):
            name = FULL
        return name, {**params, **model.params}
    if compiled.network is not (model.family == IRM.name):
        raise ParameterError(
            f"model.family is {model.family!r}: family 'irm' goes with records of edges, which "
            "have two fields of kind 'vertex' under [schema], and no other family does"
        )
    return model.family, dict(model.params)


def _better_for(model: ModelSettings, seen: NDArray[np.float64], *, always: bool = False) -> str:
    """Name of the family that predicts some of the rows (n, q) better, where people leave it open.

    Of few columns a covariance is soon known: these are asked only where it is ``always``.
    """
    few = seen.shape[1] < _COLUMNS_ASKED and not always
    if model.family != AUTO or model.params or few:
        return FULL
    rows = seen[np.isfinite(seen).all(axis=1)]
    choice = better_family(rows, FitSettings(seed=model.seed), time.perf_counter)
    _log.info("family %s: %s", *choice)
    return choice.family


def _spec(plan: StreamConfig, family: str, family_params: dict[str, Any]) -> StreamSpec:
    prior = prior_of(plan.model)
    # Limits on records may change; what is a record's key, time and numbers may not.
    schema = msgspec.to_builtins(plan.schema)
    return StreamSpec(
        name=plan.stream.name,
        family=family,
        family_params=family_params,
        prior=prior.name,
        prior_params=dict(prior.parameters()),
        schema={name: schema[name] for name in ("fields", "key", "time")},
        seed=plan.model.seed,
        shards=plan.stream.shards,
    )
