"""Restricted Gibbs split-merge in place, for likelihoods that couple all blocks.

As :mod:`weald.mcmc.split_merge.rgsm`, with the partition itself at the state that is tried: the
atoms of one or two blocks are taken out and launched on two new ones, some scans improve that, and
one more proposes the split or is forced to the present division. The launch depends on the anchors,
the other atoms and labels of pieces only. (``split-merge-samplers.md`` sections 2.3 and 2.8.)
"""

from typing import Any

from numpy.random import Generator

from weald.mcmc.split_merge.proposal import decide, gather_anchored
from weald.mcmc.state.atom_state import MERGE, SPLIT, Info
from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.draw import choose, coin, shuffle
from weald.treecore.partition.partition import Model

from .assignment import (
    go_to,
    log_seat,
    log_target,
    new_block,
    normalizer,
    put_in,
    set_aside,
    take_out,
)
from .scratch import Labels, Notes

__all__ = ["divide_or_join", "join", "leave_all", "put_in_order", "seat_on"]


@inner
def seat_on(
    rng: Generator,
    state: Any,
    model: Model,
    i: int,
    sides: tuple[int, int],
    forced: int,
) -> float:
    """Put atom i, which is in no block, into one of two blocks; the log probability of that one.

    It is drawn by the posterior, or side ``forced`` (0 or 1) if that is not negative.
    """
    state.members[0] = i
    set_aside(state, model, state.members, 1)
    first = log_seat(state, model, sides[0])
    second = log_seat(state, model, sides[1])
    state.log_weights[0], state.log_weights[1] = first, second
    log_total = normalizer(state.log_weights, 2)
    side = choose(rng, state.log_weights, 2) if forced < 0 else forced
    put_in(state, model, i, sides[side])
    return (first if side == 0 else second) - log_total


@inner
def put_in_order(rng: Generator, state: Any, n: int) -> None:
    """Copy ``members[:n]`` into ``order``, in an order drawn anew."""
    for at in range(n):
        state.order[at] = state.members[at]
    shuffle(rng, state.order, n)


@inner
def leave_all(state: Any, model: Model, notes: Notes, n: int) -> None:
    """Take ``order[:n]`` out of their blocks, noting where they were."""
    for at in range(n):
        i = state.order[at]
        notes.before[i] = state.partition.label[i]
    for at in range(n):
        take_out(state, model, state.order[at])


@inner
def join(state: Any, model: Model, n: int, source: int, target: int) -> None:
    """Move those of ``order[:n]`` that are in block ``source`` into another."""
    for at in range(n):
        i = state.order[at]
        if state.partition.label[i] == source:
            take_out(state, model, i)
            put_in(state, model, i, target)


@inner
def _launch(
    rng: Generator,
    state: Any,
    model: Model,
    common: Labels,
    pair: tuple[int, int],
    sides: tuple[int, int],
    n: int,
) -> None:
    guided = common.shape[0] > 0
    for at in range(n):
        v = state.order[at]
        if guided and common[v] == common[pair[0]]:
            side = 0
        elif guided and common[v] == common[pair[1]]:
            side = 1
        else:
            side = 0 if coin(rng, 0.5) else 1
        put_in(state, model, v, sides[side])


@inner
def divide_or_join(
    rng: Generator,
    state: Any,
    model: Model,
    notes: Notes,
    scans: int,
    common: Labels,
    pair: tuple[int, int],
) -> Info:
    """Propose to separate or to join the blocks of two different atoms, and decide.

    ``common``, if not of length 0, labels pieces: those of the anchors are launched with them.
    """
    i, j = pair
    partition = state.partition
    first, second = partition.label[i], partition.label[j]
    # The atoms that may change sides, in an order that neither direction of the move depends on.
    n = gather_anchored(state, i, j)
    put_in_order(rng, state, n)
    state.order[n] = i
    state.order[n + 1] = j
    # Likelihoods that couple all blocks: the ratio is of whole posteriors, before and after.
    log_ratio = -log_target(state, model)
    # From here both directions do the same until the last scan: the launch state forgets how the
    # atoms were divided, so that its own probability cancels (section 2.3).
    leave_all(state, model, notes, n + 2)
    sides = (new_block(state), -1)
    put_in(state, model, i, sides[0])
    sides = (sides[0], new_block(state))
    put_in(state, model, j, sides[1])
    _launch(rng, state, model, common, pair, sides, n)
    # The last scan alone is the proposal; those before it only make the launch state a good one.
    log_q = 0.0
    for scan in range(scans + 1):
        log_q = 0.0
        for at in range(n):
            v = state.order[at]
            forced = -1
            # A merge needs the probability of the split that would undo it: each atom is forced to
            # the side that it came from.
            if scan == scans and first != second:
                forced = 1 if notes.before[v] == second else 0
            take_out(state, model, v)
            log_q += seat_on(rng, state, model, v, sides, forced)
    if first == second:
        info = decide(rng, SPLIT, log_ratio + log_target(state, model) - log_q)
    else:
        # The forced scan has rebuilt the present two blocks; the merged one is made of them.
        join(state, model, n + 2, sides[1], sides[0])
        info = decide(rng, MERGE, log_ratio + log_target(state, model) + log_q)
    if not info.accepted:
        go_to(state, model, notes.before, state.order[: n + 2], notes.home)
    return info
