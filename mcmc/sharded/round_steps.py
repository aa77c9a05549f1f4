"""A round as numbered steps: what all shards are asked in each, and what a shard answers.

Whoever asks needs nothing beside reports and answers: from these the round is made again, up to any
step and with the same bits. A step whose question would be empty is left out, and that of items
where nothing is to be published.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

from numpy.random import Generator

from .global_round import GlobalRound
from .message_arrays import Message
from .round_messages import (
    Anchors,
    AnchorsAsked,
    Items,
    ItemsAsked,
    Pairs,
    Redraw,
    Redrawn,
    Sides,
    numbers_of,
)
from .shard_chain import Learned, ShardChain

__all__ = [
    "ANCHORS",
    "ITEMS",
    "REDRAW",
    "REPORT",
    "SIDES",
    "RoundKey",
    "RoundSteps",
    "answer",
    "shown_step",
    "turn_step",
]

# Sides go round in as many steps as there are shards; the one after them is that of turns.
REPORT, ITEMS, REDRAW, ANCHORS, SIDES = range(5)


def turn_step(n_shards: int) -> int:
    """Return the number of the last step, in which turns are taken."""
    return SIDES + n_shards


def shown_step(n_shards: int) -> int:
    """Return the number under which shards are told, with their turns, what is published."""
    return turn_step(n_shards) + 1


class RoundKey(NamedTuple):
    """What a round's random numbers come from, and whose they are."""

    seed: int
    number: int

    def of_shard(self, shard: int, stage: int) -> Generator:
        """Random numbers of a shard: 0 for its turn, then for sides, the last for its blocks."""
        return numbers_of(self.seed, self.number, 1 + shard, stage)


class RoundSteps:
    """Goes through a round of which all shards have reported.

    Attributes
    ----------
    round : GlobalRound
    step : int
        Number of the step that shards are asked in now.
    items : list of Items
        What shards have told for a publication; empty where none was asked.
    """

    def __init__(self, whole: GlobalRound) -> None:
        self.round = whole
        self.items: list[Items] = []
        self._asked: ItemsAsked | None = None
        self._first = self.step = REDRAW if whole.redraw_of(0) is not None else ANCHORS

    def publish(self, items: ItemsAsked) -> None:
        """Ask for items before anything else."""
        self._asked, self.step = items, ITEMS

    def questions(self) -> list[Message]:
        """What each shard is asked in this step; only once in that of turns, which it decides."""
        at, every = self.round, range(self.round.n_shards)
        if self.step == ITEMS:
            return [cast("ItemsAsked", self._asked) for _ in every]
        if self.step == REDRAW:
            return [cast("Redraw", at.redraw_of(shard)) for shard in every]
        if self.step == ANCHORS:
            return [at.anchors_of(shard) for shard in every]
        if self.step < turn_step(at.n_shards):
            return [at.pairs_of(shard, self.step - SIDES) for shard in every]
        return list(at.turns())

    def hear(self, answers: Sequence[Message]) -> None:
        """Take the answers of all shards to this step, and go on to the next."""
        at, last = self.round, turn_step(self.round.n_shards)
        if self.step == ITEMS:
            self.items = list(cast("Sequence[Items]", answers))
            self.step = self._first
            return
        if self.step == REDRAW:
            at.hear_redrawn(cast("Sequence[Redrawn]", answers))
            self.step = ANCHORS
            return
        if self.step == ANCHORS:
            at.hear_anchors(cast("Sequence[Anchors]", answers))
            self.step = SIDES if at.n_pairs else last
            return
        for shard, each in enumerate(answers):
            at.hear_sides(shard, self.step - SIDES, cast("Sides", each))
        self.step += 1


def answer(shard: ShardChain, step: int, key: RoundKey, model: Learned, asked: Message) -> Message:
    """What a shard answers in a step before that of turns; what it has drawn it keeps."""
    if isinstance(asked, Redraw):
        return shard.redraw(key.of_shard(shard.shard, shard.n_shards + 1), asked)
    if isinstance(asked, AnchorsAsked):
        return shard.anchors(*asked)
    if isinstance(asked, Pairs):
        numbers = key.of_shard(shard.shard, step - SIDES + 1)
        return shard.sides(numbers, model, asked)
    raise ValueError(f"nobody is asked {type(asked).__name__} in step {step}")
