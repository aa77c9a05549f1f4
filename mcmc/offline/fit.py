"""A batch of observations clustered offline: chains, their traces, and one reported partition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from weald.mcmc.chain.position import Position
from weald.mcmc.contract import Kernel, PartitionState
from weald.mcmc.estimate.consensus import Draws, consensus_partition, membership
from weald.mcmc.estimate.relabelling import relabelled_draws
from weald.mcmc.hyperparameters.learner import learner_of, learns_by_default
from weald.mcmc.reconfiguration.reference_partitions import History
from weald.mcmc.schedule.kernels import KERNELS, require_prior
from weald.mcmc.settings import FitSettings
from weald.treecore.errors import ParameterError
from weald.treecore.family import FAMILIES
from weald.treecore.family.discrete.dirichlet_multinomial import build_multinomial
from weald.treecore.family.discrete.sparse_multinomial import sparse_values
from weald.treecore.family.interface.base import Family, refuse_impossible, workspace
from weald.treecore.partition.partition import Model
from weald.treecore.prior import PRIORS, PartitionPrior, build_prior
from weald.treecore.statistics.observations import Observations

from .chains import trusted_chains
from .ground import Ground, prepared
from .resolution import as_finely_as_known
from .start import k_means_labels, most_blocks, possible_labels, starting_labels

__all__ = [
    "LEAST_POPULATION",
    "SPARSE_FAMILY",
    "ChainTrace",
    "FitResult",
    "FitSettings",
    "combine",
    "family_for",
    "fit",
    "ground_of",
    "is_population",
    "kernels_of",
    "report",
    "run_chain",
    "run_population",
    "sample",
]

# The family whose rows may be sparse.
SPARSE_FAMILY = "multinomial"
_DEFAULT_ITERATIONS = 100
# Share of a run in which guides out of the past are collected: the draws of it are discarded.
_ADAPTING = 0.5
# Sweeps, and no more than so large a share of a run, before the base measure is learned: one that
# learns from a start of many small clusters takes them for what clusters are, and stays there.
_BASE_RESTS = 10
_BASE_RESTS_SHARE = 4
# Draws kept of a chain for the consensus and the membership probabilities.
_KEPT_DRAWS = 200
# Draws of each chain that the shown partition is told from: more make it no better. Of many rows
# fewer, by the rows times clusters that are weighed; of bags of words, which take longer.
_MOST_RELABELLED, _FEWEST_RELABELLED = 32, 8
_MOST_WEIGHED, _MOST_BAGS_WEIGHED = 1e8, 4e6
# Pairs of rows whose being together is followed; every chain follows the same ones.
_ANCHOR_PAIRS = 64

# What chains of a population take their guides from, split in two halves.
LEAST_POPULATION = 4

Clock = Callable[[], float]
# A position of a mixture, or of a network: what kernels sweep over.
P = TypeVar("P", bound=PartitionState[object])
Progress = Callable[[float], None]


@dataclass
class ChainTrace:
    """One chain, iteration by iteration; ``tally`` is (iterations, parts, 3) for each kernel.

    ``sum_of_squares`` is that of the clusters' shares of the rows, ``together`` the share of some
    random pairs of rows that are in one cluster: they change slowly, and show when a chain does
    not. ``draws`` are kept partitions, ``draw_priors`` and ``draw_families`` the priors and
    the families, by the base measure of the time, that went with them. ``first`` is the family that
    the chain began with, which says what values there can be: what is learned may be far narrower.
    """

    log_joint: list[float] = field(default_factory=list)
    n_clusters: list[int] = field(default_factory=list)
    sum_of_squares: list[float] = field(default_factory=list)
    together: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    hyper: dict[str, list[float]] = field(default_factory=dict)
    labels: list[NDArray[np.int64]] = field(default_factory=list)
    tally: dict[str, list[NDArray[np.float64]]] = field(default_factory=dict)
    best_log_joint: float = -np.inf
    best_labels: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    # Some of the draws (t, n) with each row in its most probable cluster, where that is found.
    relabelled: Draws | None = None
    draws: list[NDArray[np.int64]] = field(default_factory=list)
    draw_priors: list[PartitionPrior] = field(default_factory=list)
    draw_families: list[Any] = field(default_factory=list)
    # Family and prior as they are in the end.
    last: tuple[Any, Any] = (None, None)
    first: Any = None


@dataclass(frozen=True)
class FitResult:
    """The reported partition with its uncertainty, and the traces behind it.

    ``family`` and ``prior`` as the best chain has learned them in the end.
    ``labels`` int64 (n) canonical; ``probability`` (n) mean share of the row's drawn block that
    is in its cluster; ``stability`` (n) mean probability of being with the cluster's other members,
    or of being alone.
    Both come from draws of exact kernels only. ``kernels`` has each kernel of the cycle once.
    ``trusted`` are the places in ``traces`` of the chains that all this rests on.
    """

    family: Any
    prior: PartitionPrior
    labels: NDArray[np.int64]
    probability: NDArray[np.float64]
    stability: NDArray[np.float64]
    traces: tuple[ChainTrace, ...]
    kernels: tuple[Kernel[Any], ...]
    trusted: tuple[int, ...] = ()

    @property
    def n_clusters(self) -> int:
        """Clusters reported."""
        return int(self.labels.max(initial=-1)) + 1


def _prior(settings: FitSettings) -> PartitionPrior:
    if settings.prior not in PRIORS:
        raise ParameterError(
            f"there is no prior {settings.prior!r}: choose among {', '.join(PRIORS)}"
        )
    return build_prior(settings.prior, {**settings.prior_params, "learn": settings.learn_hyper})


def kernels_of(settings: FitSettings) -> list[Kernel[Position]]:
    """The settings' kernels, in order.

    Raises ParameterError for one that there is not, and for one that the prior does not let run.
    """
    kernels = KERNELS.named(",".join(settings.kernels))
    require_prior(kernels, _prior(settings))
    return kernels


def _observations(values: Observations, settings: FitSettings) -> Observations:
    """The observations as their family takes them: sparse ones stay so for counts of words only."""
    if isinstance(values, np.ndarray) or settings.family == SPARSE_FAMILY:
        return values
    return values.toarray()


def family_for(values: Observations, settings: FitSettings) -> Family:
    """The settings' family, with what they leave open taken from observations (n, d).

    Raises ParameterError for a family that there is not, or not so, and ObservationError for a row
    that it cannot take.
    """
    values = _observations(values, settings)
    spec = FAMILIES.get(settings.family)
    if spec is None:
        raise ParameterError(
            f"there is no family {settings.family!r}: choose among {', '.join(FAMILIES)}"
        )
    if not isinstance(values, np.ndarray):
        if settings.learn_base:
            raise ParameterError("the base measure is learned from dense rows only")
        # What cannot be taken is refused before anything is compiled for it.
        sparse_values(values)
        return build_multinomial(settings.params, values)
    family: Family = spec.build(settings.params, values)
    refuse_impossible(family, values)
    return family


def ground_of(values: Observations, settings: FitSettings, family: Family | None = None) -> Ground:
    """What all chains with these settings stand on, of a family that is given or theirs.

    Raises ParameterError and ObservationError as :func:`family_for`.
    """
    values = _observations(values, settings)
    if family is None:
        family = family_for(values, settings)
    learns = settings.learn_base
    if learns is None:
        learns = learns_by_default(family) and not settings.params
    learns = learns and isinstance(values, np.ndarray)
    return prepared(family, _prior(settings), values, learns=learns, shared=settings.chains > 1)


def _start(ground: Ground, settings: FitSettings, index: int) -> tuple[Position, Generator]:
    """Where a chain begins, and its own source of randomness."""
    rng = Generator(PCG64(SeedSequence(settings.seed, spawn_key=(index,))))
    position = _begin(ground, settings)
    position.set_labels(_first_labels(ground, settings.init, index, rng))
    return position, rng


def _first_labels(ground: Ground, init: str, index: int, rng: Generator) -> NDArray[np.int64]:
    """The partition (n) with which a chain begins.

    By "auto" that of the trees, and for every second chain clusters of k-means: trees may join all
    where what is apart is so in few of many columns, and no sweep leaves that.
    """
    family, prior, n = ground.family, ground.prior, ground.values.shape[0]
    most = most_blocks(prior, n)
    if init == "auto":
        init = "ibhc"
        if index % 2 and learns_by_default(family):
            seen = as_finely_as_known(family, ground.values)
            if isinstance(seen, np.ndarray) and np.isfinite(seen).all():
                # Columns of one unit say by their spread which of them matter; of others, none do.
                return k_means_labels(seen, most, rng, scaled=index % 4 == 3)
    return possible_labels(
        starting_labels(init, ground.forest, n, rng),
        init,
        most,
        lambda: ground.guide_of_forest(Model(family, prior.seating(n, 0), workspace(family))),
    )


def sample(
    chains: Sequence[tuple[P, Generator]],
    kernels: list[Kernel[P]],
    settings: FitSettings,
    clock: Clock,
    progress: Progress | None = None,
) -> list[ChainTrace]:
    """Run chains side by side, in two halves of which one moves at a time.

    Guides of one half are the states of the other, so that the product of all posteriors is left
    invariant. Guides out of the past come from a history that grows until half is done, and stands
    still from then on: the draws that count are those of kernels whose adaptation has ceased.
    ``progress`` is told the share that is done.
    """
    recorders = [_TraceRecorder(settings, position) for position, _ in chains]
    middle = (len(chains) + 1) // 2
    halves = (range(middle), range(middle, len(chains)))
    guided = any(kernel.guided for kernel in kernels)
    history = _shared_history(chains, kernels)
    began = clock()
    iterations = settings.iterations
    if iterations is None and settings.seconds is None:
        iterations = _DEFAULT_ITERATIONS
    done, share = 0, 0.0
    while share < 1.0:
        for moving, still in (halves, halves[::-1]):
            guides = tuple(chains[index][0].labels() for index in still) if guided else ()
            for index in moving:
                position, rng = chains[index]
                position.guides = guides
                if history is not None and share < _ADAPTING:
                    history.note(index, position.labels())
                position.resample(rng)
                recorders[index].tally([(each, each.sweep(rng, position)) for each in kernels])
        done += 1
        elapsed = clock() - began
        for recorder, (position, _) in zip(recorders, chains, strict=True):
            recorder.iteration(position, elapsed)
        share = done / iterations if iterations is not None else 0.0
        if settings.seconds is not None:
            # No time at all is one sweep.
            share = max(share, elapsed / settings.seconds if settings.seconds > 0.0 else 1.0)
        if progress is not None:
            progress(min(share, 1.0))
    return [
        recorder.finished(kernels, position)
        for recorder, (position, _) in zip(recorders, chains, strict=True)
    ]


def _shared_history(
    chains: Sequence[tuple[P, Generator]], kernels: list[Kernel[P]]
) -> History | None:
    """A history of all chains that each of them can see, if a kernel takes its guides from it."""
    if not any("past" in kernel.needs for kernel in kernels):
        return None
    history = History(len(chains))
    for index, (position, _) in enumerate(chains):
        position.history = (history, index)
    return history


def run_chain(
    values: Observations,
    settings: FitSettings,
    index: int,
    clock: Clock,
    progress: Progress | None = None,
    ground: Ground | None = None,
    seconds: Callable[[], float] | None = None,
) -> ChainTrace:
    """One chain on observations (n, d); ``progress`` is told the share that is done.

    The observations are float64, or a sparse matrix of scipy, which the multinomial family never
    makes dense. ``ground`` is what :func:`ground_of` makes of the same arguments, given where
    several chains share it. ``seconds`` is asked what the chain has once it is where it starts, in
    place of what the settings say. Raises ParameterError for settings and ObservationError for a
    row that the model cannot have.
    """
    values = _observations(values, settings)
    kernels = kernels_of(settings)
    if ground is None:
        ground = ground_of(values, settings)
    _compile(ground.family, values, settings, kernels)
    started = _start(ground, settings, index)
    if seconds is not None:
        settings = replace(settings, seconds=seconds(), iterations=None)
    return sample([started], kernels, settings, clock, progress)[0]


def is_population(settings: FitSettings) -> bool:
    """Whether a kernel takes guides from other chains, so that all chains run together."""
    return any(kernel.guided for kernel in KERNELS.named(",".join(settings.kernels)))


def run_population(
    values: Observations,
    settings: FitSettings,
    clock: Clock,
    progress: Progress | None = None,
) -> list[ChainTrace]:
    """All chains together, on observations (n, d), as kernels with guides need them.

    They start from different partitions: chains that agree have nothing to guide each other by. So
    each is first swept once by Gibbs. Raises as :func:`run_chain`, and ParameterError for fewer
    than four chains.
    """
    if settings.chains < LEAST_POPULATION:
        raise ParameterError(
            f"{','.join(settings.kernels)} takes guides from other chains: "
            f"ask for {LEAST_POPULATION} at least, not {settings.chains}"
        )
    values = _observations(values, settings)
    kernels = kernels_of(settings)
    ground = ground_of(values, settings)
    chains = [_start(ground, settings, index) for index in range(settings.chains)]
    for position, rng in chains:
        KERNELS["gibbs"].sweep(rng, position)
    return sample(chains, kernels, settings, clock, progress)


def _begin(ground: Ground, settings: FitSettings) -> Position:
    """All rows in one cluster."""
    learner = None
    if ground.learns:
        learner = learner_of(ground.family, np.asarray(ground.values))
    position = Position(
        ground.family,
        ground.atoms,
        np.zeros(ground.values.shape[0], dtype=np.int64),
        ground.prior,
        ground.guide,
        learner=learner,
    )
    if learner is not None and settings.iterations is not None:
        position.base_rests = min(_BASE_RESTS, settings.iterations // _BASE_RESTS_SHARE)
    elif learner is not None:
        position.base_rests = _BASE_RESTS
    return position


def _compile(
    family: Family, values: Observations, settings: FitSettings, kernels: list[Kernel[Position]]
) -> None:
    """Let every kernel see a few rows, so that compilation takes none of the chain's time."""
    position = _begin(ground_of(values[:4], settings, family), settings)
    labels = position.labels()
    position.guides = (labels, np.arange(labels.shape[0]))
    history = History(1)
    for guide in position.guides:
        history.note(0, guide)
    position.history = (history, 0)
    position.resample(Generator(PCG64(0)))
    for kernel in kernels:
        kernel.sweep(Generator(PCG64(0)), position)
    position.log_joint()


