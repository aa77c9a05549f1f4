"""One reconfiguration: what ``arm``, ``sarm`` and ``srm`` share.

Two atoms i and j are joined or separated, and on the way every other atom may move: those of the
blocks of i and j (*insiders*) anywhere, the rest (*outsiders*) to the blocks of i and j. Atoms that
two guides keep together may first move as one piece. In order, from a state z:

1. All insiders are taken out. Back come i and j, each with its piece: as two blocks where i and j
   were together, as one where they were apart.
2. The other pieces, by decreasing size and then by their first atom, are placed whole by a Gibbs
   draw over all blocks and a new one. A piece's first atom, its *earmark*, then stays.
3. Every other atom in turn: an insider is (re)placed by a Gibbs draw over all blocks and a new one;
   an outsider chooses among the blocks of i and j and its own, but has to stay where it is the
   last of the original atoms of its block and insiders have joined them (equation 17).

With that condition the path from z to a state z* is unique, so the product of the probabilities on
the way is T(z* | z). The reverse is the same walk from z*, each choice forced so that z is reached:
an insider goes where an atom of its block in z already sits for good (outsiders that stay, earmarks
and atoms placed one by one), else to a new block. Where that is impossible, T(z | z*) is 0.

"In turn" and "first" are by an order of the atoms that is drawn anew for each move, for both walks.
(Herlau et al. algorithms 2 and 3; ``split-merge-samplers.md`` section 2.8.)
"""

from math import inf

from numpy.random import Generator

from weald.mcmc.assignment.assignment import (
    go_to,
    log_seat,
    log_seat_alone,
    log_target,
    log_weights_everywhere,
    new_block,
    normalizer,
    put_in,
    set_aside,
    take_out,
)
from weald.mcmc.assignment.scratch import (
    PLACED,
    SETTLED,
    Labels,
    Notes,
    Walk,
    begin,
    claim_homes,
    cut,
)
from weald.mcmc.split_merge.proposal import decide
from weald.mcmc.state.atom_state import MERGE, SPLIT, Info
from weald.mcmc.state.block_state import BlockState
from weald.treecore.compiled.compile import inner
from weald.treecore.compiled.draw import choose, shuffle
from weald.treecore.partition.partition import Model

__all__ = ["reconfigure"]


@inner
def _draw(
    rng: Generator, state: BlockState, notes: Notes, n: int, forced: int
) -> tuple[int, float]:
    """Index drawn by ``log_weights[:n]``, or ``forced`` if not negative; its log probability."""
    log_total = normalizer(state.log_weights, n)
    if forced >= 0:
        return forced, state.log_weights[forced] - log_total
    # Drawing overwrites the weights.
    for at in range(n):
        notes.log_kept[at] = state.log_weights[at] - log_total
    chosen = choose(rng, state.log_weights, n)
    return chosen, notes.log_kept[chosen]


@inner
def _place_freely(
    rng: Generator, state: BlockState, model: Model, notes: Notes, goal: Labels, n: int
) -> float:
    """Place ``members[:n]``, which are in no block, anywhere; the first of them settles.

    With a ``goal`` (not of length 0) the place is forced. Returns its log probability.
    """
    partition = state.partition
    set_aside(state, model, state.members, n)
    k = log_weights_everywhere(state, model)
    forced = -1
    if goal.shape[0] > 0:
        home = notes.home[goal[state.members[0]]]
        forced = k if home == -1 else partition.position[home]
    chosen, log_p = _draw(rng, state, notes, k + 1, forced)
    slot = new_block(state) if chosen == k else partition.slots[chosen]
    for at in range(n):
        put_in(state, model, state.members[at], slot)
        notes.standing[state.members[at]] = PLACED
    notes.standing[state.members[0]] = SETTLED
    if goal.shape[0] > 0:
        notes.home[goal[state.members[0]]] = slot
    return log_p


@inner
def _place_narrowly(
    rng: Generator,
    state: BlockState,
    model: Model,
    notes: Notes,
    goal: Labels,
    v: int,
    pair: tuple[int, int],
) -> float:
    """Let outsider v stay or join the block of i or of j; as :func:`_place_freely`."""
    partition = state.partition
    first, second = partition.label[pair[0]], partition.label[pair[1]]
    own = notes.own[v]
    forced = -1
    if goal.shape[0] > 0:
        forced = 0 if goal[v] == goal[pair[0]] else (1 if goal[v] == goal[pair[1]] else 2)
    # Equation 17: the last original atom of a block that insiders have joined stays, without a
    # draw, since otherwise two paths would lead to one state.
    if notes.n_original[own] == 1 and partition.n_members[own] > 1:
        return -inf if forced in (0, 1) else 0.0
    take_out(state, model, v)
    state.members[0] = v
    set_aside(state, model, state.members, 1)
    emptied = partition.n_members[own] == 0
    state.log_weights[0] = log_seat(state, model, first)
    # Where i and j are together there is one block to join.
    state.log_weights[1] = -inf if first == second else log_seat(state, model, second)
    if emptied:
        state.log_weights[2] = log_seat_alone(state, model)
    else:
        state.log_weights[2] = log_seat(state, model, own)
    chosen, log_p = _draw(rng, state, notes, 3, forced)
    if chosen == 2 and emptied:
        own = new_block(state)
        if goal.shape[0] > 0:
            notes.home[goal[v]] = own
    elif chosen < 2:
        notes.n_original[own] -= 1
    put_in(state, model, v, first if chosen == 0 else (second if chosen == 1 else own))
    return log_p


