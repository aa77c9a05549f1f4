"""A rejected proposal leaves every array of the partition as it was."""

from math import inf
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from tests.exact.cases import FORMS, KERNELS, random_state
from tests.exact.partition_checks import check_partition
from weald.mcmc.split_merge import proposal as split_merge
from weald.mcmc.split_merge import rgsm, sams, sdds, ss
from weald.mcmc.split_merge import trial_split as sides
from weald.mcmc.state.atom_state import Info, make_tally

ARRAYS = ("label", "following", "preceding", "rows", "slots", "position", "n_blocks")


@pytest.mark.parametrize("midway", [False, True])
@pytest.mark.parametrize("name", [name for name in KERNELS | FORMS if name != "gibbs"])
def test_rejection(
    name: str, midway: bool, rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_merge, "decide", lambda _, move, ratio: Info(move, ratio, 0))
    # Merges by allocation are refused after its first step, or when there is most to put back.
    monkeypatch.setattr(split_merge, "coin", lambda *_: True)
    monkeypatch.setattr(sides, "survives_fall", lambda *_: not midway)
    conclude: Any = split_merge.conclude_merge
    for kernel in (rgsm, sams, sdds, ss):
        monkeypatch.setattr(kernel, "conclude_merge", lambda *given: conclude(*given[:-1], -inf))
    state, model = random_state("gaussian", "pitman-yor", 20, rng)
    plan: Any = (KERNELS | FORMS)[name].plan._replace(proposals=20)
    before = {array: getattr(state.partition, array).copy() for array in ARRAYS}
    tally = make_tally()
    live = np.arange(20, dtype=np.int64)
    (KERNELS | FORMS)[name].sweep(rng, state, model, plan, live, tally)
    assert tally[1:, 0].sum() > 0.0
    for array, values in before.items():
        np.testing.assert_array_equal(getattr(state.partition, array), values)
    check_partition(state, model)
