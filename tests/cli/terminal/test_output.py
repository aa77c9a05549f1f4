"""Every form of an answer, and what a table looks like on a terminal and in a pipe."""

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from typing import Any

import pytest

from weald.answers.numbers import iso_time, number, share_text, spread_text
from weald.cli.terminal.csv_cells import safe_cell
from weald.cli.terminal.output import Column, Form, write_record, write_rows

ROWS: list[dict[str, Any]] = [
    {"cluster": 1, "size": 120, "share": 0.75, "name": "a, b", "tags": ["x", "y"]},
    {"cluster": 22, "size": 40, "share": 0.25, "name": None, "tags": []},
]
COLUMNS = [
    Column("cluster", "cluster", "right"),
    Column("name", "name"),
    Column("share", "share", "right", lambda share: f"{share:.0%}"),
]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ('=HYPERLINK("http://evil.example","x")', '\'=HYPERLINK("http://evil.example","x")'),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+1+2", "'+1+2"),
        (" -x", "' -x"),
        ("\t=1", "\\t=1"),
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("two\nlines", "two\\nlines"),
        ("-3.5", "-3.5"),
        ("+49", "+49"),
        (-3.5, -3.5),
        ("größe", "größe"),
        (None, None),
    ],
)
def test_a_cell_of_a_csv_gives_no_orders(value: object, cell: object) -> None:
    assert safe_cell(value) == cell


def test_an_answer_as_csv_gives_no_orders(capsys: pytest.CaptureFixture[str]) -> None:
    write_rows([{"key": "=1+1\x1b[2J"}], [Column("key", "key")], Form.csv)
    assert capsys.readouterr().out == "key\n'=1+1\\x1b[2J\n"


def test_a_piped_table_is_plain_and_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(ROWS, COLUMNS, Form.table)
    assert capsys.readouterr().out.splitlines() == [
        "cluster  name  share",
        "      1  a, b    75%",
        "     22          25%",
    ]


def test_json_is_one_array_of_full_rows(capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(ROWS, COLUMNS, Form.json)
    assert json.loads(capsys.readouterr().out) == ROWS


def test_jsonl_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(ROWS, COLUMNS, Form.jsonl)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == ROWS


def test_csv_quotes_what_needs_it_and_writes_lists_as_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_rows(ROWS, COLUMNS, Form.csv)
    lines = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert lines[0] == ["cluster", "size", "share", "name", "tags"]
    assert lines[1] == ["1", "120", "0.75", "a, b", '["x","y"]']
    assert lines[2][3] == ""


@pytest.mark.parametrize("form", list(Form))
def test_no_rows_is_no_error(form: Form, capsys: pytest.CaptureFixture[str]) -> None:
    write_rows([], COLUMNS, form)
    out = capsys.readouterr().out
    expected = {
        Form.table: "cluster  name  share\n",
        Form.json: "[]\n",
        Form.jsonl: "",
        Form.csv: "cluster,name,share\n",
    }
    assert out == expected[form]


def test_a_number_that_json_cannot_say_becomes_null(capsys: pytest.CaptureFixture[str]) -> None:
    write_rows([{"x": float("nan"), "y": float("inf")}], COLUMNS, Form.json)
    assert json.loads(capsys.readouterr().out) == [{"x": None, "y": None}]


def test_a_record_shows_its_inner_rows_as_tables(capsys: pytest.CaptureFixture[str]) -> None:
    write_record({"n_received": 3, "parts": [{"part": 0, "n": 3}]}, Form.table)
    assert capsys.readouterr().out.splitlines() == [
        "received  3",
        "",
        "parts",
        "part  n",
        "0     3",
    ]


def test_a_record_as_csv_has_names_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    write_record({"a": 1, "parts": [{"n": 3}]}, Form.csv)
    assert list(csv.reader(io.StringIO(capsys.readouterr().out))) == [
        ["name", "value"],
        ["a", "1"],
        ["parts", '[{"n":3}]'],
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (1.23456, "1.235"),
        (12345.6, "12346"),
        (999999999999999.0, "999999999999999"),
        (1000268593176140800.0, "1e+18"),
        (-1.23456e300, "-1.235e+300"),
        (True, "yes"),
        ([1, 2], "1, 2"),
        ({"a": 1}, "a=1"),
    ],
)
def test_numbers_read_as_people_write_them(value: object, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("centre", "spread", "text"),
    [
        (12345.6, 12.0, "12346 ± 12"),
        (1.00026e18, 309206039808886656.0, "1e+18 ± 3.092e+17"),
        (-3.5, 2.0**60, "-3.5 ± 1.153e+18"),
    ],
)
def test_no_digits_are_invented(centre: float, spread: float, text: str) -> None:
    assert spread_text({"centre": centre, "spread": spread}) == text


