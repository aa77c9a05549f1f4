"""Columns of which the same is said share a line."""

import pytest

from weald.cli.terminal.columns_told import note_columns


def test_many_columns_that_are_alike_take_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    told = dict.fromkeys((f"pixel_{each}" for each in range(4)), "a number")
    told["id"] = "left out: numbers the records"
    told |= dict.fromkeys((f"pixel_{each}" for each in range(4, 9)), "a number")
    note_columns({**told, "day": "a date"})
    assert capsys.readouterr().err.splitlines() == [
        "  pixel_0, pixel_1, pixel_2 and 6 more: a number",
        "  id: left out: numbers the records",
        "  day: a date",
    ]


def test_a_few_have_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    note_columns(dict.fromkeys(("a", "b: c", "d", "e"), "a number"))
    said = [f"  {name}: a number" for name in ("a", "b: c", "d", "e")]
    assert capsys.readouterr().err.splitlines() == said