class _TraceRecorder:
    """Collects a chain's trace."""

    def __init__(self, settings: FitSettings, position: PartitionState[object]) -> None:
        self._keep_labels = settings.keep_labels
        self._scale = position.prior
        self._trace = ChainTrace(first=position.family)
        self._stride = 1
        anchors = Generator(PCG64(settings.seed)).integers(0, position.n_atoms, (2, _ANCHOR_PAIRS))
        self._anchors = anchors[:, anchors[0] != anchors[1]]

    def tally(self, sweeps: Sequence[tuple[Kernel[P], NDArray[np.float64]]]) -> None:
        for name in dict.fromkeys(kernel.name for kernel, _ in sweeps):
            found = [moves for kernel, moves in sweeps if kernel.name == name]
            self._trace.tally.setdefault(name, []).append(np.sum(found, axis=0))

    def iteration(self, position: PartitionState[object], elapsed: float) -> None:
        trace = self._trace
        reached = position.log_joint(self._scale)
        labels = position.labels()
        trace.log_joint.append(reached)
        shares = position.sizes() / position.n_atoms
        trace.n_clusters.append(len(shares))
        trace.sum_of_squares.append(float((shares**2).sum()))
        one, other = labels[self._anchors]
        trace.together.append(float((one == other).mean()) if one.size else 1.0)
        trace.seconds.append(elapsed)
        for name, value in position.hyperparameters().items():
            trace.hyper.setdefault(name, []).append(value)
        if self._keep_labels:
            trace.labels.append(labels)
        if reached > trace.best_log_joint:
            trace.best_log_joint, trace.best_labels = reached, labels
        if len(trace.log_joint) % self._stride == 0:
            trace.draws.append(labels)
            trace.draw_priors.append(position.prior)
            trace.draw_families.append(position.family)
        if len(trace.draws) == 2 * _KEPT_DRAWS:
            # Twice as far apart, the kept draws span the whole chain again.
            del trace.draws[::2]
            del trace.draw_priors[::2]
            del trace.draw_families[::2]
            self._stride *= 2

    def finished(self, kernels: list[Kernel[P]], position: PartitionState[object]) -> ChainTrace:
        trace = self._trace
        trace.last = position.family, position.prior
        burnt = len(trace.draws) // 2
        if any(kernel.claim == "approximate" for kernel in kernels):
            burnt = len(trace.draws)
        del trace.draws[:burnt]
        del trace.draw_priors[:burnt]
        del trace.draw_families[:burnt]
        if trace.draws and isinstance(position, Position):
            trace.relabelled = _relabelled(trace.draws, position)
        return trace


