"""On random data of any size, a split and its exact reverse have opposite log ratios.

:class:`Script` draws allocation orders as a function of the atoms' ids and a seed, so that the
merge imagines the very allocation that the split made, whatever the order of the lists.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.exact.cases import FAMILY_NAMES, PRIOR_NAMES, random_state
from tests.exact.partition_checks import check_partition
from weald.mcmc.split_merge import dm, rgsm, rm, rsm, sams, sdds, ss
from weald.mcmc.split_merge import proposal as split_merge
from weald.mcmc.split_merge import trial_split as sides
from weald.mcmc.split_merge.proposal import gather_blocks
from weald.mcmc.split_merge.selection import Selection
from weald.mcmc.state.atom_state import EXCHANGE, MERGE, NULL, SPLIT, Info, State
from weald.treecore.compiled.compile import implements
from weald.treecore.compiled.draw import below, choose, coin, shuffle
from weald.treecore.partition.partition import Model
from weald.treecore.prior.sequential import canonical_labels

TOLERANCE = 1e-9


class Script:
    """Randomness from a seed, except for the answers that were laid down beforehand."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.stream = np.random.default_rng(seed)
        self.indices: deque[int] = deque()
        self.coins: deque[bool] = deque()


@implements(coin, Script)
def _coin(rng: Script, probability: float) -> bool:
    return rng.coins.popleft() if rng.coins else bool(rng.stream.random() < probability)


@implements(below, Script)
def _below(rng: Script, n: int) -> int:
    return rng.indices.popleft() if rng.indices else int(rng.stream.integers(n))


@implements(choose, Script)
def _choose(rng: Script, log_weights: NDArray[np.float64], n: int) -> int:
    if rng.indices:
        return rng.indices.popleft()
    weights = np.exp(log_weights[:n] - log_weights[:n].max())
    return int(rng.stream.choice(n, p=weights / weights.sum()))


@implements(shuffle, Script)
def _shuffle(rng: Script, values: NDArray[np.int64], n: int) -> None:
    rank = np.random.default_rng(rng.seed).permutation(int(values[:n].max(initial=0)) + 1)
    values[:n] = sorted(values[:n], key=lambda i: rank[i])


@pytest.fixture(autouse=True)
def _accept_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_merge, "decide", lambda _, move, ratio: Info(move, ratio, 1))
    monkeypatch.setattr(split_merge, "coin", lambda *_: True)
    monkeypatch.setattr(sides, "survives_fall", lambda *_: True)


Problem = tuple[State, Model, int]

problems = st.builds(
    lambda family, prior, n, seed: (
        *random_state(family, prior, n, np.random.default_rng(seed)),
        seed,
    ),
    st.sampled_from(FAMILY_NAMES),
    # Of a prior that forbids the split's outcome there is nothing to compare.
    st.sampled_from([name for name in PRIOR_NAMES if name != "emm-at-most-3"]),
    st.integers(2, 40),
    st.integers(0, 2**32 - 1),
)


def labels(state: State) -> tuple[int, ...]:
    return tuple(canonical_labels(state.partition.label).tolist())


def script_for(seed: int, state: State, blocks: tuple[int, int], *, distinct: bool) -> Script:
    """A script that chooses two blocks; ``distinct``: the second is drawn among the others."""
    script = Script(seed)
    i, j = (int(state.partition.position[k]) for k in blocks)
    script.indices.extend([i, j - (distinct and j > i)])
    return script


ANCHORED: dict[str, Callable[[Any, State, Model, int, int], Info]] = {
    "rsm": rsm.step,
    "sams": sams.step,
    "rgsm-0": lambda r, s, m, i, j: rgsm.step(r, s, m, rgsm.RgsmPlan(scans=0), (i, j)),
    "rgsm-3": lambda r, s, m, i, j: rgsm.step(r, s, m, rgsm.RgsmPlan(scans=3), (i, j)),
    "rgsm-anchored": lambda r, s, m, i, j: rgsm.step(r, s, m, rgsm.RgsmPlan(2, 1, 0, 1), (i, j)),
}


