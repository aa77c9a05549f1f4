"""A chain that costs microseconds and keeps the contract of `weald.mcmc.chain.chain.MixtureChain`.

Its moves are coins: no posterior. What simulation is about holds all the same: the same seed, the
same observations in the same order and the same refinements between them give the same partition,
however the stream was cut, across `state` and `restore`, and with leases out. What is lent and
taken back goes through the product's own book-keeping (`OutstandingLeases`, `merged_labels`,
`AtomIds`).
"""

import json
from collections.abc import Callable, Sequence
from math import log
from typing import Any, Self
from zlib import crc32

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from weald.mcmc.chain.atom_ids import AtomIds
from weald.mcmc.chain.chain import Entered
from weald.mcmc.chain.window import Moved
from weald.mcmc.leases.lease_work import Returned
from weald.mcmc.leases.leases import Budget, Lease, coin_groups
from weald.mcmc.leases.outstanding import Lent, OutstandingLeases, merged_labels
from weald.mcmc.schedule.kernel_report import KernelReport, Refinement
from weald.treecore.family import FAMILIES, spec_of
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels

__all__ = ["CoinChain", "work_by_coins"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

_NEW_BLOCK, _MOVED = 0.15, 0.2
# What a refinement claims to take: so much that some are put off where records come first.
_REFINE_SECONDS = 0.5


class CoinChain:
    """A partition moved by coins; of flags, so that a row is two counts a feature."""

    # Pseudo-counts stay as they were given.
    learner = None

    def __init__(self, family: Any, prior: Any, rng: Generator) -> None:
        self.family, self.prior, self._rng = family, prior, rng
        self._ids = AtomIds()
        self._label: Ids = np.empty(0, dtype=np.int64)
        self._rows = np.empty((0, 2 + 2 * len(family.a)))
        self._lending: OutstandingLeases | None = None
        self._meanwhile: OutstandingLeases | None = None
        self.disruption = 0.0

    @property
    def first_family(self) -> Any:
        """The family, which stays."""
        return self.family

    @classmethod
    def start(cls, family: Any, prior: Any, *, seed: int, learner: Any = None) -> Self:  # noqa: ARG003 - it learns nothing
        return cls(family, prior, Generator(PCG64(seed)))

    @property
    def n_atoms(self) -> int:
        return len(self._ids)

    @property
    def n_observations(self) -> int:
        return len(self._ids)

    @property
    def n_blocks(self) -> int:
        return len(np.unique(self._label[self._label >= 0]))

    @property
    def labels(self) -> Ids:
        return self._label.copy()

    def labels_of(self, atoms: Ids) -> Ids:
        return self._label[atoms]

    def atom_rows(self, atoms: Ids) -> NDArray[np.float64]:
        return self._rows[atoms]

    def insert(
        self, values: NDArray[np.float64], entered: Entered, moved: Moved, *, by_trees: bool
    ) -> Ids:
        ids = self._ids.take(len(values))
        room = self._ids.end - len(self._label)
        self._label = np.pad(self._label, (0, room), constant_values=-1)
        self._rows = np.pad(self._rows, ((0, room), (0, 0)))
        rows = np.ones((len(values), self._rows.shape[1]))
        rows[:, 2::2], rows[:, 3::2] = values, 1.0 - values
        self._rows[ids] = rows
        for one in np.split(ids, len(ids)):
            self._place(one)
            likeliest, move = self._rng.random(2)
            slots, present = self._label[one], self._label[self._label >= 0]
            entered(one, slots, present[[int(likeliest * len(present))]])
            if by_trees and self._lending is None and move < _MOVED:
                # Half of its block, of which there may be one, moves as one.
                atoms = np.flatnonzero(self._label == slots[0])
                atoms = atoms[len(atoms) // 2 :]
                after = np.full(len(atoms), self._label.max() + 1)
                moved(atoms, self._label[atoms], after)
                self._label[atoms] = after
        for outstanding in (self._lending, self._meanwhile):
            if outstanding is not None:
                outstanding.insert(ids)
        return ids

    def remove(self, atoms: Ids) -> None:
        self._ids.require(atoms)
        self._label[atoms] = -1
        self._ids.give_back(atoms)
        for outstanding in (self._lending, self._meanwhile):
            if outstanding is not None:
                outstanding.remove(atoms)

    def relabelled(self, draws: Ids) -> Ids:
        return draws

    def log_joint(self) -> float:
        return float(-self.n_blocks - 0.01 * self._label[self._label >= 0].sum())

    def refine(
        self, rounds: int = 1, note: Callable[[Ids], None] | None = None, _kernels: str = "auto"
    ) -> Refinement:
        before = self.log_joint()
        for _ in range(rounds if self.n_atoms else 0):
            present = np.flatnonzero(self._label >= 0)
            self._place(present[self._rng.random(len(present)) < _MOVED])
            self._settle(self._label)
            if note is not None:
                note(self.labels)
        return Refinement(before, self.log_joint(), self.n_blocks, (), _REFINE_SECONDS)

    def refine_in_windows(self, rounds: int, moved: Moved) -> Refinement:
        before = self.log_joint()
        for _ in range(rounds if self.n_atoms else 0):
            present = np.flatnonzero(self._label >= 0)
            atoms, was = present[self._rng.random(len(present)) < _MOVED], self._label.copy()
            self._place(atoms)
            moved(atoms, was[atoms], self._label[atoms])
        return Refinement(before, self.log_joint(), self.n_blocks, (), _REFINE_SECONDS)

    def begin_concurrent(
        self, number: int, rounds: int, every: int, _kernels: str = "auto"
    ) -> "CoinRefinement":
        copy = type(self).restore(self.state())
        state: Any = self._rng.bit_generator.state
        copy._rng = Generator(PCG64([state["state"]["state"], number]))
        self._meanwhile = OutstandingLeases()
        return CoinRefinement(copy, rounds, every)

    def drop_concurrent(self) -> None:
        self._meanwhile = None

    def adopt_concurrent(self, done: "CoinRefinement") -> tuple[Refinement, list[Ids]]:
        if self._meanwhile is None or done.refinement is None:
            raise ValueError("no refinement goes on beside arrivals")
        meanwhile, self._meanwhile = self._meanwhile, None
        atoms = np.flatnonzero(done.labels >= 0)
        returned = canonical_labels(done.labels[atoms])
        self._settle(merged_labels(meanwhile, self._label, [(atoms, returned)]))
        self._place(np.fromiter(meanwhile.arrived, dtype=np.int64, count=len(meanwhile.arrived)))
        for draw in done.draws:
            draw[list(meanwhile.gone)] = -1
        return done.refinement, done.draws

    def lend(self, rng: Generator, budgets: Sequence[Budget]) -> list[Lent]:
        self._lending = OutstandingLeases()
        present = np.flatnonzero(self._label >= 0)
        labels, nothing = self._label[present], np.empty(0, dtype=np.int64)
        lent = []
        for budget, atoms in zip(budgets, coin_groups(rng, labels, len(budgets)), strict=True):
            seed = int(rng.integers(2**63))
            if len(atoms):
                lease = Lease(
                    family=self.family,
                    prior=self.prior,
                    log_share=-log(len(budgets)),
                    labels=canonical_labels(labels[atoms]),
                    size=np.ones(len(atoms), dtype=np.int64),
                    rows=self._rows[present[atoms]],
                    form=(nothing, nothing),
                    anchors=nothing,
                    budget=budget._replace(seed=seed),
                )
                lent.append(Lent(present[atoms], lease))
        return lent

    @property
    def lent(self) -> bool:
        return self._lending is not None

    def note_lent(self) -> None:
        self._lending = OutstandingLeases()

    def forget_lent(self) -> None:
        self._lending = None

    def adopt(self, returns: Sequence[tuple[Ids, Ids]]) -> Refinement:
        if self._lending is None:
            raise ValueError("nothing is lent")
        lending, self._lending = self._lending, None
        before = self.log_joint()
        self._settle(merged_labels(lending, self._label, returns))
        self._place(np.fromiter(lending.arrived, dtype=np.int64, count=len(lending.arrived)))
        return Refinement(before, self.log_joint(), self.n_blocks, (), 0.0)

    def state(self) -> Arrays:
        about = {
            "parameters": spec_of(self.family).parameters(self.family),
            "prior": [self.prior.name, self.prior.parameters()],
            "rng": self._rng.bit_generator.state,
            "end": self._ids.end,
        }
        saved: Arrays = {
            "about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
            "free": self._ids.free,
            "label": self._label.copy(),
            "rows": self._rows.copy(),
        }
        return saved | (self._lending.arrays() if self._lending is not None else {})

    @classmethod
    def restore(cls, saved: Arrays) -> Self:
        about = json.loads(saved["about"].tobytes())
        bits = PCG64()
        bits.state = about["rng"]
        n = (saved["rows"].shape[1] - 2) // 2
        family = FAMILIES["bernoulli"].build(about["parameters"], np.empty((0, n)))
        chain = cls(family, build_prior(*about["prior"]), Generator(bits))
        chain._ids = AtomIds(about["end"], saved["free"])
        chain._label, chain._rows = saved["label"].copy(), saved["rows"].copy()
        chain._lending = OutstandingLeases.restore(saved)
        return chain

    def _place(self, atoms: Ids) -> None:
        """Give each a block by a coin of its own, in order."""
        self._label[atoms] = -1
        for atom, coin, die in self._coins(atoms):
            taken = self._label[self._label >= 0]
            new = len(taken) == 0 or coin < _NEW_BLOCK
            # By the members' count, as by a partition prior.
            self._label[atom] = (
                int(self._label.max(initial=-1)) + 1 if new else taken[int(die * len(taken))]
            )

    def _coins(self, atoms: Ids) -> list[tuple[int, float, float]]:
        # Pairs in the order of the atoms: how a batch is cut must not matter.
        coins = self._rng.random((len(atoms), 2)).tolist()
        return [(atom, *pair) for atom, pair in zip(atoms.tolist(), coins, strict=True)]

    def _settle(self, labels: Ids) -> None:
        placed = labels >= 0
        self._label = labels.copy()
        self._label[placed] = canonical_labels(labels[placed])


class CoinRefinement:
    """What goes on beside a `CoinChain`."""

    def __init__(self, chain: CoinChain, rounds: int, every: int) -> None:
        self._chain, self.n_rounds, self._every = chain, rounds, every
        self.refinement: Refinement | None = None
        self.draws: list[Ids] = []

    def run(self) -> None:
        made: list[Ids] = []
        self.refinement = self._chain.refine(self.n_rounds, made.append)
        self.draws = made[self._every - 1 :: self._every]

    @property
    def labels(self) -> Ids:
        return self._chain.labels

    def stop(self) -> None:
        """Nothing runs."""


def work_by_coins(lease: Lease) -> Returned:
    """What a worker makes of a lease: the same answer for the same lease, whoever works on it."""
    # Another row is another answer, as it is with kernels.
    rng = Generator(PCG64([lease.budget.seed, crc32(lease.rows.tobytes())]))
    labels = lease.labels.copy()
    moved = rng.random(len(labels)) < _MOVED
    labels[moved] = rng.integers(len(labels), size=int(moved.sum()))
    report = KernelReport("gibbs", "exact", len(labels), int(moved.sum()), 0.0, 0.0, 0.0)
    return Returned(canonical_labels(labels), (report,))
