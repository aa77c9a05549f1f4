"""Runs the chains of a fit, with a family and a number of chains where none was given."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from weald.mcmc.offline.family_choice import Choice
    from weald.mcmc.offline.fit import ChainTrace, FitResult, FitSettings

__all__ = ["AUTO", "processors", "sample", "settled"]

# The family that predicts held-out rows better is chosen.
AUTO = "auto"
_CHOOSING = {
    False: "choosing the family",
    True: "choosing the family (kernels are compiled for it, long only the first time)",
}


def processors() -> int:
    """How many of them there are to share work among."""
    return os.cpu_count() or 1


def sample(
    values: Any, settings: FitSettings, seconds: Callable[[], float] | None = None
) -> FitResult:
    """Run the chains, side by side where there are processors for them.

    ``seconds`` is asked what is left for all chains, whenever one of them is where it starts; the
    settings say otherwise how long each samples.
    """
    from concurrent.futures import ThreadPoolExecutor

    from weald.cli.terminal.progress import counting, step
    from weald.mcmc.offline.fit import combine, family_for, ground_of, is_population, run_chain

    if is_population(settings):
        return _sample_population(values, settings)
    with step("compiling the kernels"):
        family = family_for(values, settings)
        _compile(family, values, settings)
    at_once = min(settings.chains, processors())
    n_turns = -(-settings.chains // at_once)
    shares = [0.0] * settings.chains
    with counting("sampling, percent", 100) as advance:
        ground = ground_of(values, settings, family)

        def one(index: int) -> ChainTrace:
            def progress(share: float) -> None:
                shares[index] = share
                advance(int(100 * sum(shares) / len(shares)), "")

            turns_left = n_turns - index // at_once
            own = None if seconds is None else lambda: seconds() / turns_left
            return run_chain(values, settings, index, time.perf_counter, progress, ground, own)

        # The kernels release the interpreter lock, so that threads are enough.
        with ThreadPoolExecutor(at_once) as pool:
            traces = list(pool.map(one, range(settings.chains)))
    return combine(settings, traces, values)


def _sample_population(values: Any, settings: FitSettings) -> FitResult:
    """Run all chains together: kernels take their guides from the half that stands still."""
    from weald.cli.terminal.progress import counting, step
    from weald.mcmc.offline.fit import LEAST_POPULATION, combine, run_population

    with step("compiling the kernels"):
        # No more chains than were asked for: too few are refused here.
        least = min(settings.chains, LEAST_POPULATION)
        few = replace(settings, iterations=1, seconds=None, chains=least, init="one")
        run_population(values[:20], few, time.perf_counter)
    with counting("sampling, percent", 100) as advance:
        traces = run_population(
            values,
            settings,
            time.perf_counter,
            lambda share: advance(int(100 * share), ""),
        )
    return combine(settings, traces, values)


def settled(
    values: Any, settings: FitSettings, chains: int | None, seconds: float | None = None
) -> tuple[FitSettings, Choice | None]:
    """The settings with chains and a family, and why it was chosen where it was not given.

    Each family is tried for so many ``seconds`` at most.
    """
    from weald.mcmc.offline.chains import POPULATION, chains_for
    from weald.mcmc.offline.fit import is_population, kernels_of
    from weald.mcmc.schedule.kernels import require_every_partition

    require_every_partition(kernels_of(settings))
    if chains is None:
        # Guides come from other chains: alone there would be none.
        many = POPULATION if is_population(settings) else chains_for(*values.shape)
        settings = replace(settings, chains=many)
    if settings.family != AUTO:
        return settings, None
    from weald.cli.terminal.progress import step
    from weald.mcmc.offline.family_choice import choose_family

    from .compiling import compiling_beside

    with compiling_beside() as beside, step(_CHOOSING[beside]):
        at_once = 1 if beside else min(2, processors())
        choice = choose_family(values, settings, time.perf_counter, at_once, seconds)
    return replace(settings, family=choice.family), choice


def _compile(family: Any, values: Any, settings: FitSettings) -> None:
    """Run everything once on a few rows, so that no chain's time is spent on the compiler."""
    from weald.mcmc.offline.fit import run_chain
    from weald.treecore.family import spec_of

    params = spec_of(family).parameters(family)
    init = settings.init if settings.init in ("auto", "ibhc", "one", "singletons") else "one"
    small = replace(settings, params=params, init=init, iterations=1, seconds=None)
    run_chain(values[:20], small, 0, time.perf_counter)
