"""Split-merge kernels at the sizes that people use: the books stay right, and all kernels agree."""

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from tests.batch_means import batch_means
from tests.exact.cases import KERNELS, Kernel, random_state
from tests.exact.partition_checks import check_partition
from weald.mcmc.gibbs import gibbs
from weald.mcmc.split_merge import sams, sdds
from weald.mcmc.state.atom_state import State, make_state, make_tally, set_labels
from weald.treecore.family import FAMILIES
from weald.treecore.family.interface.base import observe, statistics_width, workspace
from weald.treecore.partition.partition import Model, empty_partition, make_atoms
from weald.treecore.prior import build_prior

SPLIT_MERGE = {name: kernel for name, kernel in KERNELS.items() if name != "gibbs"}
each_kernel = pytest.mark.parametrize("kernel", SPLIT_MERGE.values(), ids=SPLIT_MERGE.keys())

# Probabilities of a one: Jain and Neal (2000), table 1, example 1.
EXAMPLE_1 = np.array(
    [
        [0.95, 0.95, 0.95, 0.95, 0.95, 0.95],
        [0.05, 0.05, 0.05, 0.05, 0.95, 0.95],
        [0.95, 0.05, 0.05, 0.95, 0.95, 0.95],
        [0.05, 0.05, 0.05, 0.05, 0.05, 0.05],
        [0.95, 0.95, 0.95, 0.95, 0.05, 0.05],
    ]
)


@each_kernel
def test_books_stay_right(kernel: Kernel, rng: Generator) -> None:
    state, model = random_state("gaussian", "mfm", 60, rng)
    live = np.arange(60, dtype=np.int64)
    tally = make_tally()
    plan: Any = kernel.plan._replace(proposals=500)
    for _ in range(4):
        kernel.sweep(rng, state, model, plan, live, tally)
        gibbs.sweep(rng, state, model, live)
        check_partition(state, model)
    assert tally[:, 0].sum() == 2000.0
    assert (tally[:, 1] <= tally[:, 0]).all()
    assert np.isfinite(tally).all()
    assert tally[0, 1] == 0.0


@each_kernel
def test_one_atom_has_nothing_to_split(kernel: Kernel, rng: Generator) -> None:
    state, model = random_state("gaussian", "mfm", 1, rng)
    kernel.sweep(rng, state, model, kernel.plan, np.zeros(1, dtype=np.int64), make_tally())
    assert state.partition.n_blocks[0] == 1


@each_kernel
def test_atoms_in_no_block_are_left_alone(kernel: Kernel, rng: Generator) -> None:
    state, model = random_state("gaussian", "mfm", 30, rng)
    state = state._replace(partition=empty_partition(model.family, 30))
    set_labels(state.atoms, state.partition, np.zeros(20, dtype=np.int64))
    plan: Any = kernel.plan._replace(proposals=200)
    kernel.sweep(rng, state, model, plan, np.arange(20, dtype=np.int64), make_tally())
    assert (state.partition.label[20:] == -1).all()
    check_partition(state, model)


def example_1(rng: Generator) -> tuple[State, Model]:
    """Jain and Neal's example 1: 100 observations, five clusters, all in one block."""
    values = (rng.random((100, 6)) < EXAMPLE_1[rng.integers(0, 5, 100)]).astype(np.float64)
    family = FAMILIES["bernoulli"].build({"a": 1.0, "b": 1.0}, values)
    rows = np.zeros((100, statistics_width(family)))
    for i in range(100):
        observe(family, values, i, rows, i)
    model = Model(
        family=family,
        seating=build_prior("dp", {"alpha": 1.0}).seating(100, 100),
        work=workspace(family),
    )
    atoms = make_atoms(family, rows, np.ones(100, dtype=np.int64), model.work)
    return make_state(family, atoms, np.zeros(100, dtype=np.int64)), model


def blocks_over_time(
    kernel: Any, plan: Any, state: State, model: Model, rng: Generator
) -> NDArray[np.float64]:
    """Number of blocks after each of 3000 iterations of the kernel and a Gibbs scan."""
    live = np.arange(100, dtype=np.int64)
    found = np.empty(3000)
    for at in range(3000):
        kernel.sweep(rng, state, model, plan, live, make_tally())
        gibbs.sweep(rng, state, model, live)
        found[at] = state.partition.n_blocks[0]
    return found


def test_kernels_agree_on_example_1() -> None:
    """Gibbs alone is stuck here; two split-merge kernels must find the same number of clusters."""
    runs = []
    for kernel, plan in ((sams, sams.SamsPlan(5)), (sdds, sdds.SddsPlan(10))):
        state, model = example_1(np.random.default_rng(11))
        runs.append(blocks_over_time(kernel, plan, state, model, np.random.default_rng(12))[500:])
    means, errors = zip(*(batch_means(run, 25) for run in runs), strict=True)
    assert abs(means[0] - means[1]) < 3.0 * np.hypot(*errors)
    assert max(errors) < 0.1
    assert 4.0 < means[0] < 7.0
