"""Columns of which the same is said share a line."""

import pytest

from weald.cli.terminal.columns_told import note_columns


def test_many_columns_that_are_alike_take_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    pixels = [f"pixel_{each}: a number" for each in range(9)]
    note_columns([*pixels[:4], "id: left out: numbers the records", *pixels[4:], "day: a date"])
    assert capsys.readouterr().err.splitlines() == [
        "  pixel_0, pixel_1, pixel_2 and 6 more: a number",
        "  id: left out: numbers the records",
        "  day: a date",
    ]


def test_a_few_have_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    told = [f"{name}: a number" for name in "abcd"]
    note_columns(told)
    assert capsys.readouterr().err.splitlines() == [f"  {each}" for each in told]