def _relabelled(draws: list[NDArray[np.int64]], position: Position) -> Draws:
    """Some of a chain's draws, evenly spaced, with each row where it is most probable."""
    atoms = position.atoms
    rows: object = atoms.rows
    most = _MOST_WEIGHED if isinstance(rows, np.ndarray) else _MOST_BAGS_WEIGHED
    afford = int(most / (len(draws[-1]) * (int(draws[-1].max()) + 1)))
    n_kept = min(max(afford, _FEWEST_RELABELLED), _MOST_RELABELLED, len(draws))
    kept = np.linspace(0, len(draws) - 1, n_kept).astype(int)
    return relabelled_draws(np.stack([draws[at] for at in kept]), atoms, position.model)


def combine(
    settings: FitSettings, traces: list[ChainTrace], values: Observations | None = None
) -> FitResult:
    """The reported partition of finished chains on observations ``values`` (n, d).

    Draws are the second half of each chain. With an approximate kernel there are none, and
    probabilities and stabilities are NaN. Given the observations, chains that predict them clearly
    worse than the best one have no say.
    """
    kernels = KERNELS.named(",".join(settings.kernels))
    if values is None or settings.consensus == "map" or not all(trace.draws for trace in traces):
        return report(settings.consensus, kernels, traces)
    last = [(trace.last[0], trace.draws[-1]) for trace in traces]
    seen = as_finely_as_known(last[0][0], _observations(values, settings))
    trusted = trusted_chains(seen, last)
    found = report(settings.consensus, kernels, [traces[at] for at in trusted])
    return replace(found, traces=tuple(traces), trusted=tuple(trusted))


