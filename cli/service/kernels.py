"""Compiling what a stream needs, on two processors where there are two.

    python -m weald.cli.service.kernels FAMILY             what an engine without workers needs
    python -m weald.cli.service.kernels FAMILY --second    half of it, while the rest is interpreted

A kernel waits for what the one before it returns, but its code does not: while one process compiles
insertion and the guide, another compiles the sweeps and what publications need, on a sample that it
inserted by interpreting. Either takes what the other has compiled from the cache
(:mod:`weald.treecore.compiled.kernel_cache`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weald.mcmc.chain.chain import MixtureChain

__all__ = [
    "are_kept",
    "beside",
    "compile_kernels",
    "compiling",
    "sample_for",
    "second_half_beside",
    "would_gain_by_another",
]

MODULE = "weald.cli.service.kernels"
SWEEPS = (
    "weald.mcmc.tree_guided.tgmcmc.sweep",
    "weald.mcmc.split_merge.sams.sweep",
    "weald.mcmc.gibbs.gibbs.sweep",
)
SECOND = "--second"
SECOND_HALF = (*SWEEPS, "weald.mcmc.estimate.", "weald.treecore.family.totals.")


def compile_kernels(family: str) -> float:
    """Run everything that the engine runs on a small sample; return the seconds it took."""
    import numpy as np

    from weald.mcmc.leases.lease_work import work
    from weald.mcmc.leases.leases import Budget

    start = time.perf_counter()
    with second_half_beside(family) as other:
        chain, sample = _refined(family)
        lent = chain.lend(np.random.default_rng(0), [Budget("auto", 1, 0)])
        chain.adopt([(each.atoms, work(each.lease).labels) for each in lent])
        chain.log_weights(sample[:2])
        if other is not None:
            other.wait()
    return time.perf_counter() - start


def sample_for(family: str) -> Any:
    """Return 24 observations (24, 2) in three places far apart that the family can have."""
    import numpy as np

    sample = np.random.default_rng(0).integers(0, 2, size=(24, 2)).astype(np.float64)
    sample += 9 * (np.arange(24)[:, None] % 3)
    if family == "bernoulli":
        return sample % 2.0
    return sample + 1.0 if family == "gamma" else sample


def _refined(family: str) -> tuple[MixtureChain, Any]:
    """A chain on a sample, after one refinement and one publication, and the sample."""
    from weald.mcmc.chain.chain import MixtureChain
    from weald.mcmc.settings import RefinementSettings
    from weald.stream.model.mixture_shard import MixtureShard
    from weald.stream.telemetry.novelty import surprise
    from weald.treecore.family import FAMILIES
    from weald.treecore.prior import build_prior

    sample = sample_for(family)
    built = FAMILIES[family].build({}, sample)
    chain = MixtureChain.start(built, build_prior("dp", {}), seed=0)
    every = len(sample)
    cadence = RefinementSettings(every_records=every, publish_every_records=every)
    shard = MixtureShard(chain, built, cadence)
    shard.apply(sample, now=0.0)
    surprise(shard, sample)
    return chain, sample


def are_kept() -> bool:
    """Whether the cache has a form of the sweeps: other families' are not told apart."""
    from weald.mcmc.gibbs import gibbs
    from weald.mcmc.split_merge import sams
    from weald.mcmc.tree_guided import tgmcmc
    from weald.treecore.compiled.packaged import packaged_kernels

    folders = [Path(each.sweep.stats.cache_path) for each in (gibbs, sams, tgmcmc)]
    return packaged_kernels() is not None or all(any(each.glob("*.sweep-*")) for each in folders)


def would_gain_by_another() -> bool:
    """Whether there is something to compile, and another processor to do a part of it."""
    return os.cpu_count() != 1 and not are_kept()


@contextmanager
def compiling(family: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Have other processes compile what an engine needs, as many as there are processors for."""
    with ExitStack() as running:
        halves: list[list[str]] = [[]] if os.cpu_count() == 1 else [[], [SECOND]]
        yield [running.enter_context(beside(_command(family, *half))) for half in halves]


@contextmanager
def second_half_beside(family: str) -> Iterator[subprocess.Popen[bytes] | None]:
    """Have another process compile sweeps and publications, where it gains anything.

    Of a family of several parts it is not known which ones.
    """
    if family in ("irm", "mixed") or not would_gain_by_another():
        yield None
        return
    with beside(_command(family, SECOND)) as other:
        yield other


@contextmanager
def beside(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of ours in silence, and end it at the end, whatever it has done by then."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet) as other:  # noqa: S603 - our own
        try:
            yield other
        finally:
            other.terminate()


def _command(family: str, *half: str) -> list[str]:
    return [sys.executable, "-P", "-m", MODULE, family, *half]


if __name__ == "__main__":
    if sys.argv[2:] == [SECOND]:
        from weald.treecore.compiled.compile import interpret_all_but

        # What is interpreted has to be there.
        import_module("weald.stream.model.mixture_shard")
        interpret_all_but(*SECOND_HALF)
    _refined(sys.argv[1])
