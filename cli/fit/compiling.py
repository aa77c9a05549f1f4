"""Compiling for one family in another process, while the fit's own compiles for the other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from weald.cli.service.kernels import beside, would_gain_by_another
from weald.mcmc.offline.family_choice import FULL

__all__ = ["compiling_beside", "small_fit"]

PROGRAM = "from weald.cli.main import main; main()"
ROWS = 120


@contextmanager
def compiling_beside() -> Iterator[bool]:
    """Have a small fit of family ``gaussian`` run beside, where kernels are to be compiled.

    Yields whether it does. A kernel that is asked for meanwhile is waited for, with the compiler's
    lock held: families are better tried one after the other then.
    """
    if not would_gain_by_another():
        yield False
        return
    with TemporaryDirectory() as folder, beside(small_fit(Path(folder))):
        yield True


def small_fit(folder: Path) -> list[str]:
    """Write a small table of three kinds into a folder, and return the command that fits it."""
    import numpy as np

    file = folder / "rows.csv"
    rows = np.random.default_rng(0).normal(size=(ROWS, 3))
    rows += 9.0 * (np.arange(ROWS) % 3)[:, None]
    np.savetxt(file, rows, delimiter=",", header="a,b,c", comments="")
    return [sys.executable, "-P", "-c", PROGRAM, "fit", str(file), "--family", FULL]
