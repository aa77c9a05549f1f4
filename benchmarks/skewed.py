"""Skewed amounts and spread counts: how well families predict rows that they have not seen.

    python -m benchmarks.skewed                 all tables, three seeds
    python -m benchmarks.skewed waits edits     these

Durations and amounts above 0 are fitted by ``gamma``, and by ``diagonal`` as they stand and by
their logarithms; counts by ``negative-binomial`` and ``poisson``. Of 1,200 random rows 800 are
fitted, by one chain of 100 sweeps, and 400 predicted. Densities are of the values themselves, in
nats a row; a gain is over the family before it, with its standard error over rows and seeds. The
data are under ``WEALD_DATA``.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from benchmarks.papers.data import DATA
from weald.mcmc.offline.fit import FitSettings, run_chain
from weald.mcmc.offline.held_out import held_out_densities

Values = NDArray[np.float64]

_SEEN, _OTHERS, _SWEEPS, _SEEDS = 800, 400, 100, 3


def _quakes() -> pd.DataFrame:
    return pd.read_csv(DATA / "stream_usgs_earthquakes_1707.csv.gz")


def _flights() -> pd.DataFrame:
    return pd.read_csv(DATA / "stream_nycflights13_jan_feb.csv.gz", parse_dates=["sched_dep"])


def _edits() -> pd.DataFrame:
    found = pd.read_json(DATA / "stream_wikipedia_edits_2015-09-12.jsonl.gz", lines=True)
    return found.assign(time=pd.to_datetime(found["time"], format="ISO8601"))


def _above_zero(table: pd.DataFrame, *units: tuple[str, float]) -> Values:
    """Columns where all are above 0, each number spread over the unit that it is rounded to.

    Else the density of a number that comes often has no bound.
    """
    values = table[[name for name, _ in units]].to_numpy(np.float64)
    values = values[(values > 0.0).all(axis=1)]
    off = Generator(PCG64(0)).random(values.shape)
    return np.asarray(values - off * np.minimum([unit for _, unit in units], values))


def _waits() -> Values:
    """Seconds from each earthquake to the next one."""
    waits = np.diff(np.sort(_quakes()["time_ms"].to_numpy(np.float64))) / 1e3
    return np.asarray(waits[waits > 0.0, None])


def _traffic() -> Values:
    """Edits of six wikipedias in each minute."""
    edits = _edits()
    often = edits["channel"].value_counts().index[:6]
    minute = edits["time"].dt.floor("min")
    return pd.crosstab(minute, edits["channel"])[often].to_numpy(np.float64)


def _departures() -> Values:
    """Departures to each of six airports in each hour of the day in which there are any."""
    flights = _flights()
    often = flights["dest"].value_counts().index[:6]
    hour = flights["sched_dep"].dt.floor("h")
    return pd.crosstab(hour, flights["dest"])[often].to_numpy(np.float64)


# Tables by name, and whether they are counts.
_TABLES: dict[str, tuple[Callable[[], Values], bool]] = {
    "waits": (_waits, False),
    "residuals": (lambda: _above_zero(_quakes(), ("rms", 0.01), ("gap", 1.0)), False),
    "delays": (lambda: _above_zero(_flights(), ("dep_delay", 1.0), ("arr_delay", 1.0)), False),
    "flights": (lambda: _above_zero(_flights(), ("air_time", 1.0)), False),
    "edits": (lambda: _above_zero(_edits(), ("added", 1.0)), False),
    "traffic": (_traffic, True),
    "departures": (_departures, True),
    "characters": (lambda: _edits()[["added", "deleted"]].to_numpy(np.float64), True),
}


def _predicted(seen: Values, others: Values, family: str, seed: int) -> tuple[Values, float, float]:
    """Log densities of the others, clusters on average, and seconds, kernels there."""
    settings = FitSettings(family=family, iterations=_SWEEPS, seed=seed)
    begun = time.process_time()
    trace = run_chain(seen, settings, 0, time.perf_counter)
    took = time.process_time() - begun
    later = trace.n_clusters[len(trace.n_clusters) // 2 :]
    return held_out_densities(seen, others, [trace]), float(np.mean(later)), took


def compared(values: Values, seed: int, *, counts: bool) -> dict[str, tuple[Values, float, float]]:
    """What each family finds on some rows: densities of others, clusters, seconds."""
    order = Generator(PCG64(seed)).permutation(len(values))
    seen, others = values[order[:_SEEN]], values[order[_SEEN : _SEEN + _OTHERS]]
    if counts:
        names = ("poisson", "negative-binomial")
        return {name: _predicted(seen, others, name, seed) for name in names}
    density, k, took = _predicted(np.log(seen), np.log(others), "diagonal", seed)
    return {
        "diagonal": _predicted(seen, others, "diagonal", seed),
        "diagonal of logs": (density - np.log(others).sum(axis=1), k, took),
        "gamma": _predicted(seen, others, "gamma", seed),
    }


def main() -> None:
    """Compare on the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", choices=[*_TABLES, []], default=[])
    for name in parser.parse_args().tables or _TABLES:
        make, counts = _TABLES[name]
        values = make()
        runs = [compared(values, seed, counts=counts) for seed in range(_SEEDS)]
        before = None
        for family in runs[0]:
            density = np.concatenate([run[family][0] for run in runs])
            k, took = (np.mean([run[family][at] for run in runs]) for at in (1, 2))
            gain = ""
            if before is not None:
                off = density - before
                gain = f"  gain {off.mean():+.3f} +- {off.std(ddof=1) / np.sqrt(off.size):.3f}"
            print(
                f"{name:10} {family:18} {density.mean():9.3f} a row, {k:5.1f} clusters, "
                f"{took:5.1f} s{gain}",
                flush=True,
            )
            before = density


if __name__ == "__main__":
    main()
