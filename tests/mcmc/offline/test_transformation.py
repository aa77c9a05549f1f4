"""How a family sees observations: there and back, and what a sample teaches."""

from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.offline.preparation import informative_columns
from weald.mcmc.offline.transformation import Transformation
from weald.mcmc.settings import FeatureSettings
from weald.treecore.family import FAMILIES
from weald.treecore.family.totals import totals_of_groups

Values = NDArray[np.float64]


def learned(values: Values, family: str = "gaussian", **asked: Any) -> Transformation:
    found = Transformation.learned(values, FeatureSettings(**asked), family)
    assert found is not None
    return found


def axes_of(found: Transformation) -> Values:
    assert found.axes is not None
    return found.axes


def test_few_columns_and_other_families_are_seen_as_they_are(rng: Generator) -> None:
    few, many = rng.normal(size=(100, 16)), rng.normal(size=(100, 17))
    auto = FeatureSettings()
    assert Transformation.learned(few, auto, "gaussian") is None
    assert Transformation.learned(many, auto, "diagonal") is None
    assert Transformation.learned(many, FeatureSettings(components="all"), "gaussian") is None
    assert learned(many).width < 17


def test_components_hold_nine_tenths_within_bounds(rng: Generator) -> None:
    hidden = rng.normal(size=(400, 3)) * [9.0, 6.0, 3.0]
    table = hidden @ rng.normal(size=(3, 40)) + 0.01 * rng.normal(size=(400, 40))
    found = learned(table)
    assert axes_of(found).shape == (40, 8)
    np.testing.assert_allclose(axes_of(found).T @ axes_of(found), np.eye(8), atol=1e-12)
    assert found.share > 0.99
    assert learned(rng.normal(size=(400, 40))).width == 20
    assert axes_of(learned(rng.normal(size=(60, 400)))).shape == (400, 6)
    assert learned(table, components=5).width == 5
    spread = found.seen(table).std(axis=0)
    assert (np.diff(spread) <= 0.0).all()


def test_units_count_only_where_columns_are_alike(rng: Generator) -> None:
    """Pixels keep their units; a change of units of one column in a mixed table is nothing."""
    alike = rng.normal(size=(300, 20)) * rng.uniform(0.5, 1.0, 20)
    assert np.ptp(learned(alike).scale) == 0.0
    mixed = alike * 10.0 ** rng.integers(-3, 4, 20)
    units = np.ones(20)
    units[4] = 1e3
    one, other = (learned(table) for table in (mixed, mixed * units))
    np.testing.assert_allclose(
        np.abs(one.seen(mixed)), np.abs(other.seen(mixed * units)), atol=1e-8
    )


def test_who_asks_for_it_has_columns_standardised_or_not(rng: Generator) -> None:
    alike = rng.normal(size=(300, 20)) * rng.uniform(0.5, 1.0, 20)
    assert np.ptp(learned(alike, standardise=True).scale) > 0.0
    mixed = alike * 10.0 ** rng.integers(-3, 4, 20)
    assert np.ptp(learned(mixed, standardise=False).scale) == 0.0
    seen = learned(mixed[:, :3], "diagonal", standardise=True).seen(mixed[:, :3])
    np.testing.assert_allclose(seen.std(axis=0), 1.0, atol=0.1)


def test_scores_of_components_keep_their_units(rng: Generator) -> None:
    scores = rng.normal(size=(500, 30)) * 0.85 ** np.arange(30)
    found = learned(scores)
    assert np.ptp(found.scale) == 0.0
    assert found.share > 0.9


@pytest.mark.parametrize("n_absurd", [1, 3])
def test_a_few_absurd_rows_do_not_turn_the_axes(n_absurd: int, rng: Generator) -> None:
    table = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 20)) + 0.1 * rng.normal(size=(300, 20))
    dirty = table.copy()
    dirty[:n_absurd, :2] = 1e6
    clean, turned = (learned(each, components=4) for each in (table, dirty))
    # Cosines of the angles between the two planes.
    cosines = np.linalg.svd(axes_of(clean).T @ axes_of(turned), compute_uv=False)
    assert cosines.min() > 0.95


def table_of(rng: Generator, n: int = 400) -> Values:
    """Positive numbers in units of their own, with a heavy tail in the first column."""
    hidden = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 20)) + 0.3 * rng.normal(size=(n, 20))
    table = 50.0 + 10.0 ** rng.integers(-2, 1, 20) * hidden
    table[:, 0] = np.exp(0.3 * hidden[:, 0])
    return table


@pytest.mark.parametrize(
    "asked", [{}, {"components": 3}, {"unit_length": True}, {"standardise": True}], ids=repr
)
def test_a_row_is_seen_alike_to_the_last_bit_in_any_batch(
    asked: dict[str, Any], rng: Generator
) -> None:
    table = table_of(rng, 3000)
    found = Transformation.learned(table, FeatureSettings(**asked), "gaussian", [0])
    assert found is not None
    found = Transformation.of_arrays(found.arrays())
    whole = found.seen(table)
    for cut in (1, 7, 1500):
        parts = [found.seen(table[at : at + cut]) for at in range(0, 1500, cut)]
        assert np.concatenate(parts)[:1500].tobytes() == whole[:1500].tobytes()
    assert found.seen(np.asfortranarray(table)).tobytes() == whole.tobytes()