def test_times_are_utc_to_the_second() -> None:
    assert iso_time(0.0) == "1970-01-01T00:00:00Z"
    assert iso_time(None) is None


SHOW = """
from weald.cli.terminal.output import Column, Form, write_rows
write_rows([{"a": "[bold]", "n": 1}], [Column("a", "a"), Column("n", "n", "right")], Form.table)
"""
WIDE = """
import sys
from weald.cli.terminal.output import Column, Form, write_rows
from weald.cli.terminal.table import show_all_columns
show_all_columns("--wide" in sys.argv)
columns = [
    Column("key", "key"),
    *(Column(f"n{i}", f"number {i}", "right", gives_way=i % 3 + 1) for i in range(9)),
    Column("text", "text"),
]
row = {f"n{i}": 123456789 + i for i in range(9)}
write_rows([row | {"key": "k", "text": "word " * 12 + "end"}], columns, Form.table)
"""


def shown_on_a_terminal(environment: dict[str, str], program: str = SHOW, *arguments: str) -> str:
    """What a program writes to a terminal, standard error included."""
    ours, theirs = pty.openpty()
    plain = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=theirs,
        stderr=theirs,
        env={**plain, "TERM": "xterm", **environment},
    ) as process:
        os.close(theirs)
        out = b""
        try:
            while chunk := os.read(ours, 4096):
                out += chunk
        except OSError:
            pass  # how a terminal says that the other side is gone
        process.wait()
    os.close(ours)
    return out.decode()


def test_a_terminal_gets_a_drawn_table() -> None:
    text = shown_on_a_terminal({})
    assert "\x1b[" in text
    assert "─" in text
    assert "[bold]" in text


def test_no_color_is_heeded() -> None:
    assert "\x1b[3" not in shown_on_a_terminal({"NO_COLOR": "1"})


def without_codes(text: str) -> list[str]:
    """Lines as a reader sees them."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()


def test_columns_give_way_on_a_narrow_terminal_and_that_is_said() -> None:
    lines = without_codes(shown_on_a_terminal({"COLUMNS": "80"}, WIDE))
    drawn = "\n".join(lines)
    table = [line for line in lines if not line.startswith("left out")]
    assert max(map(len, table)) <= 80
    # Those of rank 3 leave first, then those of rank 2 from the right; texts fold instead.
    for stays in ("number 0", "number 3", "123456789", "123456792", "word", "end"):
        assert stays in drawn
    assert "left out for want of width: number 2, number 4, number 5" in drawn
    assert "; --wide shows all" in drawn


def test_texts_fold_further_where_no_column_leaves() -> None:
    program = WIDE.replace("gives_way=i % 3 + 1", "gives_way=9 * (i > 0)")
    program = program.replace(
        'Column("text", "text"),', 'Column("text", "text"), Column("text", "again"),'
    )
    lines = without_codes(shown_on_a_terminal({"COLUMNS": "40"}, program))
    assert max(len(line) for line in lines if not line.startswith("left out")) <= 40
    assert any(line.split() == ["word", "word", "word", "word"] for line in lines)
    assert "123456789" in "".join(lines)


def test_a_long_fact_folds_beside_its_name() -> None:
    program = (
        "from weald.cli.terminal.output import Form, write_record\n"
        "write_record({'name': 'word ' * 20 + 'end', 'other': 1}, Form.table)"
    )
    lines = without_codes(shown_on_a_terminal({"COLUMNS": "40"}, program))
    assert max(map(len, lines)) <= 40
    assert lines[0].startswith("name   word")
    assert lines[1].startswith("       word")
    assert lines[-1] == "other  1"


def test_wide_shows_every_column() -> None:
    text = "\n".join(without_codes(shown_on_a_terminal({"COLUMNS": "80"}, WIDE, "--wide")))
    assert all(str(123456789 + i) in text for i in range(9))
    assert "left out" not in text


def test_a_number_is_not_cut_where_nothing_can_leave() -> None:
    program = WIDE.replace("gives_way=i % 3 + 1", "gives_way=0")
    drawn = "\n".join(without_codes(shown_on_a_terminal({"COLUMNS": "40"}, program)))
    assert all(str(123456789 + i) in drawn for i in range(9))


@pytest.mark.parametrize(
    ("share", "text"),
    [(None, ""), (0.0, "0.00"), (0.001, "<0.01"), (0.5, "0.50"), (0.999, ">0.99"), (1.0, "1.00")],
)
def test_only_certainty_reads_as_certain(share: float | None, text: str) -> None:
    assert share_text(share) == text
