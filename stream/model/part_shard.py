"""The writer's state of one shard of a stream: it refines in rounds with the other shards.

It takes arrivals as any stream does, and refines nothing by itself. A round begins for it with its
report, of the atoms that are there then, and ends with its turn. What it answers in between follows
from its state at the report; the end of its turn is in SQL as that of a round of leases is, and a
replay takes it from there. What is to leave the model leaves before a report: in the middle of a
round others count on it.
"""

import json
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.chain.growing import taken_from
from weald.mcmc.leases.leases import Budget
from weald.mcmc.schedule.kernel_report import Refinement
from weald.mcmc.schedule.stream_kernels import role_kernels
from weald.mcmc.settings import RefinementSettings
from weald.mcmc.sharded.message_arrays import Message
from weald.mcmc.sharded.round_messages import ShardReport, ShardTurn
from weald.mcmc.sharded.round_steps import REPORT, RoundKey, answer, turn_step
from weald.mcmc.sharded.shard_chain import Learned, ShardChain, TurnEnd
from weald.stream.settings import MemorySettings
from weald.treecore.family import spec_of
from weald.treecore.family.interface.base import Family
from weald.treecore.family.same_kind import with_parameters
from weald.treecore.prior import PartitionPrior, build_prior

from .batch_outcome import BatchOutcome
from .mixture_shard import MixtureShard
from .shard import Arrays, Ids

__all__ = ["PartShard", "model_of", "words_of"]

PART = "part."
# Kernels are those of a lease that any worker may have.
_ROLE = "all"


class PartShard(MixtureShard):
    """One shard of a stream in memory.

    Attributes
    ----------
    part : ShardChain
        Its chain as rounds see it.
    answered : int
        The last step of the round that is out that it has answered.
    """

    part: ShardChain
    answered = REPORT

    def state(self) -> Arrays:
        """Named arrays from which `restore` continues, bit for bit."""
        own = self.part.own_state() | {"answered": np.array([self.answered])}
        return super().state() | {PART + name: array for name, array in own.items()}

    @classmethod
    def restore(cls, state: Arrays, family: Family) -> Self:
        """Undo `state`; cadence and memory are those under which it was saved, for the replay."""
        shard = super().restore(state, family)
        own = taken_from(state, PART)
        shard.part, shard.answered = ShardChain.on(shard.chain, own), int(own["answered"][0])
        return shard

    @classmethod
    def begin(
        cls,
        chain: MixtureChain,
        place: tuple[int, int],
        settings: tuple[RefinementSettings, MemorySettings],
    ) -> Self:
        """An empty shard, ``place`` being its number and how many there are."""
        shard = cls(chain, chain.family, *settings)
        shard.part = ShardChain.start(chain, *place)
        return shard

    @property
    def _unrefined(self) -> bool:
        # What has a name may move in a round only.
        return False

    @property
    def first_prior(self) -> PartitionPrior:
        """The prior with which the stream began."""
        if self.spec is None:
            return self.chain.prior
        return build_prior(self.spec.prior, self.spec.prior_params)

    # Rounds.

    def report(self, number: int, applied: BatchOutcome, now: float) -> ShardReport:
        """Begin round ``number`` with the atoms that are there, and say which blocks they are."""
        self.rounds.begin(number, self.seq, self.publication)
        return self._reported(applied, now)

    def note_lent(self) -> None:
        """Replay a report."""
        self._reported(BatchOutcome(), 0.0)

    def _reported(self, applied: BatchOutcome, now: float) -> ShardReport:
        out, self.rounds.out = self.rounds.out, 0
        super()._forget(applied, now)
        self.rounds.out, self.answered = out, REPORT
        return self.part.report()

    def _forget(self, applied: BatchOutcome, now: float) -> None:
        """Not in its turn, which may be in the middle of a round."""

    def remove(self, seqs: Ids, applied: BatchOutcome, now: float) -> None:
        """Take observations out of the model, by number, as soon as no round is out."""
        if self.rounds.out:
            self.forgetting.replace(seqs)
        else:
            super().remove(seqs, applied, now)

    def _leave(self, atoms: Ids, applied: BatchOutcome, now: float) -> None:
        super()._leave(atoms, applied, now)
        self.part.forget(atoms)

    def answer(
        self, step: int, key: RoundKey, learned: Mapping[str, Any], asked: Message
    ) -> Message:
        """What it answers in a step before that of turns; in order, and each step once."""
        said = answer(self.part, step, key, self.model_of(learned), asked)
        self.answered = step
        return said

    def take_turn(
        self, key: RoundKey, learned: Mapping[str, Any], turn: ShardTurn
    ) -> tuple[Arrays, Refinement]:
        """End the round; returns what a replay ends it with."""
        cadence = self.cadence
        budget = Budget(role_kernels(_ROLE, cadence.kernels), max(cadence.rounds, 1), 0)
        numbers = key.of_shard(self.part.shard, 0)
        end, refinement = self.part.take_turn(numbers, self.model_of(learned), turn, budget)
        self._ended()
        return _packed(end, learned), refinement

    def adopt_round(self, payload: Arrays) -> None:
        """Replay the end of a round."""
        end, learned = _unpacked(payload)
        self.part.take_again(self.model_of(learned), end)
        self._ended()

    def _ended(self) -> None:
        self.rounds.end()
        self.answered = turn_step(self.part.n_shards)
        self._arrivals = None
        self._draws.add(self.chain.labels, self._n_taken)

    def model_of(self, learned: Mapping[str, Any]) -> Learned:
        """The model with the hyperparameters of a round."""
        return model_of(self.chain.family, learned)

    def _look_again(self, _applied: BatchOutcome, _now: float) -> None:
        """What the family sees is that of all shards."""

    def forget_lent(self) -> None:
        """A round is given up by nobody: others wait for this shard's turn."""


def words_of(model: Learned) -> dict[str, Any]:
    """Say hyperparameters in JSON-able values."""
    family, prior = model
    return {
        "family": spec_of(family).parameters(family),
        "prior": [prior.name, prior.parameters()],
    }


def model_of(family: Family, learned: Mapping[str, Any]) -> Learned:
    """Undo `words_of` for a family of the same kind."""
    return with_parameters(family, learned["family"]), build_prior(*learned["prior"])


def _packed(end: TurnEnd, learned: Mapping[str, Any]) -> Arrays:
    return {
        "atoms": end.atoms,
        "names": end.names,
        "about": np.array([end.next_name, end.leased], dtype=np.int64),
        "learned": np.frombuffer(json.dumps(learned).encode(), dtype=np.uint8),
    }


def _unpacked(payload: Arrays) -> tuple[TurnEnd, dict[str, Any]]:
    next_name, leased = payload["about"].tolist()
    end = TurnEnd(payload["atoms"], payload["names"], next_name, bool(leased))
    return end, json.loads(payload["learned"].tobytes())
