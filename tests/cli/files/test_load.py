"""Data files: every format gives the same matrix, and every mistake names its place."""

import gzip
import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from weald.cli.errors import NotFoundError, UsageError
from weald.cli.files.table import load_table
from weald.stream.errors import LibraryMissing

VALUES = np.array([[1.0, 2.5], [3.0, -4.0], [0.0, 1e-3]])


def write(path: Path) -> Path:
    """Write VALUES in the format of the path's suffix."""
    rows = VALUES.tolist()
    if path.name.endswith(".npy"):
        np.save(path, VALUES)
    elif path.name == "csr.npz":
        sparse.save_npz(path, sparse.csr_array(VALUES))
    elif path.name.endswith(".npz"):
        np.savez(path, X=VALUES, y=np.array([0, 1, 1]))
    elif ".csv" in path.name:
        text = "a,name,b\n" + "".join(f"{a},row,{b}\n" for a, b in rows)
        write_text(path, text)
    else:
        lines = [json.dumps({"a": a, "name": "row", "b": b}) for a, b in rows]
        write_text(path, "\n".join(lines) + "\n")
    return path


def write_text(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@pytest.mark.parametrize(
    "name", ["x.npy", "x.npz", "csr.npz", "x.csv", "x.csv.gz", "x.jsonl", "x.jsonl.gz"]
)
def test_every_format_gives_the_same_matrix(name: str, tmp_path: Path) -> None:
    table = load_table(write(tmp_path / name))
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.values.dtype == np.float64
    named = ".csv" in name or ".jsonl" in name
    assert table.names == (["a", "b"] if named else ["x1", "x2"])
    assert table.left_out == (["name"] if named else [])


def test_labels_come_along_for_comparison_only(tmp_path: Path) -> None:
    table = load_table(write(tmp_path / "x.npz"))
    assert table.truth is not None
    assert table.truth.tolist() == [0, 1, 1]
    assert table.values.shape == (3, 2)


def test_columns_are_chosen_in_the_order_given(tmp_path: Path) -> None:
    table = load_table(write(tmp_path / "x.csv"), ["b", "a"])
    np.testing.assert_array_equal(table.values, VALUES[:, ::-1])
    with pytest.raises(UsageError, match=r"named name; there are a, b"):
        load_table(tmp_path / "x.csv", ["name"])


def test_csv_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("1,2\n3,4\n")
    table = load_table(path)
    assert table.names == ["x1", "x2"]
    assert len(table.values) == 2


def test_jsonl_of_lists(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("[1, 2]\n[3, 4]\n")
    np.testing.assert_array_equal(load_table(path).values, [[1, 2], [3, 4]])


def test_a_broken_line_costs_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{oops\n{"a": 1, "b": 2}\n7\n{"a": "x", "b": 3}\n{"a": 4, "b": 5}\n' * 5)
    table = load_table(path, ["b"])
    assert table.values[:, 0].tolist() == [2.0, 3.0, 5.0] * 5
    assert table.rows is not None
    assert table.rows[:4].tolist() == [1, 3, 4, 6]
    told = capsys.readouterr().err
    assert "10 of 25 rows were refused" in told
    assert "line 1: is not JSON" in told
    assert "line 3: is neither an object nor a list" in told


def test_numbers_of_hundreds_of_digits_cost_their_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON has them; no number of ours is as large, and Python reads no thousands of digits."""
    path = tmp_path / "x.jsonl"
    lines = [f'{{"a": {i}, "b": {i * i}}}' for i in range(30)]
    lines[3] = f'{{"a": 1{"0" * 400}, "b": 1}}'
    lines[4] = f'{{"a": 1{"0" * 5000}, "b": 1}}'
    lines[5] = f'{{"a": 1, "b": {"[" * 100_000}}}'
    path.write_text("\n".join(lines))
    table = load_table(path)
    assert table.names == ["a", "b"]
    assert table.values[:, 0].tolist() == [0.0, 1.0, 2.0, *range(6, 30)]
    told = capsys.readouterr().err
    assert "line 4: column 'a' should be a number, is 1000" in told
    assert "line 5: is not JSON" in told
    assert "line 6: is not JSON" in told
    assert max(map(len, told.splitlines())) < 200


@pytest.mark.parametrize("header", ["a;note;b\n", ""])
def test_decimal_commas_are_read(
    header: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"{header}-3,5;x;1\n,25;y,z;1,5e2\n7;1,2;-2,125\n")
    table = load_table(path)
    np.testing.assert_array_equal(table.values, [[-3.5, 1.0], [0.25, 150.0], [7.0, -2.125]])
    assert (
        f"commas are decimal points in {'a, b' if header else 'x1, x3'}" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        # Points are decimal, and the comma is a slip.
        (["1.5", "2,5", "3.5", "4.5"] + ["5.5"] * 6, [1.5, 3.5, 4.5] + [5.5] * 6),
        # Between commas a decimal one would have parted cells.
        (['"1,234"', '"2,345"', "3"], [1234.0, 2345.0, 3.0]),
        (["1,234", "2,345", "3"], [1.234, 2.345, 3.0]),
        (['"1,234.50"', '"-12,345,678"', "3"], [1234.5, -12345678.0, 3.0]),
        (["1.234,50", "-12.345.678,25", "3"], [1234.5, -12345678.25, 3.0]),
        (["1\u00a0234,5", "2\u00a0345,25", "3,5"], [1234.5, 2345.25, 3.5]),
        (["1\u00a0234", "2\u00a0345", "3"], [1234.0, 2345.0, 3.0]),
        (["1'234.5", "2'345", "3"], [1234.5, 2345.0, 3.0]),
        # Signs of currencies, units and percentages, of one kind.
        (['"$1,234.50"', '"-$2.5"', '"$ 3"'], [1234.5, -2.5, 3.0]),
        (["1.234,50 €", "2,25 €", "-3 €"], [1234.5, 2.25, -3.0]),
        (["EUR 12", "EUR 2.5", "EUR 3"], [12.0, 2.5, 3.0]),
        (["70.1 kg", "2.5kg", "1e2 kg"], [70.1, 2.5, 100.0]),
        (["12%", "2.5 %", "-3%"], [12.0, 2.5, -3.0]),
        (["12 kg", "2.5 lb", "3 kg"], None),
        (["US$ 12", "US$2.5", "US$ 3"], [12.0, 2.5, 3.0]),
        (["12 km/h", "2.5km/h", "3 km/h"], [12.0, 2.5, 3.0]),
        (["70 m2", "55m²", "3 m2"], None),
        (["70 m2", "55m2", "3 m2"], [70.0, 55.0, 3.0]),
        (["5 stars", "4 stars", "3 stars"], [5.0, 4.0, 3.0]),
        (["1.2k", "3k", "0.5k"], [1.2, 3.0, 0.5]),
        (["1.2k", "3M", "0.5k"], None),
        # Names with a number in them.
        (["10A", "11A", "12A"], None),
        (["4xx", "5xx", "2xx"], None),
        (["2D", "3D", "3D"], None),
        (["1st", "1st", "1st"], None),
        (["LOT 12", "LOT 13", "LOT 14"], None),
        (["1st", "2nd", "3rd"], None),
        (["C12", "C13", "C14"], None),
        (["10-20", "20-30", "30-40"], None),
        (["13:30", "14:30", "15:30"], None),
        (['"1,25"', '"2,345"', "3"], [1.25, 2.345, 3.0]),
        (['"12,345,678"', '"1,25"', "3"], None),
    ],
)
def test_numbers_are_read_as_people_write_them(
    cells: list[str], read: list[float] | None, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    separator = "," if '"' in "".join(cells) or "," not in "".join(cells) else ";"
    path.write_text(f"a{separator}b\n" + "".join(f"{cell}{separator}1\n" for cell in cells))
    table = load_table(path)
    if read is None:
        assert table.names == ["b"]
    else:
        assert table.values[:, 0].tolist() == read


def test_how_numbers_are_read_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.csv"
    path.write_text('n,price,share\n"1,200",$3.5,7%\n800,$1.25,8%\n')
    np.testing.assert_array_equal(load_table(path).values, [[1200, 3.5, 7], [800, 1.25, 8]])
    told = capsys.readouterr().err
    assert "commas are between thousands in n" in told
    assert "before numbers, left out: $ in price" in told
    assert "after numbers, left out: % in share" in told


def test_parquet_where_its_reader_is_installed(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    if find_spec("pyarrow") is None:
        path.write_bytes(b"PAR1")
        with pytest.raises(LibraryMissing, match="reading Parquet needs pyarrow") as caught:
            load_table(path)
        assert caught.value.next_step == "pip install 'weald[parquet]'"
        return
    arrow = import_module("pyarrow")
    columns = {"a": VALUES[:, 0], "name": ["row"] * 3, "b": VALUES[:, 1]}
    import_module("pyarrow.parquet").write_table(arrow.table(columns), path)
    table = load_table(path)
    np.testing.assert_array_equal(table.values, VALUES)
    assert (table.names, table.left_out) == (["a", "b"], ["name"])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "a,b\n1,2\n3,\n", r"row 1, column b"),
        ("a.csv", "a,b\n1,2\n3\n", r"line 3 has 1 cells, expected 2"),
        ("a.csv", "", r"no rows"),
        ("a.csv", "a,b\nx,y\n", r"no column holds numbers only"),
        ("a.jsonl", "{oops\n", r"no line is a record: line 1 is not JSON"),
        ("a.jsonl", "3\n", r"neither an object nor a list"),
        ("a.npy", "not numpy", r"not a NumPy file"),
        ("a.txt", "1 2", r"expected one of \.npy"),
    ],
)
def test_mistakes_name_their_place(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        load_table(path)


def test_arrays_that_are_no_matrix_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 2, 2)))
    with pytest.raises(UsageError, match=r"\(2, 2, 2\)"):
        load_table(tmp_path / "x.npy")
    np.savez(tmp_path / "net.npz", A=np.zeros((2, 2)))
    with pytest.raises(UsageError, match="network"):
        load_table(tmp_path / "net.npz")
    np.savez(tmp_path / "other.npz", Z=np.zeros((2, 2)))
    with pytest.raises(UsageError, match="found Z"):
        load_table(tmp_path / "other.npz")


def test_a_file_of_objects_is_never_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UsageError, match="plain numbers"):
        load_table(tmp_path / "x.npy")


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"):
        load_table(tmp_path / "nowhere.csv")


def test_counts_of_words_stay_sparse_where_the_caller_takes_them(tmp_path: Path) -> None:
    counts = sparse.csr_array(np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]))
    parts = {"data": counts.data, "indices": counts.indices, "indptr": counts.indptr}
    about = {"shape": np.array(counts.shape), "format": np.array(b"csr"), "y": np.array([4, 2])}
    held: Any = {**parts, **about, "vocab": np.array(["and", "of", "zebra"])}
    path = tmp_path / "words.npz"
    np.savez(path, **held)
    table: Any = load_table(path, keep_sparse=True)
    assert isinstance(table.values, sparse.csr_array)
    assert table.names == ["and", "of", "zebra"]
    assert table.truth is not None
    assert table.truth.tolist() == [4, 2]
    assert (table.values.toarray() == counts.toarray()).all()
    chosen: Any = load_table(path, ["zebra", "of"], keep_sparse=True)
    assert chosen.values.toarray().tolist() == [[0.0, 2.0], [0.0, 0.0]]
    assert (load_table(path).values == counts.toarray()).all()
    held["data"] = np.array([2.0, np.nan])
    np.savez(path, **held)
    with pytest.raises(UsageError, match="the first in row 1, column and"):
        load_table(path, keep_sparse=True)
