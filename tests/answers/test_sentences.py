"""Sentences about planted data, checked against the data, and as good as any of their form."""

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from weald.answers.description.sentences import explain, sentence_of, told
from weald.stream.record.fields.originals import Original

N = 2000
Mask = NDArray[np.bool_]


def orders(rng: Generator) -> tuple[list[Original], Mask]:
    """Rows a quarter of which are narrow in width, from Norway, and of the night."""
    inside = np.arange(N) < N // 4
    width = np.where(inside, rng.normal(17.0, 0.005, N), rng.normal(17.0, 6.0, N))
    countries = np.array(["Norway", "Chile", "Japan", "Peru"], dtype=object)
    share = np.where(inside[:, None], [0.82, 0.06, 0.06, 0.06], [0.09, 0.31, 0.3, 0.3])
    country = countries[(rng.random(N)[:, None] > share.cumsum(1)).sum(1).clip(0, 3)]
    hour = np.where(inside, rng.normal(24.0, 1.0, N), rng.uniform(0.0, 24.0, N)) % 24.0
    income = np.where(rng.random(N) < np.where(inside, 0.7, 0.02), np.nan, rng.normal(size=N))
    columns = [
        Original("width", "number", width),
        Original("country", "category", country),
        Original("ordered", "day", hour * 3600.0),
        Original("income", "number", income),
        Original("noise", "number", rng.normal(size=N)),
    ]
    return columns, inside


def read(what: str, columns: list[Original]) -> Mask:
    """Who a reader finds that has nothing but the words."""
    column = next(each for each in columns if re.search(rf"\b{each.name}\b", what))
    words = what.split(column.name, 1)[1].strip()
    if what.startswith("no "):
        return np.isnan(column.values.astype(np.float64))
    if column.kind == "category":
        return np.isin(column.values.astype(str), words.split(" or "))
    values = column.values.astype(np.float64)
    if column.kind == "day":
        low, high = (3600.0 * int(t[:2]) + 60.0 * int(t[3:]) for t in words.split(" to "))
        return (values - low) % 86_400 <= (high - low) % 86_400
    words = words.split(",")[0]
    if words.startswith("at most"):
        return values <= float(words[7:])
    if words.startswith("at least"):
        return values >= float(words[8:])
    low, high = (float(each) for each in words.split(" to "))
    return (values >= low) & (values <= high)


def information(found: NDArray[Any], inside: Mask) -> float:
    """Mutual information of masks, or of cells and a mask, in nats, by its definition."""
    total = 0.0
    for one, other in product(np.unique(found), (True, False)):
        both = float(((found == one) & (inside == other)).mean())
        apart = float((found == one).mean() * (inside == other).mean())
        total += both * np.log(both / apart) if both else 0.0
    return total


def test_a_narrow_cluster_among_wide_ones_is_called_narrow(rng: Generator) -> None:
    columns, inside = orders(rng)
    sentence = sentence_of(columns[0], inside)
    assert sentence is not None
    assert re.fullmatch(r"width 16\.9\d\d? to 17\.0\d\d?, 0\.0\d\d? wide", sentence.what)
    assert sentence.inside > 0.9
    assert sentence.elsewhere < 0.02


def test_categories_are_called_by_their_names(rng: Generator) -> None:
    columns, inside = orders(rng)
    sentence = sentence_of(columns[1], inside)
    assert sentence is not None
    norway = columns[1].values == "Norway"
    own, rest = norway[inside].mean(), norway[~inside].mean()
    assert str(sentence) == f"country Norway: {own:.0%}, elsewhere {rest:.0%}".replace("%", " %")


def test_the_night_is_one_interval_across_midnight(rng: Generator) -> None:
    columns, inside = orders(rng)
    sentence = sentence_of(columns[2], inside)
    assert sentence is not None
    assert re.fullmatch(r"ordered 2[123]:\d\d to 0[012]:\d\d", sentence.what)


def test_what_is_missing_is_said(rng: Generator) -> None:
    columns, inside = orders(rng)
    sentence = sentence_of(columns[3], inside)
    assert sentence is not None
    assert sentence.what == "no income"


def test_every_sentence_is_true_of_the_data(rng: Generator) -> None:
    columns, inside = orders(rng)
    sentences = [sentence_of(each, inside) for each in columns[:4]]
    for sentence in sentences:
        assert sentence is not None
        holds = read(sentence.what, columns)
        assert sentence.inside == holds[inside].mean()
        assert sentence.elsewhere == holds[~inside].mean()


def other_descriptions(columns: list[Original], rng: Generator) -> list[Mask]:
    """Rules of the same form: intervals, half-lines, names, gaps, of every column."""
    found: list[Mask] = []
    for column in columns:
        if column.kind == "category":
            found += [column.values == name for name in set(column.values)]
            continue
        values = column.values.astype(np.float64)
        seen = values[~np.isnan(values)]
        found.append(np.isnan(values))
        for ends in np.sort(rng.choice(seen, (300, 2))):
            found += [
                (values >= ends[0]) & (values <= ends[1]),
                values <= ends[0],
                values >= ends[1],
            ]
    return found


