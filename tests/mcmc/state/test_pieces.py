"""Pieces after any sequence of compiled tree-guided steps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.exact.trees import chain, guide_of, random_tree
from tests.mcmc.piece_invariants import piece_faults
from tests.treecore.forests import Setting, clumps, gaussian, grown, setting
from tests.treecore.invariants import describe
from weald.mcmc.state.atom_state import make_state
from weald.mcmc.state.pieces import labels_of_pieces, make_pieces
from weald.mcmc.tree_guided.tgmcmc import KERNELS, make_picks, sweep
from weald.treecore.family import FAMILIES
from weald.treecore.forest.insertion import PREDICTIVE
from weald.treecore.guide.guide import freeze, guide_of_atoms
from weald.treecore.partition.partition import Model, log_joint
from weald.treecore.prior import build_prior
from weald.treecore.prior.sequential import canonical_labels

N = 50
GUIDES = ("ibhc", "top-down", "chain", "random")
PRIORS = {"dp": {}, "nggp": {}, "mfm": {}, "emm": {"kmax": 6}}


def random_setting(family: str, prior: str, n: int, weight: int, seed: int) -> Setting:
    rng = np.random.default_rng(seed)
    if family == "gaussian":
        values = clumps(rng, n)
        posed = setting(gaussian(values), values, (prior, {}), weight)
    else:
        values = rng.integers(0, 2, size=(n, 3)).astype(np.float64)
        built = FAMILIES[family].build({"a": 1.0, "b": 1.0}, values)
        posed = setting(built, values, (prior, {}), weight)
    seating = build_prior(prior, PRIORS[prior]).seating(n * weight, n)
    return posed._replace(model=Model(posed.family, seating, posed.model.work))


problems = st.builds(
    random_setting,
    st.sampled_from(["gaussian", "bernoulli"]),
    st.sampled_from(sorted(PRIORS)),
    st.integers(1, N),
    st.sampled_from([1, 2]),
    st.integers(0, 2**32 - 1),
)
# How many steps of each kernel a sweep makes.
moves = st.lists(st.tuples(*[st.integers(0, 3)] * len(KERNELS)), min_size=1, max_size=12)


@pytest.mark.slow
@pytest.mark.parametrize("shape", GUIDES)
@settings(max_examples=60)
@given(posed=problems, steps=moves, seed=st.integers(0, 2**32 - 1), k=st.integers(1, 6))
def test_any_sequence(
    shape: str, posed: Setting, steps: list[tuple[int, ...]], seed: int, k: int
) -> None:
    rng = np.random.default_rng(seed)
    n = posed.atoms.size.shape[0]
    if shape == "ibhc":
        guide = freeze(posed.model, grown(posed, PREDICTIVE))
    elif shape == "top-down":
        guide = guide_of_atoms(posed.family, posed.model, posed.atoms)
    else:
        tree = chain(n) if shape == "chain" else random_tree(n, rng)
        guide = guide_of(posed.model, posed.atoms, tree)
    labels = canonical_labels(rng.integers(0, k, size=(n,)))
    pieces = make_pieces(posed.family, guide, labels)
    assert describe(piece_faults(posed.model, guide, pieces)) == []
    found = np.empty(n, dtype=np.int64)
    labels_of_pieces(guide, pieces, found)
    assert (canonical_labels(found) == labels).all()
    picks, tally = make_picks(guide), np.zeros((len(KERNELS), 3))
    for step in steps:
        sweep(rng, guide, pieces, posed.model, picks, np.array(step), tally)
        assert describe(piece_faults(posed.model, guide, pieces)) == []
    labels_of_pieces(guide, pieces, found)
    fresh = make_state(posed.family, posed.atoms, found)
    expected = log_joint(posed.model, fresh.partition)
    assert log_joint(posed.model, pieces.partition) == pytest.approx(expected, abs=1e-8)
    assert np.isfinite(tally).all()
    assert (tally[:, 1] <= tally[:, 0]).all()


def test_one_atom(rng: np.random.Generator) -> None:
    """Nothing can move, and nothing fails."""
    posed = random_setting("gaussian", "dp", 1, 1, 0)
    guide = freeze(posed.model, grown(posed, PREDICTIVE))
    pieces = make_pieces(posed.family, guide, np.zeros(1, dtype=np.int64))
    tally = np.zeros((len(KERNELS), 3))
    moves = np.full(len(KERNELS), 5)
    sweep(rng, guide, pieces, posed.model, make_picks(guide), moves, tally)
    assert tally[1, 0] == 0
    assert describe(piece_faults(posed.model, guide, pieces)) == []


def test_a_long_run_does_not_drift(rng: np.random.Generator) -> None:
    """Blocks far from the origin of their family, many updates without a fresh sum."""
    values = clumps(rng, 200) + 50.0
    posed = setting(gaussian(values - 50.0), values)
    guide = freeze(posed.model, grown(posed, PREDICTIVE))
    pieces = make_pieces(posed.family, guide, np.arange(200, dtype=np.int64))
    picks, tally = make_picks(guide), np.zeros((len(KERNELS), 3))
    seating = build_prior("dp", {}).seating(200, 200)
    model = Model(posed.family, seating, posed.model.work)
    sweep(rng, guide, pieces, model, picks, np.array([10**4] * 4 + [10**3] * 2 + [200]), tally)
    assert describe(piece_faults(model, guide, pieces)) == []
