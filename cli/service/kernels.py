"""Compiling what a stream needs, on two processors where there are two.

    python -m weald.cli.service.kernels FAMILY      the sweeps alone; the rest is interpreted

A kernel waits for what the one before it returns, but its code does not: while one process compiles
insertion and the guide, another compiles the sweeps on a sample that it inserted by interpreting.
Either takes what the other has compiled from the cache
(:mod:`weald.treecore.compiled.kernel_cache`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weald.mcmc.chain.chain import MixtureChain

__all__ = ["compile_kernels", "sample_for"]


def compile_kernels(family: str) -> float:
    """Run everything that the engine runs on a small sample; return the seconds it took."""
    import numpy as np

    from weald.mcmc.leases.lease_work import work
    from weald.mcmc.leases.leases import Budget

    start = time.perf_counter()
    with _sweeps_beside(family):
        chain, sample = _refined(family)
    lent = chain.lend(np.random.default_rng(0), [Budget("auto", 1, 0)])
    chain.adopt([(each.atoms, work(each.lease).labels) for each in lent])
    chain.log_weights(sample[:2])
    return time.perf_counter() - start


def sample_for(family: str) -> Any:
    """Return 24 observations (24, 2) in three places that the family can have."""
    import numpy as np

    sample = np.random.default_rng(0).integers(0, 2, size=(24, 2)).astype(np.float64)
    sample += np.arange(24)[:, None] % 3
    if family == "bernoulli":
        return sample % 2.0
    return sample + 1.0 if family == "gamma" else sample


def _refined(family: str) -> tuple[MixtureChain, Any]:
    """A chain on a sample, after one refinement, and the sample."""
    from weald.mcmc.chain.chain import MixtureChain
    from weald.treecore.family import FAMILIES
    from weald.treecore.prior import build_prior

    sample = sample_for(family)
    chain = MixtureChain.start(FAMILIES[family].build({}, sample), build_prior("dp", {}), seed=0)
    chain.insert(sample)
    chain.refine()
    return chain, sample


def _sweeps() -> list[Any]:
    import weald.mcmc.chain.chain  # noqa: F401 - what runs the sweeps is loaded, too
    from weald.mcmc.gibbs import gibbs
    from weald.mcmc.split_merge import sams
    from weald.mcmc.tree_guided import tgmcmc

    return [tgmcmc.sweep, sams.sweep, gibbs.sweep]


def _is_kept(kernel: Any) -> bool:
    """Whether the cache has a form of it: other families' are not told apart."""
    from weald.treecore.compiled.packaged import packaged_kernels

    folder = Path(kernel.stats.cache_path)
    return packaged_kernels() is not None or any(folder.glob(f"*.{kernel.py_func.__name__}-*"))


@contextmanager
def _sweeps_beside(family: str) -> Iterator[None]:
    """Have another process compile the sweeps meanwhile."""
    if all(map(_is_kept, _sweeps())) or os.cpu_count() == 1:
        yield
        return
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-P", "-m", __name__, family]
    with subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet) as other:  # noqa: S603 - our own
        try:
            yield
        finally:
            other.terminate()


if __name__ == "__main__":
    from weald.treecore.compiled.compile import interpret_all_but

    interpret_all_but(_sweeps())
    _refined(sys.argv[1])
