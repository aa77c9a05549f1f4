"""Counts of words that stay sparse: the same chains as with dense rows."""

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from tests.mcmc.offline.sparse_fit import KERNELS, documents, fitted
from weald.mcmc.offline.fit import FitSettings, run_chain
from weald.mcmc.offline.start import atoms_of
from weald.treecore.errors import ObservationError
from weald.treecore.family import FAMILIES
from weald.treecore.family.totals import totals_of_groups
from weald.treecore.statistics.sparse_rows import SparseRows


@pytest.fixture(scope="module")
def fits(pytestconfig: pytest.Config) -> dict[str, Any]:
    """What every kernel finds, in a process that compiles nothing."""
    finished = subprocess.run(
        [sys.executable, "-m", "tests.mcmc.offline.sparse_fit"],
        cwd=pytestconfig.rootpath,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        stdout=subprocess.PIPE,
        check=True,
    )
    return dict(json.loads(finished.stdout))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_same_chain_as_with_dense_rows(kernel: str, fits: dict[str, Any]) -> None:
    log_joint, labels = fits[f"{kernel} sparse"]
    expected, others = fits[f"{kernel} dense"]
    assert log_joint == pytest.approx(expected, abs=1e-8)
    assert labels == others


def test_the_same_chain_compiled(fits: dict[str, Any]) -> None:
    log_joint, labels = fitted("gibbs", csr_array(documents()))
    expected, others = fits["gibbs sparse"]
    assert log_joint == pytest.approx(expected, abs=1e-8)
    assert labels == others


def test_the_same_held_out_density_as_with_dense_rows(fits: dict[str, Any]) -> None:
    dense, sparse = fits["held out"]
    assert sparse == pytest.approx(dense, abs=1e-9)


def test_atoms_stay_sparse() -> None:
    counts = csr_array(documents())
    family = FAMILIES["multinomial"].build({"beta": 0.2}, documents())
    rows = atoms_of(family, counts).rows
    assert isinstance(rows, SparseRows)
    assert rows.used.sum() == counts.nnz


def test_a_count_that_is_none_is_refused_by_row() -> None:
    counts = documents()
    counts[5, 2] = 1.5
    settings = FitSettings(family="multinomial", kernels=("gibbs",), iterations=1)
    with pytest.raises(ObservationError, match=r"row 5, feature 2 is 1\.5"):
        run_chain(csr_array(counts), settings, 0, lambda: 0.0)


def test_totals_of_groups_are_those_of_dense_rows() -> None:
    counts = documents()
    groups = np.arange(14, dtype=np.int64) % 3
    family = FAMILIES["multinomial"].build({"beta": 0.2}, counts)
    expected = totals_of_groups(family, counts, groups, 4)
    found = totals_of_groups(family, csr_array(counts), groups, 4)
    np.testing.assert_array_equal(found, expected)
