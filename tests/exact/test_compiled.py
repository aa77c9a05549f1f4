"""Compiled kernels: the same draws as the plain code, and the posterior in the long run."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from tests.exact.cases import FORMS, KERNELS, Kernel, Problem, problem
from tests.exact.trace import N_ATOMS, REGISTERED, RUNS
from weald.mcmc.gibbs import gibbs
from weald.mcmc.state.atom_state import make_tally

N_RECORDS = 20_000
STRIDE = 20
N_BATCHES = 50


@pytest.fixture(scope="module")
def uncompiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    file: Path = tmp_path_factory.mktemp("trace") / "uncompiled.npz"
    command = [sys.executable, "-m", "tests.exact.trace", str(file)]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        command, cwd=root, env=environment, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    with np.load(file) as traces:
        yield traces


@pytest.mark.parametrize("name", RUNS)
def test_draw_for_draw(name: str, uncompiled: Any) -> None:
    compiled = RUNS[name]()
    # Logarithms may differ in the last digit between the two; no draw may.
    np.testing.assert_allclose(compiled, uncompiled[name], rtol=1e-9, atol=1e-9)
    if name in REGISTERED:
        assert np.abs(np.diff(compiled[:, :N_ATOMS], axis=0)).sum() > 0, "nothing moved"
    elif "rgsm" not in name and "gibbs" not in name:
        assert compiled[-1, -15:].reshape(5, 3)[:, 1].sum() > 0, "nothing was accepted"


def records(small: Problem, kernel: Kernel, rng: Generator) -> NDArray[np.int64]:
    """Index of the state after every ``STRIDE`` steps."""
    state = small.prepare(small.states[0])
    index = {shape: at for at, shape in enumerate(small.states)}
    live = np.arange(len(small.states[0]), dtype=np.int64)
    tally = make_tally()
    found = np.empty(N_RECORDS, dtype=np.int64)
    for at in range(N_RECORDS):
        if kernel.plan is None:
            gibbs.sweep(rng, state, small.model, live)
        else:
            plan = kernel.plan._replace(proposals=STRIDE)
            kernel.sweep(rng, state, small.model, plan, live, tally)
        seen: dict[int, int] = {}
        found[at] = index[
            tuple(seen.setdefault(k, len(seen)) for k in state.partition.label.tolist())
        ]
    return found


def summaries(small: Problem) -> NDArray[np.float64]:
    """For each state: blocks, squared block sizes, whether the first two are together."""
    shapes = [np.array(shape) for shape in small.states]
    squares = [(np.bincount(shape) ** 2).sum() for shape in shapes]
    return np.array(
        [[s.max() + 1, square, s[0] == s[1]] for s, square in zip(shapes, squares, strict=True)]
    )


@pytest.mark.parametrize("name", [*KERNELS, "rgsm-1", "sdds", "rm-half"])
def test_long_run(name: str, rng: Generator) -> None:
    small = problem("gaussian", "dp", 5)
    visited = records(small, (KERNELS | FORMS)[name], rng)
    values = summaries(small).astype(float)
    expected = small.target @ values
    batches = values[visited].reshape(N_BATCHES, -1, values.shape[1]).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(N_BATCHES)
    assert (np.abs(batches.mean(axis=0) - expected) < 3.0 * error).all()
    assert (error < 0.1).all(), "too few independent draws to show anything"