def test_no_other_single_description_finds_the_members_better(rng: Generator) -> None:
    columns, inside = orders(rng)
    first = explain(columns, inside)[0]
    by_words = information(read(first.what, columns), inside)
    others = [information(rule, inside) for rule in other_descriptions(columns, rng)]
    assert by_words >= max(others)


def test_a_further_sentence_helps_the_reader(rng: Generator) -> None:
    columns, inside = orders(rng)
    # Without the width, which leaves nothing to be said.
    sentences = explain(columns[1:], inside)
    assert len(sentences) > 1
    known = 0.0
    holds = np.ones(N, dtype=bool)
    for sentence in sentences:
        holds &= read(sentence.what, columns)
        assert information(holds, inside) > known
        known = information(holds, inside)


def test_of_rows_like_all_others_nothing_is_said(rng: Generator) -> None:
    columns, _ = orders(rng)
    # 50 draws; a rule is said by chance in less than 1 % of them.
    said = [explain(columns, rng.permutation(N) < 40) for _ in range(50)]
    assert sum(bool(each) for each in said) <= 2
    assert told([]) == "nothing sets it apart"


@pytest.mark.parametrize("share", [0.001, 0.5])
def test_whole_numbers_stay_whole(share: float, rng: Generator) -> None:
    inside = np.arange(N) < 100
    legs = Original("legs", "number", np.where(inside, 8.0, rng.integers(0, 7, N)).astype(float))
    sentence = sentence_of(legs, inside, share=share)
    assert sentence is not None
    assert str(sentence) == "legs 8: 100 %, elsewhere 0 %"
    assert sentence.information == pytest.approx(1.0)


def test_no_digits_of_large_numbers_are_invented(rng: Generator) -> None:
    inside = np.arange(N) < N // 4
    values = np.where(inside, rng.uniform(2e22, 3e22, N), rng.uniform(0.0, 1e22, N))
    (said,) = explain([Original("x", "number", values)], inside)
    assert re.search(r"at least 2e\+22$|at least [12]\.\d{1,2}e\+22$", said.what), said.what


@pytest.mark.parametrize(
    ("first", "said"), [(0.0, "visits 0"), (1.0, "visits at most 1"), (9.0, "visits 9")]
)
def test_the_least_and_the_largest_value_are_called_by_themselves(first: float, said: str) -> None:
    visits = np.array([first] * 40 + [*range(1, 9), 0, 9] * 6)
    if first == 1.0:
        visits[:20] = 0.0
    sentence = sentence_of(Original("visits", "number", visits), np.arange(visits.size) < 40)
    assert sentence is not None
    assert sentence.what == said


def test_an_end_among_zeros_has_as_many_digits_as_the_others_need() -> None:
    """Nine decimals were told where nine tenths of the members are 0: at most 0.270000000."""
    barium = np.array([*[0.0] * 38, 0.27, 0.11, *np.linspace(0.5, 3.0, 40)])
    sentence = sentence_of(Original("Ba", "number", barium), np.arange(barium.size) < 40)
    assert sentence is not None
    assert sentence.what == "Ba at most 0.27"


@pytest.mark.parametrize(("value", "said"), [(0.3, "rain 0.3"), (-1.92, "rain -1.92")])
def test_a_value_that_most_members_have_has_its_own_digits(value: float, said: str) -> None:
    rain = np.array([*[value] * 40, *np.linspace(3.05, 9.55, 40)])
    sentence = sentence_of(Original("rain", "number", rain), np.arange(rain.size) < 40)
    assert sentence is not None
    assert sentence.what == said


@pytest.mark.parametrize(
    ("days", "clock", "text"),
    [
        ([5, 6], 0.0, "due Sat to Sun"),
        ([3], 0.0, "due Thu"),
        ([6, 0], 0.0, "due Sun to Mon"),
        ([5, 6], 1.0, "due Sat 00:00 to Sun 00:00"),
    ],
)
def test_dates_without_a_clock_are_days(days: list[int], clock: float, text: str) -> None:
    seconds = 86_400.0 * (np.arange(70) % 7)
    inside = np.isin(np.arange(70) % 7, days)
    seconds[np.flatnonzero(~inside)[0]] += clock
    sentence = sentence_of(Original("due", "week", seconds), inside)
    assert sentence is not None
    assert (sentence.what, sentence.inside, sentence.elsewhere) == (text, 1.0, 0.0)


@pytest.mark.parametrize(
    ("grain", "own", "text"),
    [
        (86_400.0, range(60, 70), "due since 2026-04-01"),
        (86_400.0, range(10), "due until 2026-02-09"),
        (86_400.0, range(20, 30), "due 2026-02-20 to 2026-03-01"),
        (5_400.0, range(60, 70), "due since 2026-02-03 18:00"),
        (5_400.0, range(10), "due until 2026-01-31 13:30"),
    ],
)
def test_moments_are_told_since_and_until(grain: float, own: range, text: str) -> None:
    """Each end is itself inside, as it is printed."""
    seconds = 1_769_817_600.0 + grain * np.arange(70.0)  # 2026-01-31
    inside = np.isin(np.arange(70), own)
    sentence = sentence_of(Original("due", "moment", seconds), inside)
    assert sentence is not None
    assert (sentence.what, sentence.inside, sentence.elsewhere) == (text, 1.0, 0.0)


