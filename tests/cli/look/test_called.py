"""What members of groups are called: as the file calls its records."""

from typing import Any

import numpy as np
import pytest

from weald.cli.look.called import names_of
from weald.stream.record.inference.proposal import proposed

N = 300


def records(**columns: list[Any]) -> list[dict[str, Any]]:
    """Rows with a number to cluster by beside these columns."""
    price = np.random.default_rng(3).normal(20.0, 3.0, N).round(2).astype(str).tolist()
    columns = {"price": price, **columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


COUNTED = [str(1000 + at) for at in range(N)]
PEOPLE = [f"Person {chr(65 + at % 26)}{at}" for at in range(N)]
DRAWN = np.random.default_rng(4).permutation(10 * N)[:N].astype(str).tolist()


@pytest.mark.parametrize(
    ("columns", "called"),
    [
        ({"order_id": COUNTED}, "order_id"),
        ({"order_number": COUNTED}, "order_number"),
        ({"id": PEOPLE}, "id"),
        ({"person": PEOPLE}, "person"),
        # An identifier before a name, whatever comes first.
        ({"person": PEOPLE, "user_id": DRAWN}, "user_id"),
        # One of things that records are about says not which record it is.
        ({"shop_id": [str(at % 200) for at in range(N)], "person": PEOPLE}, "person"),
        ({"shop_id": [str(at % 9) for at in range(N)]}, None),
        ({"order_id": [*DRAWN[:-1], ""]}, None),
        ({"note": [f"{each}, of whom there is much more to be told" for each in PEOPLE]}, None),
        ({}, None),
    ],
)
def test_rows_are_called_by_what_is_another_in_each(
    columns: dict[str, list[Any]], called: str | None
) -> None:
    rows = records(**columns)
    found = names_of(proposed(rows, "a file"), rows)
    if called is None:
        assert found is None
    else:
        assert found == (called, columns[called])


def test_whole_numbers_of_a_table_are_no_fractions() -> None:
    rows = [dict(row, order_id=1000.0 + at) for at, row in enumerate(records())]
    found = names_of(proposed(rows, "a file"), rows)
    assert found is not None
    assert found[1][:2] == ["1000", "1001"]