def report(consensus: str, kernels: list[Kernel[P]], traces: list[ChainTrace]) -> FitResult:
    """The reported partition of finished chains on any data; see :func:`combine`.

    ``consensus`` is a loss whose expectation over the draws is made small, or "map" for the
    partition of highest log joint, which is no estimate: it has too few clusters where they
    overlap. It is also what approximate kernels, which leave no draws, are reported by.
    """
    once, all_of_them = tuple(dict.fromkeys(kernels)), tuple(range(len(traces)))
    best = max(traces, key=lambda trace: trace.best_log_joint)
    draws = [labels for trace in traces for labels in trace.draws]
    labels = best.best_labels
    family, prior = best.last
    if not draws:
        missing = np.full(labels.shape[0], np.nan)
        return FitResult(family, prior, labels, missing, missing, tuple(traces), once, all_of_them)
    stacked: Draws = np.stack(draws)
    if consensus != "map":
        relabelled = [trace.relabelled for trace in traces if trace.relabelled is not None]
        labels = consensus_partition(
            np.concatenate(relabelled) if relabelled else stacked, consensus
        )
    probability, stability = membership(stacked, labels)
    return FitResult(
        family, prior, labels, probability, stability, tuple(traces), once, all_of_them
    )


def fit(
    values: NDArray[np.float64],
    settings: FitSettings,
    clock: Clock,
    progress: Progress | None = None,
) -> FitResult:
    """Run all chains and report; see :func:`run_chain` and :func:`combine`."""
    if is_population(settings):
        traces = run_population(values, settings, clock, progress)
        return combine(settings, traces, values)
    ground = ground_of(values, settings)
    traces = []
    for index in range(settings.chains):

        def tell(share: float, done: int = index) -> None:
            if progress is not None:
                progress((done + share) / settings.chains)

        traces.append(run_chain(values, settings, index, clock, tell, ground))
    return combine(settings, traces, values)