def plain_best(values: NDArray[np.float64], inside: Mask) -> tuple[float, float, float]:
    """The best interval of whole numbers between quantiles of the members, by its definition.

    What it tells, and the shares of the members and of all others in it; of equals the first.
    """
    quantiles = np.quantile(values[inside & ~np.isnan(values)], np.linspace(0.0, 1.0, 50))
    lows = [-np.inf, *np.unique(np.floor(quantiles))]
    highs = [np.inf, *np.unique(np.ceil(quantiles))[::-1]]
    limit, best = information(inside, inside), (0.0, 1.0, 1.0)
    for low, high in product(lows, highs):
        holds = (values >= low) & (values <= high)
        own, rest = holds[inside].mean(), holds[~inside].mean()
        if own >= 0.5 and own > rest:
            best = max(best, (information(holds, inside) / limit, own, rest), key=lambda x: x[0])
    return best


@pytest.mark.parametrize("n", [7, 60, 400])
def test_the_interval_told_is_the_best_between_quantiles_whatever_the_gaps(
    n: int, rng: Generator
) -> None:
    for _ in range(15):
        inside = rng.random(n) < rng.uniform(0.1, 0.9)
        inside[:2] = True, False
        values = np.rint(rng.normal(np.where(inside, rng.uniform(20, 40), 30.0), 8.0, n))
        values[rng.random(n) < rng.choice([0.0, 0.3])] = np.nan
        values[:4] = 0.0, 0.0, 60.0, 60.0
        told_of, own, rest = plain_best(values, inside)
        # Where the numbers tell less than a gap does, or nothing, there is another sentence.
        sentence = sentence_of(Original("n", "number", values), inside)
        if sentence is None or sentence.what == "no n":
            assert told_of <= (0.0 if sentence is None else sentence.information) + 1e-12
            continue
        assert sentence.information == pytest.approx(told_of, rel=1e-9)
        assert (sentence.inside, sentence.elsewhere) == (own, rest)


def test_telling_of_many_parts_of_the_same_columns_is_telling_of_each(rng: Generator) -> None:
    """What is kept of a column from one part to the next changes nothing of what is told."""
    columns, _ = orders(rng)
    moments = 1.7e9 + 3600.0 * rng.integers(0, 4000, N)
    moments[rng.random(N) < 0.2] = np.nan
    country = columns[1].values.copy()
    country[rng.random(N) < 0.1] = None
    columns += [Original("at", "moment", moments), Original("from", "category", country)]
    parts = rng.integers(0, 5, N) + (columns[0].values > 17.0)
    for part in range(6):
        anew = [Original(each.name, each.kind, each.values.copy()) for each in columns]
        assert explain(columns, parts == part) == explain(anew, parts == part)


def unfinished(rng: Generator) -> tuple[list[Original], Mask]:
    """A quarter pay by gift card, but for some of them, and of those the price says so."""
    inside = np.arange(N) < N // 4
    by_card = rng.random(N) < np.where(inside, 0.76, 0.0)
    price = np.where(inside, rng.normal(55.0, 5.0, N), rng.lognormal(4.0, 1.0, N))
    columns = [
        Original("payment", "category", np.where(by_card, "gift card", "card").astype(object)),
        Original("price", "number", price),
        *(Original(f"noise {at}", "number", rng.normal(size=N)) for at in range(20)),
    ]
    return columns, inside


def test_what_a_first_sentence_leaves_unsaid_a_second_says(rng: Generator) -> None:
    """Both together hold for fewer of the rows than the first, and yet say more of them."""
    columns, inside = unfinished(rng)
    said = explain(columns, inside)
    assert [each.column for each in said] == ["payment", "price"]
    first, second = (read(each.what, columns) for each in said)
    assert said[1].inside == pytest.approx(second[inside].mean())
    assert said[1].elsewhere == pytest.approx(second[~inside].mean())
    known = information(first, inside)
    assert information(first & second, inside) < known
    # In which of four cells a row is says more, by what another sentence has to add at least.
    assert information(2 * first + second, inside) > known + 0.02 * information(inside, inside)


def test_what_a_first_sentence_said_is_not_said_again(rng: Generator) -> None:
    """Of a column that follows from the one that is told, and of twenty that are noise."""
    columns, inside = unfinished(rng)
    paid = columns[0].values == "gift card"
    again = Original("voucher", "category", np.where(paid, "yes", "no").astype(object))
    said = explain([columns[0], again, *columns[2:]], inside)
    assert len(said) == 1
    alone = np.flatnonzero(inside)[: N // 10]
    of_one = np.isin(np.arange(N), alone)
    sure = Original("kind", "category", np.where(of_one, "own", "other").astype(object))
    # Where the first one says it all there is nothing to add.
    assert len(explain([sure, *columns], of_one)) == 1
    assert len(explain(columns, inside, most=1)) == 1
