"""Text tables as people have them: separators, titles, headers, rows that are none."""

import csv
from pathlib import Path

import numpy as np
import pytest

from weald.cli.errors import UsageError
from weald.cli.files.sample import propose
from weald.cli.files.table import load_table
from weald.cli.files.text_table import SEPARATORS, text_table
from weald.cli.look.rows import read_rows
from weald.stream.record.record import TopicPartition
from weald.stream.settings import StreamSettings
from weald.stream.source.file_source import FileSource

ROWS = [[f"{i}.5", str(i % 3), f"k{i % 2}"] for i in range(1, 31)]
LINES = [",".join(row) for row in ROWS]


@pytest.mark.parametrize(
    ("lines", "names", "line"),
    [
        (["a,b,c", *LINES], ["a", "b", "c"], 1),
        (["", "a,b,c", *LINES], ["a", "b", "c"], 2),
        # Titles, one of which has a comma, and one that a spreadsheet fills up.
        (["Sales, all of them", "as of March", "", "a,b,c", *LINES], ["a", "b", "c"], 4),
        (["Sales,,", ",,", "a,b,c", *LINES], ["a", "b", "c"], 3),
        # Each row ends with a separator, the header too or not.
        (["a,b,c", *(f"{row}," for row in LINES)], ["a", "b", "c"], 1),
        (["a,b,c,", *(f"{row}," for row in LINES)], ["a", "b", "c", "column 4"], 1),
        # R's row names.
        (["b,c", *LINES], ["column 1", "b", "c"], 1),
        ([",b", *(f"{i},{i / 4}" for i in range(30))], ["column 1", "b"], 1),
        ([",1940,1950", *LINES], ["column 1", "1940", "1950"], 1),
        # Years, which are names beside another one.
        (["key,2012,2013", *LINES], ["key", "2012", "2013"], 1),
        # What pandas calls columns that have no names.
        (["0,1,2", *LINES], ["0", "1", "2"], 1),
        # No header.
        (LINES, ["x1", "x2", "x3"], 1),
        ([f"k{i % 2},1,{'yn'[i % 3 > 0]}" for i in range(30)], ["x1", "x2", "x3"], 1),
        # The header of a table whose columns are words as it is.
        (["a,b", *("n,y" for _ in range(30)), "a,b"], ["a", "b"], 1),
        # Other separators, also beside commas in numbers and titles.
        (["a;b;c", *(row.replace(",", ";").replace(".", ",") for row in LINES)], list("abc"), 1),
        (["T, 1", "a;b", *(f"{i},5;{i},2" for i in range(30))], ["a", "b"], 2),
        (["a|b|c", *(row.replace(",", "|") for row in LINES)], list("abc"), 1),
        (["  a   b   c", *(row.replace(",", "  ") for row in LINES)], list("abc"), 1),
        # Words in quotes, as R writes them between blanks.
        (['"a b" "c"', *(f'"of {i}" "{"yn"[i % 2]} y"' for i in range(30))], ["a b", "c"], 1),
        # Texts with blanks and commas in one column are no cells.
        (["review", *(f"it was {'very, ' * (i % 3)}good" for i in range(30))], ["review"], 1),
    ],
)
def test_where_a_table_begins_and_what_parts_it(
    lines: list[str], names: list[str], line: int
) -> None:
    table = text_table([f"{each}\n" for each in lines], SEPARATORS)
    assert (table.names, table.line, table.named) == (names, line, names[0] != "x1")
    if len(names) == len(ROWS[0]) and lines[-1] == LINES[-1]:
        assert [row for _, row in table.rows] == ROWS
        assert not table.refused


def test_rows_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    lines = ["a,b,c", *LINES[:5], "a,b,c", ",,", "1,2,3,4", *LINES[5:], "Total,3,4"]
    path.write_text("\n".join(lines))
    rows = read_rows(str(path), 0)
    np.testing.assert_array_equal(rows.values[:, :2], [[float(a), float(b)] for a, b, _ in ROWS])
    told = capsys.readouterr().err
    assert "4 of 34 rows cannot be read, and are left out" in told
    for line, problem in [
        (7, "is the header again"),
        (8, "is empty"),
        (9, "more cells than the header"),
        (35, "is the Total of the others"),
    ]:
        assert f"line {line}: {problem}\n" in told
    table = load_table(path, ["a"])
    np.testing.assert_array_equal(table.values[:, 0], [float(row[0]) for row in ROWS])
    assert table.rows is not None
    np.testing.assert_array_equal(table.rows, np.delete(np.arange(34), [5, 6, 7, 33]))


def test_none_is_a_gap_among_numbers_and_an_answer_among_words(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    answers = ("None", "Some", "Much")
    rows = [f"{'None' if i % 7 == 0 else i / 4},{answers[i % 3]}" for i in range(60)]
    path.write_text("\n".join(["pulse,exercise", *rows]))
    read = read_rows(str(path), 0)
    assert np.isnan(read.values[:, 0]).sum() == 9
    assert set(read.columns[1].values) == set(answers)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (LINES, "its first line is a row, and no names of columns"),
        (["Sales", "", "a,b,c", *LINES], "its header is in line 3"),
        (["a b c", *(row.replace(",", " ") for row in LINES)], "seem to be parted by blanks"),
    ],
)
def test_a_stream_reads_the_header_first(lines: list[str], told: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(UsageError, match=told):
        propose(path)


def test_a_stream_passes_over_separators_at_the_end_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,c", *(f"{row}," for row in LINES)]))
    assert len(propose(path).fields) == 3
    source = FileSource(StreamSettings(source="file", path=str(path)))
    source.seek({TopicPartition("t.csv", 0): 0})
    assert source.poll(0.0)[0].value == b'{"a":"1.5","b":"1","c":"k1"}'
    source.close()


def test_a_cell_without_end_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,"2\n' + "3,4\n" * csv.field_size_limit())
    with pytest.raises(UsageError, match="a cell has no end"):
        read_rows(str(path), 0)
    with pytest.raises(UsageError, match="a cell has no end"):
        load_table(path)


def test_names_of_rows_are_no_texts(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    cars = [f"Ford {('Escort', 'Focus')[i % 2]} GT {i},{i % 9}.5" for i in range(30)]
    path.write_text("\n".join(["price", *cars]))
    assert read_rows(str(path), 0).schema.features == ("price",)
    for name in ("name", "model name", "Address"):
        path.write_text("\n".join([f"{name},price", *cars]))
        assert read_rows(str(path), 0).schema.features == ("price",)


LOGGED = [f"2026-03-{i:02} 12:00:00,{i} INFO reading item {i}, which is new" for i in range(1, 31)]


@pytest.mark.parametrize(
    ("name", "lines", "features"),
    [
        ("iris.data", LINES, ("x1", "x2", "x3")),
        ("t.txt", ["a\tb", *(f"{i}.5\t{i % 7}" for i in range(30))], ("a", "b")),
        ("t", ["a b", *(f"{i}.5 {i % 7}" for i in range(30))], ("a", "b")),
        ("app.txt", LOGGED, ("line",)),
        ("app.log.1", LOGGED, ("line",)),
    ],
)
def test_a_table_is_known_by_its_lines(
    name: str, lines: list[str], features: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text("\n".join(lines))
    assert tuple(field.name for field in read_rows(str(path), 0).schema.fields) == features


def test_a_workbook_is_told_from_text(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    path.write_bytes(b"PK\x03\x04\x14\0\x06")
    with pytest.raises(UsageError, match="it is a workbook or another archive, not text"):
        read_rows(str(path), 0)
