"""``weald warmup``: compile the kernels before the first record asks for them."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from weald.cli.terminal.options import example
from weald.cli.terminal.output import note

__all__ = ["add_to", "compile_kernels"]


def add_to(app: typer.Typer) -> None:
    """Register the command of this module."""
    app.command(
        epilog=example(
            "weald warmup",
            "weald warmup --family gaussian",
            "WEALD_KERNEL_CACHE=/var/cache/weald weald warmup",
        )
    )(warmup)


def warmup(
    family: Annotated[
        list[str] | None,
        typer.Option("--family", metavar="NAME", help="Only this family; repeat for more."),
    ] = None,
) -> None:
    """Compile the kernels, so that the next start is quick.

    They are compiled once for each version of the program and each kind of processor. The folder
    is $WEALD_KERNEL_CACHE, or weald/kernels in the user's cache folder.
    """
    from weald.cli.errors import UsageError
    from weald.treecore.compiled.kernel_cache import cache_directory
    from weald.treecore.family import FAMILIES

    unknown = sorted(set(family or []) - set(FAMILIES))
    if unknown:
        raise UsageError(f"no family {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    for name in family or FAMILIES:
        note(f"{name}: {compile_kernels(name):.1f} s")
    note(f"kept in {cache_directory()}")


def compile_kernels(family: str) -> float:
    """Run everything that the engine runs on a small sample; return the seconds it took."""
    import numpy as np

    from weald.mcmc.chain.chain import MixtureChain
    from weald.mcmc.leases.lease_work import work
    from weald.mcmc.leases.leases import Budget
    from weald.treecore.family import FAMILIES
    from weald.treecore.prior import build_prior

    start = time.perf_counter()
    sample = np.random.default_rng(0).integers(0, 2, size=(24, 2)).astype(np.float64)
    sample += np.arange(24)[:, None] % 3
    chain = MixtureChain.start(FAMILIES[family].build({}, sample), build_prior("dp", {}), seed=0)
    chain.insert(sample)
    chain.refine()
    lent = chain.lend(np.random.default_rng(0), [Budget("tgmcmc,gibbs", 1, 0)])
    chain.adopt([(each.atoms, work(each.lease).labels) for each in lent])
    chain.log_weights(sample[:2])
    return time.perf_counter() - start
