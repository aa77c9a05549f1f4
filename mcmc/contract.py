"""The contract of kernels: what one is, what it moves, what it counts, and what a chain is.

A kernel is anything with a name, a claim and a :meth:`Kernel.sweep`. It moves a partition that a
:class:`PartitionState` carries: :class:`~weald.mcmc.chain.position.Position` for mixtures,
:class:`~weald.mcmc.relational.position.VertexPosition` for networks. A :class:`Chain` keeps a
partition of observations that still come, and lets kernels refine it.

Nothing is computed here, and nothing is imported to be run: commands read the registry
(:mod:`weald.mcmc.schedule.registry`), and with it this file, without loading a compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

    from weald.treecore.family.interface.base import Family
    from weald.treecore.partition.partition import Atoms, Model
    from weald.treecore.prior.base import PartitionPrior

    from .schedule.kernel_report import Refinement

    Labels = NDArray[np.int64]
    Tally = NDArray[np.float64]

__all__ = [
    "Chain",
    "Claim",
    "Data",
    "Entry",
    "Kernel",
    "MixtureState",
    "Need",
    "PartitionState",
    "PastStates",
    "SweptState",
    "is_guided",
]

# exact: leaves the posterior invariant. adaptive: exact once its adaptation has ceased.
# approximate: does not, and is never a default; summaries refuse draws made while it was active.
Claim = Literal["exact", "adaptive", "approximate"]
Data = Literal["mixture", "network"]
# Reference partitions from other chains, or from the past of a population; a prior of product form;
# the prior of the entity/mention model.
Need = Literal["chains", "past", "product", "entities"]

T = TypeVar("T")
State_co = TypeVar("State_co", covariant=True)
State_contra = TypeVar("State_contra", contravariant=True)


@dataclass(frozen=True)
class Entry:
    """A kernel's line in the registry.

    Attributes
    ----------
    name : str
        What people write after ``--kernel``.
    claim : str
        What may be said of the posterior: "exact", "adaptive" or "approximate".
    module : str
        Where it is. The module has ``kernel(entry)``, which makes the :class:`Kernel`; its
        docstring is what the reference says of it.
    data : str
        What it moves: "mixture" or "network".
    needs : tuple of str
        What it cannot run without: "chains" or "past" (it is *guided*: reference partitions come
        from other chains, or from the past of a population), "product" (a prior of product form),
        "entities" (the prior of the entity/mention model).
    """

    name: str
    claim: Claim
    module: str
    data: Data = "mixture"
    needs: tuple[Need, ...] = ()

    @property
    def guided(self) -> bool:
        """Whether it takes reference partitions, so that chains run as a population.

        Such a kernel moves only what they tell apart or together: alone it does not reach every
        partition. All others do.
        """
        return is_guided(self.needs)


def is_guided(needs: tuple[Need, ...]) -> bool:
    """Whether a kernel that needs this takes reference partitions."""
    return "chains" in needs or "past" in needs


class Kernel(Protocol[State_contra]):
    """One way to move a partition.

    Name, claim and needs are those of its :class:`Entry`.
    """

    @property
    def name(self) -> str:
        """What people write after ``--kernel``."""
        ...

    @property
    def claim(self) -> Claim:
        """What may be said of the posterior."""
        ...

    @property
    def needs(self) -> tuple[Need, ...]:
        """What it cannot run without."""
        ...

    @property
    def guided(self) -> bool:
        """Whether it takes reference partitions."""
        ...

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the moves that a sweep counts apart: ledgers and dashboards show these."""
        ...

    @property
    def sweep(self) -> Callable[[Generator, State_contra], Tally]:
        """One iteration: ``sweep(rng, state)``.

        Returns float64 (len(parts), 3) with the moves proposed, accepted, and the sum of their log
        acceptance ratios.
        """
        ...

    @property
    def least(self) -> Callable[[Generator, State_contra], Tally] | None:
        """The least part of a sweep that must leave the posterior invariant: one proposal.

        The enumeration suite follows every path of it. None where real numbers are drawn, of which
        there are too many: such kernels are calibrated instead.
        """
        ...