@pytest.mark.parametrize("kernel", ANCHORED)
@settings(max_examples=60)
@given(problem=problems)
def test_anchored(kernel: str, problem: Problem) -> None:
    state, model, seed = problem
    step = ANCHORED[kernel]
    members = np.flatnonzero(state.partition.label == np.bincount(state.partition.label).argmax())
    assume(members.shape[0] > 1)
    before = labels(state)
    split = step(Script(seed), state, model, members[0], members[-1])
    assert split.move == SPLIT
    check_partition(state, model)
    merge = step(Script(seed), state, model, members[0], members[-1])
    assert merge.move == MERGE
    assert labels(state) == before
    assert split.log_ratio + merge.log_ratio == pytest.approx(0.0, abs=TOLERANCE)
    if kernel != "rsm":
        # The lists are in another order now; an allocation order made from ids does not see it.
        again = step(Script(seed), state, model, members[0], members[-1])
        assert again.log_ratio == pytest.approx(split.log_ratio, abs=TOLERANCE)


Move = Callable[[Any, State, Model], Info]

BLOCKWISE: dict[str, tuple[Move, Move]] = {
    "sdds-a": (
        lambda r, s, m: sdds.smart_split(r, s, m, Selection()),
        lambda r, s, m: sdds.dumb_merge(r, s, m, Selection()),
    ),
    "sdds-b": (
        lambda r, s, m: sdds.dumb_split(r, s, m, Selection()),
        lambda r, s, m: sdds.smart_merge(r, s, m, Selection()),
    ),
    "ss": (
        lambda r, s, m: ss._split(r, s, m, Selection()),
        lambda r, s, m: ss._merge(r, s, m, Selection()),
    ),
    "dm": (lambda r, s, m: dm._split(r, s, m, 0.7), lambda r, s, m: dm._merge(r, s, m, 0.7)),
}


@pytest.mark.parametrize("kernel", BLOCKWISE)
@settings(max_examples=60)
@given(problem=problems)
def test_blockwise(kernel: str, problem: Problem) -> None:
    state, model, seed = problem
    split, merge = BLOCKWISE[kernel]
    before = labels(state)
    present = set(state.partition.label.tolist())
    forward = split(Script(seed), state, model)
    assume(forward.move == SPLIT)
    check_partition(state, model)
    # Both sides are in slots that were closed before.
    first, second = set(state.partition.label.tolist()) - present
    script = script_for(seed, state, (first, second), distinct=True)
    back = merge(script, state, model)
    assert back.move == MERGE
    assert labels(state) == before
    check_partition(state, model)
    assert forward.log_ratio + back.log_ratio == pytest.approx(0.0, abs=TOLERANCE)


@pytest.mark.parametrize("share", [rm.UNIFORM, rm.HALF])
@settings(max_examples=100)
@given(problem=problems)
def test_random_mixing(share: int, problem: Problem) -> None:
    state, model, seed = problem
    before = state.partition.label.copy()
    plan: Any = rm.RmPlan(share=share)
    rng: Any = Script(seed)
    forward = rm.step(rng, state, model, plan)
    assume(forward.move != NULL)
    check_partition(state, model)
    blocks = sorted(set(state.partition.label[state.partition.label != before].tolist()))
    rng = script_for(seed, state, (blocks[0], blocks[-1]), distinct=False)
    n = gather_blocks(state, blocks[0], blocks[-1])
    old = before[state.members[:n]]
    rng.coins.extend((old == old[0]).tolist())
    back = rm.step(rng, state, model, plan)
    assert (forward.move, back.move) in [(SPLIT, MERGE), (MERGE, SPLIT), (EXCHANGE, EXCHANGE)]
    assert labels(state) == tuple(canonical_labels(before).tolist())
    assert forward.log_ratio + back.log_ratio == pytest.approx(0.0, abs=TOLERANCE)