def test_it_is_a_projection_in_units_of_the_columns(rng: Generator) -> None:
    table = table_of(rng)
    found = Transformation.learned(table, FeatureSettings(), "gaussian", [0])
    assert found is not None
    logs = table.copy()
    logs[:, 0] = np.log(logs[:, 0])
    expected = (logs - found.mean) / found.scale @ axes_of(found)
    np.testing.assert_allclose(found.seen(table), expected, atol=1e-10)


@pytest.mark.parametrize("family", ["gaussian", "diagonal"])
@pytest.mark.parametrize(
    "asked",
    [{"components": 20}, {"components": 6}, {"standardise": True, "components": "all"}],
    ids=repr,
)
def test_descriptions_have_the_units_of_the_columns(
    family: str, asked: dict[str, Any], rng: Generator
) -> None:
    """Means and spreads come back, and what is off the axes is added."""
    table = table_of(rng)
    found = learned(table, family, **asked)
    seen = found.seen(table)
    built = FAMILIES[family].build({}, seen)
    row = totals_of_groups(built, seen, np.zeros(len(seen), dtype=np.int64), 1)[0]
    names = [f"x{at}" for at in range(20)]
    told = found.describe(built, row, names)
    assert [each.name for each in told] == names
    assert {each.n for each in told} == {400}
    assert {each.kind for each in told} == {"number"}
    centres = np.array([each.centre for each in told])
    spreads = np.array([each.spread for each in told])
    assert (np.abs(centres - table.mean(axis=0)) < 0.02 * table.std(axis=0)).all()
    np.testing.assert_allclose(spreads, table.std(axis=0), rtol=0.1)


def test_descriptions_undo_logarithms_and_lengths(rng: Generator) -> None:
    table = np.exp(rng.normal(2.0, 0.01, size=(500, 3)))
    asked = FeatureSettings(unit_length=True)
    found = Transformation.learned(table, asked, "diagonal", [1])
    assert found is not None
    seen = found.seen(table)
    np.testing.assert_allclose((seen**2).sum(axis=1), 1.0)
    family = FAMILIES["diagonal"].build({}, seen)
    row = totals_of_groups(family, seen, np.zeros(len(seen), dtype=np.int64), 1)[0]
    told = [float(each.centre) for each in found.describe(family, row, ["a", "b", "c"])]
    np.testing.assert_allclose(told, table.mean(axis=0), rtol=0.02)


@pytest.mark.parametrize("components", ["auto", 5])
def test_columns_that_say_nothing_are_told_from_the_others(
    components: str | int, rng: Generator
) -> None:
    """Of one value, as another, and a sum of others: unseen, and described all the same."""
    table = table_of(rng)[:, 1:8]
    total = table[:, 0] - 2.0 * table[:, 3] + 5.0
    others = [np.full(400, 9.0), 32.0 - 1.8 * table[:, 2], total, 3.0 * total]
    table = np.column_stack([others[0], table, *others[1:]])
    found = informative_columns(table)
    asked = msgspec.convert({"components": components}, FeatureSettings)
    one = Transformation.learned(table, asked, "gaussian", found=found)
    assert one is not None
    one = Transformation.of_arrays(one.arrays())
    assert one.kept.tolist() == list(range(1, 8))
    seen = one.seen(table)
    changed = table.copy()
    changed[:, [0, 8, 9, 10]] = rng.normal(size=(400, 4))
    assert one.seen(changed).tobytes() == seen.tobytes()
    family = FAMILIES["gaussian"].build({}, seen)
    row = totals_of_groups(family, seen, np.zeros(400, dtype=np.int64), 1)[0]
    told = one.describe(family, row, [f"x{at}" for at in range(11)])
    centres = np.array([float(each.centre) for each in told])
    spreads = np.array([each.spread or 0.0 for each in told])
    np.testing.assert_allclose(centres, table.mean(axis=0), rtol=0.01)
    np.testing.assert_allclose(spreads, table.std(axis=0), rtol=0.1, atol=1e-9)


def test_what_has_no_logarithm_is_named(rng: Generator) -> None:
    table = table_of(rng)
    found = Transformation.learned(table, FeatureSettings(), "gaussian", [0, 3])
    assert found is not None
    table[5, 3], table[9, 0], table[9, 3] = 0.0, -1.0, np.nan
    assert found.unfit(table) == [(5, 3), (9, 0)]


def test_in_words(rng: Generator) -> None:
    hidden = rng.normal(size=(400, 8)) @ rng.normal(size=(8, 64))
    assert learned(hidden).in_words() == "8 components of 64 columns, 100 % of the variance"
    both = Transformation.learned(
        np.exp(hidden[:, :3]), FeatureSettings(standardise=True, unit_length=True), "diagonal", [1]
    )
    assert both is not None
    assert both.in_words() == (
        "the logarithm of 1 column; rows of unit length; 3 columns standardised"
    )
