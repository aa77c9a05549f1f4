"""What `weald fit FILE` shows of real labelled tables, over five seeds.

    python -m benchmarks.real_files                  every table that is here: half an hour
    python -m benchmarks.real_files wine digits      these
    python -m benchmarks.real_files --write          and put the table into docs/real-files.md

Each table becomes a CSV file of 3,000 rows at most, in an order drawn once; whole numbers are
written as such. `weald fit` reads it with its defaults, as somebody would who has nothing but the
file: no rows are set aside and nothing is standardised beforehand (`benchmarks/real.py` does both,
as peers need it). Adjusted Rand index of the clusters and of the groups, the least and the greatest
of five seeds beside the median; how far the groups of two seeds agree, by the same index, the mean
over pairs; how many of the five Weald doubts; seconds of processor time, the median, kernels there.
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from benchmarks.labelled_tables import TABLES, TUNED_ON, drawn

PAGE = Path(__file__).resolve().parents[1] / "docs" / "real-files.md"
MOST_ROWS, SEEDS = 3000, 5
WEALD = Path(sys.executable).with_name("weald")


class Fit(NamedTuple):
    """What one seed shows."""

    cluster: NDArray[np.int64]
    group: NDArray[np.int64]
    doubted: bool
    seconds: float


class Row(NamedTuple):
    """A table's labels and fits."""

    table: str
    labels: NDArray[np.int64]
    fits: Sequence[Fit]

    def indices(self, level: str) -> list[float]:
        """Of each seed, with the labels."""
        found = [getattr(fit, level) for fit in self.fits]
        return [float(adjusted_rand_score(self.labels, each)) for each in found]

    def better(self) -> float:
        """The greater median of the two levels."""
        return max(float(np.median(self.indices(level))) for level in ("cluster", "group"))

    def agreement(self) -> float:
        """Mean index of the groups of two seeds."""
        pairs = combinations([fit.group for fit in self.fits], 2)
        return float(np.mean([adjusted_rand_score(*pair) for pair in pairs]))


def row_of(name: str) -> Row | None:
    """Fit a table's file with each seed; None where it is not here."""
    table = drawn(name, MOST_ROWS)
    if table is None:
        return None
    values, labels = table
    with tempfile.TemporaryDirectory() as made:
        file = Path(made) / "table.csv"
        columns: list[list[Any]] = [
            (column.astype(int) if (column == np.rint(column)).all() else column).tolist()
            for column in values.T
        ]
        with file.open("w", newline="", encoding="utf-8") as opened:
            writer = csv.writer(opened)
            writer.writerow([f"x{at}" for at in range(len(columns))])
            writer.writerows(zip(*columns, strict=True))
        row = Row(name, labels, [_fit(file, seed) for seed in range(SEEDS)])
    print(_line(row), flush=True)
    return row


def _fit(file: Path, seed: int) -> Fit:
    out = file.with_name("out.csv")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = [WEALD, "fit", str(file), "--seed", str(seed), "--out", str(out), "--output", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"weald fit {file}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    shown = np.loadtxt(out, delimiter=",", skiprows=1, usecols=(1, 2), dtype=np.int64, ndmin=2)
    doubted = json.loads(done.stdout)["verdict"]["status"] == "warn"
    return Fit(shown[:, 0], shown[:, 1], doubted, seconds)


def page(rows: Sequence[Row]) -> str:
    """The document."""
    lines = [
        "# Real tables as files",
        "",
        "Written by `python -m benchmarks.real_files --write`: `weald fit FILE` with its defaults,",
        "five seeds, 3,000 rows at most. Adjusted Rand index with the labels: the median and, in",
        "brackets, the least and the greatest; `agree` is the mean index of the groups of two",
        "seeds, `doubted` the seeds whose verdict is to doubt them. Weald's rules were set on the",
        "tables with a star. Seconds are processor time. Beside peers, on rows that all see alike,",
        "tables are on [another page](real-tables.md), as [streams](real-streams.md) on a third.",
        "",
        "| table | rows | clusters | groups | agree | doubted | seconds |",
        "|---|---|---|---|---|---|---|",
        *(_line(row) for row in rows),
    ]
    for title, chosen in (
        ("**mean**", rows),
        ("mean, no star", [row for row in rows if row.table not in TUNED_ON]),
    ):
        if not chosen:
            continue
        cells = [
            f"{np.mean([np.median(row.indices(level)) for row in chosen]):.2f}"
            for level in ("cluster", "group")
        ]
        agree = np.mean([row.agreement() for row in chosen])
        lines.append(f"| {title} | | {cells[0]} | {cells[1]} | {agree:.2f} | | |")
    better = np.mean([row.better() for row in rows])
    lines += ["", f"The better of the two levels has a mean index of {better:.2f}."]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    star = "\\*" if row.table in TUNED_ON else ""
    levels = [
        f"{np.median(each):.2f} ({min(each):.2f} to {max(each):.2f})"
        for each in (row.indices("cluster"), row.indices("group"))
    ]
    seconds = np.median([fit.seconds for fit in row.fits])
    doubted = sum(fit.doubted for fit in row.fits)
    cells = [f"{row.table}{star}", str(row.labels.size), *levels, f"{row.agreement():.2f}"]
    return "| " + " | ".join([*cells, str(doubted) if doubted else "", f"{seconds:.0f}"]) + " |"


def main() -> None:
    """Run what was asked for and print, or write, the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", help="all by default")
    parser.add_argument("--write", action="store_true", help="renew docs/real-files.md")
    asked = parser.parse_args()
    rows = [row_of(name) for name in asked.tables or TABLES]
    told = page([row for row in rows if row])
    print(told)
    if asked.write:
        PAGE.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
