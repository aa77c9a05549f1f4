"""Prefetching asks the processor for a row, and does nothing else."""

from typing import Any

import numba
import numpy as np

from weald.treecore.compiled.prefetch import prefetch_entry, prefetch_row
from weald.treecore.statistics.sparse_rows import make_sparse_rows


def ask(rows: Any) -> int:
    for i in range(3):
        prefetch_row(rows, i)
    return 3


def test_dense_rows() -> None:
    rows = np.arange(60.0).reshape(3, 20)
    compiled = numba.njit(ask)
    assert compiled(rows) == ask(rows) == 3
    assert (rows == np.arange(60.0).reshape(3, 20)).all()
    (code,) = compiled.inspect_llvm().values()
    assert "llvm.prefetch" in code


def ask_for_entries(entries: Any) -> int:
    for i in range(entries.shape[0]):
        prefetch_entry(entries, i)
    return 3


def test_entries_apart() -> None:
    entries = np.arange(6)[::2]
    compiled = numba.njit(ask_for_entries)
    assert compiled(entries) == ask_for_entries(entries) == 3
    (code,) = compiled.inspect_llvm().values()
    assert "llvm.prefetch" in code


def test_rows_of_another_form_are_passed_over() -> None:
    rows = make_sparse_rows(3, 8, np.zeros(9))
    compiled = numba.njit(ask)
    assert compiled(rows) == ask(rows) == 3
    (code,) = compiled.inspect_llvm().values()
    assert "llvm.prefetch" not in code