class PastStates(Protocol):
    """Where the chains of a population have been."""

    def note(self, chain: int, labels: Labels, /) -> None:
        """Append a chain's present partition."""

    def draw(self, rng: Generator, chain: int, /) -> tuple[Labels, Labels] | None:
        """Two different ones, the first of this chain; None where there are none."""


class SweptState(Protocol[State_co]):
    """What a sweep that moves atoms in place needs to know: how many, of which model, and where."""

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        ...

    @property
    def model(self) -> Model:
        """Family and prior as compiled code takes them."""
        ...

    def run(self, rng: Generator, sweep: Callable[[State_co], T], /) -> T:
        """Let ``sweep``, which draws by ``rng``, move the atoms in place; returns what it does."""
        ...


class PartitionState(SweptState[State_co], Protocol[State_co]):
    """Where a chain stands: a partition of n atoms under a family and a prior.

    Attributes
    ----------
    guides : tuple of ndarray
        Partitions that other chains are at, for guided kernels.
    history : tuple of PastStates and int, or None
        Where all chains have been, and which of them this is.
    """

    guides: tuple[Labels, ...]
    history: tuple[PastStates, int] | None

    @property
    def family(self) -> Family:
        """The likelihood with its base measure, as it stands."""
        ...

    @property
    def prior(self) -> PartitionPrior:
        """The prior of partitions, as it stands."""
        ...

    def labels(self) -> Labels:
        """Canonical labels of the atoms (n)."""
        ...

    def sizes(self) -> Labels:
        """Observations of each block, in no particular order."""
        ...

    def log_joint(self, prior: PartitionPrior | None = None) -> float:
        """Log of prior times likelihood; ``prior`` is the present one unless another is given."""
        ...

    def resample(self, rng: Generator) -> None:
        """One exact update of the hyperparameters that are learned."""

    def hyperparameters(self) -> dict[str, float]:
        """Numbers that a trace shows."""
        ...


if TYPE_CHECKING:
    from .state.atom_state import State

    OfAtoms = PartitionState[State]
else:
    OfAtoms = PartitionState


class MixtureState(OfAtoms, Protocol):
    """Where a chain on a mixture stands; kernels may also set all labels at once."""

    # Auxiliary variables that a kernel keeps between its turns, by its name.
    kept: dict[str, object]

    @property
    def atoms(self) -> Atoms:
        """What is moved, with its statistics."""
        ...

    def flat(self) -> State:
        """The partition atom by atom, for a kernel to change in place."""
        ...

    def set_labels(self, labels: Labels) -> None:
        """Go to another partition of the same atoms."""

    def in_guide_order(self) -> Labels:
        """All atoms in the order of the guide's leaves, where neighbours are alike."""
        ...


class Chain(Protocol):
    """A partition of observations that still come, as a stream keeps it.

    Atoms have ids, which are given again after they leave; an array by id has -1 or 0 for an id
    that none has.
    """

    @property
    def family(self) -> Family:
        """The likelihood with its base measure, as it stands."""
        ...

    @property
    def prior(self) -> PartitionPrior:
        """The prior of partitions, as it stands."""
        ...

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        ...

    @property
    def n_observations(self) -> int:
        """Number of observations in the atoms."""
        ...

    @property
    def n_blocks(self) -> int:
        """Number of blocks of the partition."""
        ...

    @property
    def labels(self) -> Labels:
        """Block slot of each atom by its id, -1 for an id that none has."""
        ...

    @property
    def disruption(self) -> float:
        """Estimated total variation between the posterior and what is sampled."""
        ...

    def atom_rows(self, atoms: Labels, /) -> NDArray[np.float64]:
        """Statistics rows (n, m) of these atoms."""
        ...

    def log_joint(self) -> float:
        """Log of prior times likelihood of the partition, under the prior it started with."""
        ...

    def refine(
        self, rounds: int = 1, note: Callable[[Labels], None] | None = None, kernels: str = "auto"
    ) -> Refinement:
        """Rounds of hyperparameter updates and every kernel of a comma-joined list of names.

        ``note`` is told the draw that each round ends in, by atom id.
        """
        ...

    def relabelled(self, draws: Labels, /) -> Labels:
        """Draws (t, n) of the atoms that are there, with each where it is most probable.

        Those of a chain that does not know it stay as they are.
        """
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything, as plain arrays, from which a chain goes on bit for bit."""
        ...