@inner
def _put_piece(state: BlockState, model: Model, notes: Notes, i: int, k: int) -> None:
    """Put the rest of the piece of i, which has settled in block k, there for now."""
    v = notes.first_of[notes.piece[i]]
    while v >= 0:
        if v != i:
            put_in(state, model, v, k)
            notes.standing[v] = PLACED
        v = notes.following[v]


@inner
def _place_piece(
    rng: Generator, state: BlockState, model: Model, notes: Notes, goal: Labels, piece: int
) -> float:
    """Place a whole piece; returns the log probability of its place."""
    n, v = 0, notes.first_of[piece]
    while v >= 0:
        state.members[n] = v
        n += 1
        v = notes.following[v]
    return _place_freely(rng, state, model, notes, goal, n)


@inner
def _settle_pair(
    state: BlockState, model: Model, notes: Notes, order: Labels, pair: tuple[int, int]
) -> tuple[int, int]:
    """Take all insiders out and put i and j back, apart if they were together; their blocks."""
    i, j = pair
    together = notes.own[i] == notes.own[j]
    for at in range(order.shape[0]):
        if notes.inside[order[at]]:
            take_out(state, model, order[at])
    first = new_block(state)
    put_in(state, model, i, first)
    second = new_block(state) if together else first
    put_in(state, model, j, second)
    notes.standing[i] = notes.standing[j] = SETTLED
    return first, second


@inner
def _walk(
    rng: Generator,
    state: BlockState,
    model: Model,
    notes: Notes,
    walk: Walk,
    common: Labels,
    pair: tuple[int, int],
    order: Labels,
    goal: Labels,
) -> float:
    """Go to a proposed state, or to the ``goal`` if it is not of length 0.

    Returns the log probability of the way; minus infinity, with the state anywhere, if there is
    none to the goal.
    """
    i, j = pair
    begin(state, notes, order, pair)
    # By the blocks that the walk starts from: the walk back cuts its own.
    second = notes.own[j]
    n_pieces = cut(notes, common, order, second) if walk.guided else 0
    if goal.shape[0] > 0 and not claim_homes(state, notes, goal, order, pair):
        return -inf
    # Step 1: what divides or joins i and j; everything after it only finds a place for the others.
    blocks = _settle_pair(state, model, notes, order, pair)
    if goal.shape[0] > 0:
        notes.home[goal[i]] = blocks[0]
        notes.home[goal[j]] = blocks[1]
    if walk.guided:
        _put_piece(state, model, notes, i, blocks[0])
        _put_piece(state, model, notes, j, blocks[1])
    log_t = 0.0
    # Step 2: the other pieces whole, largest first; each one's first atom settles.
    if walk.whole:
        for at in range(n_pieces):
            piece = notes.pieces[at]
            if piece not in (notes.piece[i], notes.piece[j]):
                log_t += _place_piece(rng, state, model, notes, goal, piece)
    # Step 3: every other atom in turn. Those that came with a piece are drawn once more, alone.
    for at in range(order.shape[0]):
        v = order[at]
        if notes.standing[v] == SETTLED:
            continue
        if not notes.inside[v]:
            log_t += _place_narrowly(rng, state, model, notes, goal, v, pair)
            continue
        if notes.standing[v] == PLACED:
            take_out(state, model, v)
        state.members[0] = v
        log_t += _place_freely(rng, state, model, notes, goal, 1)
    return log_t


@inner
def reconfigure(
    rng: Generator,
    state: BlockState,
    model: Model,
    notes: Notes,
    walk: Walk,
    common: Labels,
    pair: tuple[int, int],
    live: Labels,
) -> Info:
    """Propose to separate or to join two different atoms of ``live``, and decide.

    ``common`` are labels (n, from 0 to n - 1) of what may move whole; it and the pair must not
    depend on the partition.
    """
    partition = state.partition
    order = state.order[: live.shape[0]]
    for at in range(live.shape[0]):
        order[at] = live[at]
        notes.before[live[at]] = partition.label[live[at]]
    shuffle(rng, order, live.shape[0])
    move = SPLIT if partition.label[pair[0]] == partition.label[pair[1]] else MERGE
    log_ratio = -log_target(state, model)
    free = notes.after[:0]
    log_ratio -= _walk(rng, state, model, notes, walk, common, pair, order, free)
    log_ratio += log_target(state, model)
    for at in range(live.shape[0]):
        notes.after[live[at]] = partition.label[live[at]]
    # The same walk from the proposal, each choice forced so that the start is reached.
    log_back = _walk(rng, state, model, notes, walk, common, pair, order, notes.before)
    info = decide(rng, move, log_ratio + log_back)
    if info.accepted:
        go_to(state, model, notes.after, live, notes.home)
    # A walk that found no way back stopped half way; one that did has arrived at the start.
    elif log_back == -inf:
        go_to(state, model, notes.before, live, notes.home)
    return info
