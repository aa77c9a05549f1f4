"""The forest after any sequence of insertions and removals, and its growth and restoration."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.treecore.forests import Setting, clumps, gaussian, grown, play, setting
from tests.treecore.invariants import Broken, describe, forest_faults, guide_faults
from weald.mcmc.chain.growing import forest_arrays, restored_forest
from weald.treecore.family import FAMILIES
from weald.treecore.forest.forest import Forest, empty_forest, reserve
from weald.treecore.forest.insertion import PREDICTIVE, PUBLISHED
from weald.treecore.guide.guide import freeze

N = 90
FAMILY_NAMES = ("gaussian", "bernoulli")


def random_setting(family: str, prior: str, weight: int, seed: int) -> Setting:
    rng = np.random.default_rng(seed)
    if family == "gaussian":
        # In one clump observations are deferred, in four there are cuts.
        values = clumps(rng, N, k=int(rng.choice([1, 4])))
        return setting(gaussian(values), values, (prior, {}), weight)
    # Many equal observations: ties wherever there can be any.
    values = rng.integers(0, 2, size=(N, 3)).astype(np.float64)
    return setting(FAMILIES[family].build({}, values), values, (prior, {}), weight)


settings_of_models = st.builds(
    random_setting,
    st.sampled_from(FAMILY_NAMES),
    st.sampled_from(["dp", "nggp", "mfm"]),
    st.sampled_from([1, 2]),
    st.integers(0, 2**32 - 1),
)
# Toggle the atom: out of the forest if it is in, else into it.
toggles = st.builds(
    lambda seed, n: np.random.default_rng(seed).integers(0, N, size=n).tolist(),
    st.integers(0, 2**32 - 1),
    st.integers(0, 4 * N),
)


def script_of(touched: list[int]) -> list[int]:
    inside: set[int] = set()
    script = []
    for i in touched:
        script.append(-1 - i if i in inside else i)
        inside ^= {i}
    return script


@pytest.mark.slow
@pytest.mark.parametrize("rule", [PREDICTIVE, PUBLISHED])
@settings(max_examples=150)
@given(posed=settings_of_models, touched=toggles, every=st.integers(1, 40))
def test_any_sequence(rule: int, posed: Setting, touched: list[int], every: int) -> None:
    forest = empty_forest(posed.family, N)
    script = script_of(touched)
    for at in range(0, len(script), every):
        play(posed, forest, script[at : at + every], rule)
        broken = forest_faults(posed.model, forest)
        if rule == PUBLISHED:
            broken &= ~Broken.BALANCE
        assert describe(broken) == []
        if forest.n_roots[0] > 0:
            guide = freeze(posed.model, forest)
            assert describe(guide_faults(posed.model, guide)) == []
            assert sorted(guide.atom.tolist()) == np.flatnonzero(forest.leaf >= 0).tolist()
    after = forest_faults(posed.model, forest)
    assert not after & ~Broken.BALANCE, "freezing changed the forest"


def same(one: Forest, other: Forest) -> bool:
    """Whether two forests go on alike, bit for bit."""
    used = int(one.n_used[0])
    live = np.flatnonzero(one.atom[:used] != -2)
    nodes = ["parent", "left", "right", "n_leaves", "height", "size", "rows", "log_marginal"]
    nodes += ["log_potential", "log_dissimilarity", "stale", "weighed"]
    return (
        used == other.n_used[0]
        and (one.atom[:used] == other.atom[:used]).all()
        and all(
            getattr(one, name)[live].tobytes() == getattr(other, name)[live].tobytes()
            for name in nodes
        )
        and (one.roots[: one.n_roots[0]] == other.roots[: other.n_roots[0]]).all()
        and (one.free[: one.n_free[0]] == other.free[: other.n_free[0]]).all()
    )


@pytest.mark.parametrize("rule", [PREDICTIVE, PUBLISHED])
@settings(max_examples=25)
@given(touched=toggles, later=toggles, seed=st.integers(0, 2**32 - 1))
@example(
    touched=np.random.default_rng(348).integers(0, N, size=211).tolist(),
    later=np.random.default_rng(243052).integers(0, N, size=131).tolist(),
    seed=148,
)
def test_a_restored_forest_goes_on_alike(
    rule: int, touched: list[int], later: list[int], seed: int
) -> None:
    posed = random_setting("gaussian", "dp", 1, seed)
    script = script_of(touched + later)
    forest = empty_forest(posed.family, N)
    play(posed, forest, script[: len(touched)], rule)
    restored = restored_forest(posed.family, posed.model, forest_arrays(posed.family, forest))
    assert same(forest, restored)
    for each in (forest, restored):
        play(posed, each, script[len(touched) :], rule)
    assert same(forest, restored)


def test_what_lags_behind_is_saved_and_says_nothing_to_what_comes(
    rng: np.random.Generator,
) -> None:
    """Large clumps, in which most arrivals are deferred: frozen, restored or neither."""
    values = clumps(rng, 900, k=2)
    posed = setting(gaussian(values), values)
    alone, frozen = empty_forest(posed.family, 900), empty_forest(posed.family, 900)
    for forest in (alone, frozen):
        play(posed, forest, list(range(600)), PREDICTIVE)
    lagging = (alone.stale == 2).sum()
    assert lagging > 300
    assert describe(forest_faults(posed.model, alone)) == []
    restored = restored_forest(posed.family, posed.model, forest_arrays(posed.family, alone))
    assert same(alone, restored)
    guide = freeze(posed.model, frozen)
    assert describe(guide_faults(posed.model, guide)) == []
    assert not (frozen.stale == 2).any()
    later = [*range(600, 900), *(-1 - i for i in range(0, 900, 3))]
    for forest in (alone, frozen, restored):
        play(posed, forest, later, PREDICTIVE)
        assert describe(forest_faults(posed.model, forest)) == []
    assert same(alone, restored)
    for forest in (alone, frozen):
        freeze(posed.model, forest)
    assert same(alone, frozen)


def lagging(rng: np.random.Generator, n: int, d: int = 3) -> tuple[Setting, Forest]:
    """A forest of n atoms, most of which were deferred; zeros of both signs are among them."""
    values = clumps(rng, n, k=2, d=d)
    values[::7, 0] = 0.0
    values[::5, -1] = -0.0
    posed = setting(gaussian(values), values)
    forest = empty_forest(posed.family, n)
    play(posed, forest, list(range(n)), PREDICTIVE)
    return posed, forest


def test_an_image_leaves_out_the_rows_that_follow(rng: np.random.Generator) -> None:
    posed, forest = lagging(rng, 3000, d=10)
    saved = forest_arrays(posed.family, forest)
    rows = ("leaf_sums", "whole_leaf", "leaf_rows")
    kept = sum(saved[name].nbytes for name in rows)
    used = int(forest.n_used[0])
    assert kept < forest.rows[:used].nbytes / 12
    assert len(saved["stale"]) > 2000
    assert same(forest, restored_forest(posed.family, posed.model, saved))


def test_rows_that_do_not_follow_are_in_the_image(rng: np.random.Generator) -> None:
    posed, forest = lagging(rng, 600)
    leaves = np.flatnonzero(forest.atom[: int(forest.n_used[0])] >= 0)
    # Faded, of two observations, of products of their own, of a zero of the other sign.
    forest.rows[leaves[0], 1:] *= 0.5
    forest.rows[leaves[1]] *= 2.0
    forest.rows[leaves[2], -1] += 1.0
    forest.rows[leaves[3], 2:] = 0.0
    forest.rows[leaves[3], -1] = -0.0
    saved = forest_arrays(posed.family, forest)
    assert set(saved["whole_leaf"]) == {0, 1, 2, 3}
    restored = restored_forest(posed.family, posed.model, saved)
    assert forest.rows[leaves].tobytes() == restored.rows[leaves].tobytes()


def test_an_image_of_an_earlier_weald_goes_on_alike(rng: np.random.Generator) -> None:
    posed, forest = lagging(rng, 600)
    saved = forest_arrays(posed.family, forest)
    later = ("leaf_sums", "whole_leaf")
    earlier = {name: array for name, array in saved.items() if name not in later}
    earlier["leaf_rows"] = forest.rows[np.flatnonzero(saved["atom"] >= 0)]
    assert same(forest, restored_forest(posed.family, posed.model, earlier))


def test_a_larger_forest_goes_on_alike(rng: np.random.Generator) -> None:
    values = clumps(rng, N)
    posed = setting(gaussian(values), values)
    whole = grown(posed, PREDICTIVE)
    forest = empty_forest(posed.family, 1)
    for i in range(N):
        forest = reserve(forest, i + 1)
        play(posed, forest, [i], PREDICTIVE)
    assert same(forest, whole)
    assert forest.leaf.shape[0] < 3 * N
    assert reserve(forest, 1) is forest


def test_the_order_of_arrival_decides_nothing_but_the_trees(rng: np.random.Generator) -> None:
    values = clumps(rng, N)
    posed = setting(gaussian(values), values)
    forward = grown(posed, PREDICTIVE)
    backward = grown(posed, PREDICTIVE, list(range(N))[::-1])
    for forest in (forward, backward):
        roots = forest.roots[: forest.n_roots[0]]
        np.testing.assert_allclose(forest.rows[roots].sum(axis=0), posed.atoms.rows.sum(axis=0))
