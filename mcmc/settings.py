"""What people may choose about the model, its refinement, and an offline fit."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec

from weald.treecore.errors import ParameterError

__all__ = ["MOST_COLUMNS", "FeatureSettings", "FitSettings", "ModelSettings", "RefinementSettings"]

CONSENSUSES = ("vi", "binder", "map")
# Columns of numbers that are looked at as they are; of more, components.
MOST_COLUMNS = 16


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The likelihood family and the partition prior.

    Attributes
    ----------
    family, params:
        A name of ``weald.treecore.family.FAMILIES`` and its hyperparameters; what is not given is
        set from the first ``warmup_records`` observations. Where none are given, ``gaussian`` and
        ``diagonal`` go on learning them. "auto" takes what suits the schema.
    prior, prior_params:
        A name of ``weald.treecore.prior`` and its parameters.
    learn_hyper:
        Whether the prior's own parameters (the concentration, ...) are learned.
    seed:
        Seed of every random choice.
    """

    family: str = "auto"
    params: dict[str, Any] = {}
    prior: str = "dp"
    prior_params: dict[str, Any] = {}
    learn_hyper: bool = True
    seed: int = 0
    warmup_records: int = 200


class FeatureSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How families ``gaussian`` and ``diagonal`` see plain numbers.

    A stream learns it from its first ``model.warmup_records`` observations and keeps it while the
    columns that it leaves out say nothing. What people are shown is in the values that came in.

    Attributes
    ----------
    log:
        Columns whose natural logarithm is taken: of numbers above 0, others become dead letters.
    unit_length:
        Whether rows are then divided by their lengths, so that only their directions tell.
    standardise:
        Whether columns are divided by their spreads. "auto": along components, where these are not
        all alike.
    components:
        See rows along so many principal components. "auto": above 16 columns of a ``gaussian``,
        where "all" leaves the columns as they are. Family "auto" is then ``gaussian`` or
        ``diagonal``, whichever predicts a quarter of the first observations better from the rest.
    """

    log: tuple[str, ...] = ()
    unit_length: bool = False
    standardise: Literal["auto"] | bool = "auto"
    components: Literal["auto", "all"] | Annotated[int, msgspec.Meta(ge=1)] = "auto"

    @property
    def asks(self) -> bool:
        """Whether anything is asked for that "auto" would not do by itself."""
        chosen = not isinstance(self.components, str)
        return bool(self.log or self.unit_length or self.standardise is True or chosen)


class RefinementSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often the partition is refined and published, counted in observations where many come.

    Attributes
    ----------
    every_records:
        Observations between two refinements.
    publish_every_records:
        Observations between two publications; a multiple of ``every_records``. Where the model
        holds more than 5,000, a tenth of them has to be new as well, and where the refinement
        before it is put off, half of them. The first publications come after an eighth, a quarter
        and a half as many, where these are 125 or more.
    rounds:
        Rounds of every kernel in one refinement, or none. Before a publication there are as many as
        make sixteen draws of what the model holds, several to a draw where it holds fewer than
        1,000. Tree-guided moves look at all of it, Gibbs sampling redraws half of the observations,
        at least 1,000. Of more than 5,000 only the refinement before a publication does so, and has
        at least three times as many; those in between are Gibbs sampling on 1,000 drawn at random.
    mode:
        ``inline``: the writer refines, and the same stream gives the same partition, bit for bit.
        ``workers``: `weald worker` processes refine while records flow.
    pace:
        Of inline refinement. ``counted``: after every ``every_records``, however many records
        wait. ``yielding``: while more than that wait, refinement has a tenth of the time, and what
        it owes it does when they are caught up; one that looks at all of many observations goes on
        beside the records. What was put off and what went on beside is in SQL, so that a replay is
        the same, but a second run of the same records need not be. "auto": yielding where records
        come from a topic, counted where they come from a file or a pipe.
    quiet_seconds:
        When no record has come for so long, refinement and publication go on until they change
        nothing any more; 0 for never.
    publish_every_seconds:
        Where the topic brings little, what is new is published after so many seconds at the
        latest; 0 for by count alone.
    kernels:
        Comma-joined names of exact kernels, as of `weald fit --kernel`, that make a round, inline
        and by workers. "auto" moves parts of trees, splits and merges clusters, and then moves
        single observations.
    """

    every_records: int = 500
    publish_every_records: int = 1000
    rounds: int = 5
    mode: Literal["inline", "workers"] = "inline"
    pace: Literal["auto", "counted", "yielding"] = "auto"
    quiet_seconds: float = 5.0
    publish_every_seconds: float = 60.0
    kernels: str = "auto"

    def __post_init__(self) -> None:
        if self.every_records < 1 or self.rounds < 0:
            raise ValueError("every_records must be at least 1 and rounds at least 0")
        if self.publish_every_records % self.every_records:
            raise ValueError("publish_every_records must be a multiple of every_records")
        if not self.quiet_seconds >= 0.0:
            raise ValueError("quiet_seconds must be at least 0")
        if not self.publish_every_seconds >= 0.0:
            raise ValueError("publish_every_seconds must be at least 0")


@dataclass(frozen=True)
class FitSettings:
    """What ``weald fit`` may be asked for.

    ``learn_base`` learns the family's base measure as well: mean, kappa, nu and psi of the
    gaussian, kappa, shape and rate of the diagonal, a factor of the scale of others; None does so
    for these two without ``params``.
    ``iterations`` and ``seconds`` bound each chain (100 iterations when neither is given);
    ``consensus`` is the loss whose expectation the reported partition makes small (vi, binder), or
    map; ``keep_labels`` keeps every iteration's labels for a trace.
    Raises ParameterError for fewer than one iteration or chain, and for another ``consensus``.
    """

    family: str = "gaussian"
    params: dict[str, Any] = field(default_factory=dict)
    prior: str = "dp"
    prior_params: dict[str, Any] = field(default_factory=dict)
    learn_hyper: bool = True
    learn_base: bool | None = None
    kernels: tuple[str, ...] = ("auto",)
    init: str = "auto"
    iterations: int | None = None
    seconds: float | None = None
    chains: int = 1
    seed: int = 0
    consensus: str = "vi"
    keep_labels: bool = False

    def __post_init__(self) -> None:
        # A chain counts its sweeps up to these, and would never end below one.
        if self.iterations is not None and self.iterations < 1:
            raise ParameterError(f"a chain has one sweep at least, not {self.iterations}")
        if self.chains < 1:
            raise ParameterError(f"a fit has one chain at least, not {self.chains}")
        if self.consensus not in CONSENSUSES:
            raise ParameterError(
                f"there is no consensus {self.consensus!r}: choose among {', '.join(CONSENSUSES)}"
            )
