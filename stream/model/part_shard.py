"""The writer's state of one shard of a stream: it refines in rounds with the other shards.

It takes arrivals as any stream does, and refines and publishes nothing by itself. A round begins
for it with its report, of the atoms that are there then, and ends with its turn. What it answers in
between follows from its state at the report; the end of its turn is in SQL as that of a round of
leases is, and a replay takes it from there. What is to leave the model leaves before a report: in
the middle of a round others count on it.

What is published is published of all shards, and told with a turn: the shard then shows its own
observations as it was told. Between two publications an arrival is shown in the cluster that its
block had in the newest one, in whatever shard the block began; in one that is younger than that, in
the cluster that most of the block is in here; and in a block of its own, in the cluster of the
others' block to which it most probably belongs, or in a new one, whose id is the shard's own.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.chain.growing import taken_from, under
from weald.mcmc.estimate.groups import FEWEST
from weald.mcmc.estimate.valleys import members_of
from weald.mcmc.leases.leases import Budget
from weald.mcmc.schedule.kernel_report import Refinement
from weald.mcmc.schedule.stream_kernels import role_kernels
from weald.mcmc.settings import RefinementSettings
from weald.mcmc.sharded.message_arrays import Message
from weald.mcmc.sharded.round_messages import (
    BlockSums,
    Items,
    ItemsAsked,
    ShardReport,
    ShardTurn,
    ShownItems,
    ShownSums,
)
from weald.mcmc.sharded.round_steps import REPORT, RoundKey, answer, turn_step
from weald.mcmc.sharded.shard_chain import Learned, ShardChain, TurnEnd
from weald.storage.commit.commit import Certainty, ClusterRow, PublicationRow
from weald.stream.publication.arrival_router import Arrivals
from weald.stream.publication.certainty import PERCENT
from weald.stream.publication.groups import MEMBERS
from weald.stream.publication.judgement import ASKED
from weald.stream.publication.named_draws import NamedDraws
from weald.stream.publication.publication import LineageEvent, Published
from weald.stream.publication.whole import own_ids
from weald.stream.settings import MemorySettings
from weald.stream.tables.contingency import numbered, places_in
from weald.stream.telemetry.steps import Step, untimed
from weald.treecore.family import spec_of
from weald.treecore.family.interface.base import Family
from weald.treecore.family.same_kind import with_parameters
from weald.treecore.prior import PartitionPrior, build_prior

from .batch_outcome import BatchOutcome
from .mixture_shard import MixtureShard
from .shard import SUMMED_AT_A_TIME, Arrays, Ids

__all__ = ["PartShard", "model_of", "words_of"]

PART, NAMED, TOLD, ELSEWHERE = "part.", "named_draws.", "shown.", "elsewhere."
# What is saved beside the chain and its draws.
_ARRAYS = ("item", "placed", "home_names", "home_clusters")
_NONE = -1
# Members of all clusters together that a publication looks at.
_MOST_MEMBERS = 4_000
# Kernels are those of a lease that any worker may have.
_ROLE = "all"


class ShownChange(NamedTuple):
    """What a publication of the whole has changed in a shard, as a replay needs it.

    Attributes
    ----------
    about:
        Number of the publication, and of the last observation that it covers.
    atoms, clusters:
        Atoms (n) whose cluster has changed, and what it is now (n).
    names, homes:
        Blocks (j, ascending), and the cluster (j) that arrivals in each are shown in.
    """

    about: Ids
    atoms: Ids
    clusters: Ids
    names: Ids
    homes: Ids


class PartShard(MixtureShard):
    """One shard of a stream in memory.

    Attributes
    ----------
    part : ShardChain
        Its chain as rounds see it.
    answered : int
        The last step of the round that is out that it has answered.
    named_draws : NamedDraws
        The blocks of its atoms in the last rounds.
    item : ndarray of int64
        The item that each atom of the report is in, by its number there, once they were told.
    placed : ndarray of int64
        Block of each atom by its id as the last turn has left it; -1 for what came since. In the
        middle of a round names change, and the chain's blocks do not.
    home_names, home_clusters : ndarray of int64
        Blocks by the newest publication, ascending, and the cluster of each.
    untold : ndarray of int64
        The first of its own ids that the newest publication has not seen, and that the last report
        has not: clusters from the former on are this shard's alone.
    """

    part: ShardChain
    answered = REPORT
    named_draws: NamedDraws
    item: Ids
    placed: Ids
    home_names: Ids
    home_clusters: Ids
    untold: Ids

    def state(self) -> Arrays:
        """Named arrays from which `restore` continues, bit for bit."""
        own = self.part.own_state() | {"answered": np.array([self.answered])}
        own |= {"untold": self.untold.copy()}
        own |= {name: getattr(self, name).copy() for name in _ARRAYS}
        own |= under(NAMED, self.named_draws.state())
        return super().state() | under(PART, own)

    @classmethod
    def restore(cls, state: Arrays, family: Family) -> Self:
        """Undo `state`; cadence and memory are those under which it was saved, for the replay."""
        shard = super().restore(state, family)
        own = taken_from(state, PART)
        shard.part, shard.answered = ShardChain.on(shard.chain, own), int(own["answered"][0])
        shard.named_draws = NamedDraws.restore(taken_from(own, NAMED))
        for name in _ARRAYS:
            setattr(shard, name, own[name].copy())
        # Earlier versions did not keep it.
        shard.untold = own.get("untold", np.repeat(shard.next_cluster, 2)).copy()
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
        shard.part, shard.named_draws = ShardChain.start(chain, *place), NamedDraws()
        shard._next_cluster, _ = own_ids(*place)
        shard.untold = np.repeat(shard.next_cluster, 2)
        for name in _ARRAYS:
            setattr(shard, name, np.empty(0, dtype=np.int64))
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

    # What is shown.

    @property
    def _publication_due(self) -> bool:
        # Of all shards, and not by itself.
        return False

    def conclude(self, _now: float, _step: Step = untimed) -> BatchOutcome:
        """Nothing is published by one shard."""
        return BatchOutcome()

    def go_on(self, _now: float, _step: Step = untimed) -> BatchOutcome:
        """Nothing is published by one shard."""
        return BatchOutcome()

    def adopt(self, shown: Published, covered: int, live: Sequence[ClusterRow]) -> None:
        """Show what SQL shows, and go on giving ids of the shard's own."""
        own = self._next_cluster
        super().adopt(shown, covered, live)
        first, step = own_ids(self.part.shard, self.part.n_shards)
        later = max(own, shown.next_cluster)
        self._next_cluster = later + (first - later) % step
        self.untold = np.repeat(self._next_cluster, 2)

    @property
    def _cluster_step(self) -> int:
        return own_ids(self.part.shard, self.part.n_shards)[1]

    def _homes(self) -> Arrivals:
        """Where the blocks' arrivals go until something else is published."""
        if self._arrivals is None:
            super()._homes().pin(self._published_homes())
        return super()._homes()

    def _published_homes(self) -> dict[int, int]:
        """The cluster of each block, by its slot, that the newest publication has shown."""
        atoms = np.flatnonzero(self.placed != _NONE)
        at = places_in(self.home_names, self.placed[atoms])
        known = at >= 0
        slots, first = np.unique(self.chain.labels_of(atoms[known]), return_index=True)
        clusters = self.home_clusters[at[known][first]]
        return dict(zip(slots.tolist(), clusters.tolist(), strict=True))

    def _home_elsewhere(self, atom: int) -> int | None:
        rows = np.asarray(self.chain.atom_rows(np.array([atom])), np.float64)
        at = places_in(self.home_names, self.part.joins(rows)[0])[0]
        return None if at < 0 else int(self.home_clusters[at])

    def _retirements(self, touched: set[int], now: float) -> list[LineageEvent]:
        """Renew the table's rows; events of those that ended and that no publication has seen.

        Whether another has ended only all shards can say.
        """
        first, step = own_ids(self.part.shard, self.part.n_shards)
        return [
            event
            for event in super()._retirements(touched, now)
            if event.cluster >= self.untold[0] and (event.cluster - first) % step == 0
        ]

    def _change_of(self, shown: ShownItems, atoms: Ids, items: Ids) -> ShownChange:
        """What a publication changes; ``atoms`` are those of its ``items``.

        What came since the report goes where most of its cluster goes.
        """
        present = self.atom_table.present
        now = self.atom_table.cluster[present]
        at = places_in(shown.before, now)
        known = at >= 0
        after = now.copy()
        after[known] = shown.heirs[at[known]]
        after[np.searchsorted(present, atoms)] = shown.clusters[items]
        moved = np.flatnonzero(after != now)
        about = np.array([shown.publication, self.rounds.seq])
        return ShownChange(about, present[moved], after[moved], shown.names, shown.homes)

    def _show(self, change: ShownChange) -> None:
        """Show what was published, in a replay too."""
        table = self.atom_table
        touched = {*table.cluster[change.atoms].tolist(), *change.clusters.tolist()}
        table.cluster[change.atoms] = change.clusters
        self.publication, self._published_seq = change.about.tolist()
        self._published_taken = self._turn_taken = self._n_taken
        self.home_names, self.home_clusters = change.names, change.homes
        self._arrivals = None
        self.untold[0] = self.untold[1]
        self._base_measure()
        self._regroup(touched | self.table.worn)

    def _tell(self, change: ShownChange, applied: BatchOutcome, now: float) -> None:
        """Tell SQL of a publication that is shown."""
        base_measure, family_params = self._base_measure()
        applied.reassigned.append(self.atom_table.reassignment(self.publication, change.atoms))
        applied.publications.append(
            PublicationRow(
                number=self.publication,
                seq=self._published_seq,
                time=now,
                # Nobody knows it of one shard.
                log_joint_before=math.nan,
                log_joint=math.nan,
                n_clusters=len(self.table),
                n_observations=self.atom_table.n_observations,
                prior_params=self.chain.prior.parameters(),
                base_measure=base_measure,
                family_params=family_params,
                n_atoms=self.chain.n_atoms,
                disruption=0.0,
            )
        )

    def shown_sums(self) -> ShownSums:
        """What it has of the clusters that it shows."""
        ids = self.table.ids
        rows = np.asarray(self.table.totals(ids))
        sums = BlockSums(ids, np.rint(rows[:, 0]).astype(np.int64), rows)
        atoms, n_shards = self.atom_table.present, self.part.n_shards
        cluster, size = self.atom_table.cluster[atoms], self.atom_table.size[atoms]
        kinds, place = numbered(cluster)
        most = min(MEMBERS, _MOST_MEMBERS // max(kinds.shape[0], 1))
        most = max(math.ceil(most / n_shards), FEWEST)
        chosen = members_of(place, np.arange(kinds.shape[0]), most)[0] if atoms.size else atoms
        rounds, names = self.named_draws.some(atoms[chosen])
        n_asked = min(atoms.shape[0], math.ceil(ASKED / n_shards))
        asked = np.linspace(0, atoms.shape[0] - 1, n_asked).astype(np.int64)
        asked = asked[size[asked] == 1]
        return ShownSums(
            sums,
            cluster[chosen],
            np.asarray(self.chain.atom_rows(atoms[chosen])),
            rounds,
            names,
            cluster[asked],
            np.asarray(self.chain.atom_rows(atoms[asked])),
        )

    def _certainty_of(self, percent: NDArray[np.uint8], atoms: Ids) -> Certainty:
        """How sure (2, n) all shards' draws are of these atoms (n), as they are shown now."""
        table, sure = self.atom_table, percent / PERCENT
        ids, place = numbered(table.cluster[atoms])
        size = np.bincount(place, minlength=ids.shape[0])
        probability, stability = (np.bincount(place, each, ids.shape[0]) / size for each in sure)
        means = tuple(float(each.mean()) if each.size else math.nan for each in sure)
        new = self._draws.news(atoms, percent, np.full(atoms.shape[0], fill_value=True))
        told_of = table.seq[atoms[new]]
        return Certainty(
            told_of, percent[:, new], ids, probability, stability, (means[0], means[1])
        )

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
        self.untold[1] = self._next_cluster
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
        if len(atoms) == 0:
            return
        super()._leave(atoms, applied, now)
        self._arrivals = None  # the homes that were shown are those of blocks whose atoms are there
        self.part.forget(atoms)
        self.named_draws.forget(atoms)
        self.placed[atoms[atoms < self.placed.shape[0]]] = _NONE

    def answer(
        self, step: int, key: RoundKey, learned: Mapping[str, Any], asked: Message
    ) -> Message:
        """What it answers in a step before that of turns; in order, and each step once."""
        if isinstance(asked, ItemsAsked):
            said: Message = self._items(asked)
        else:
            said = answer(self.part, step, key, self.model_of(learned), asked)
        self.answered = step
        return said

    def _items(self, asked: ItemsAsked) -> Items:
        """Items of the atoms of the report; asked for first, while names are those of then."""
        atoms, table = self.part.reported, self.atom_table
        cluster, size = table.cluster[atoms], table.size[atoms]
        shown = cluster, size, self._sums_of(atoms, cluster, size)
        now = self.part.named[atoms]
        items, self.item = self.named_draws.items(asked.rounds, atoms, now, shown)
        return items

    def _sums_of(self, atoms: Ids, cluster: Ids, size: Ids) -> BlockSums:
        """Sums of these atoms (n) by the cluster (n) that they are shown in."""
        ids, place = numbered(cluster)
        width = self.chain.atom_rows(atoms[:0]).shape[1]
        rows = np.zeros((ids.shape[0], width))
        for start in range(0, atoms.shape[0], SUMMED_AT_A_TIME):
            part = slice(start, start + SUMMED_AT_A_TIME)
            np.add.at(rows, place[part], np.asarray(self.chain.atom_rows(atoms[part])))
        return BlockSums(ids, np.bincount(place, size, ids.shape[0]).astype(np.int64), rows)

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

    def take_turn_and_show(
        self,
        key: RoundKey,
        learned: Mapping[str, Any],
        turn: ShardTurn,
        shown: ShownItems,
        told: tuple[BatchOutcome, float],
    ) -> tuple[Arrays, Refinement]:
        """End the round as `take_turn` does, and show what was published in it.

        ``told`` is what SQL is told in, and the time.
        """
        atoms = self.part.reported
        held = np.isin(atoms, self.chain.held)
        atoms, items = atoms[held], self.item[held]
        change = self._change_of(shown, atoms, items)
        payload, refinement = self.take_turn(key, learned, turn)
        self._show(change)
        self._tell(change, *told)
        told[0].certainties.append(self._certainty_of(shown.percent[:, items], atoms))
        return payload | under(TOLD, change._asdict()), refinement

    def adopt_round(self, payload: Arrays) -> None:
        """Replay the end of a round."""
        end, learned = _unpacked(payload)
        self.part.take_again(self.model_of(learned), end)
        self._ended()
        if told := taken_from(payload, TOLD):
            self._show(ShownChange(**told))

    def _ended(self) -> None:
        self.rounds.end()
        self.answered = turn_step(self.part.n_shards)
        self._arrivals = None
        self.item = np.empty(0, dtype=np.int64)
        self.placed = self.part.named.copy()
        self.named_draws.add(self.placed, self.rounds.taken)

    def model_of(self, learned: Mapping[str, Any]) -> Learned:
        """The model with the hyperparameters of a round."""
        return model_of(self.chain.family, learned)

    def _look_again(self, _applied: BatchOutcome, _now: float) -> None:
        """What the family sees is that of all shards."""

    @property
    def refines_concurrently(self) -> bool:
        """What refines the shards of a stream is their rounds."""
        return False

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
    return under(ELSEWHERE, end.elsewhere._asdict()) | {
        "atoms": end.atoms,
        "names": end.names,
        "about": np.array([end.next_name, end.leased], dtype=np.int64),
        "learned": np.frombuffer(json.dumps(learned).encode(), dtype=np.uint8),
    }


def _unpacked(payload: Arrays) -> tuple[TurnEnd, dict[str, Any]]:
    next_name, leased = payload["about"].tolist()
    elsewhere = BlockSums(**taken_from(payload, ELSEWHERE))
    end = TurnEnd(payload["atoms"], payload["names"], next_name, bool(leased), elsewhere)
    return end, json.loads(payload["learned"].tobytes())
