"""What a stream shows of real labelled tables by default, as somebody would run it on a file.

    python -m benchmarks.real_streams                every table that is here: some minutes
    python -m benchmarks.real_streams wine digits    these, and the files
    python -m benchmarks.real_streams wine --files   this alone
    python -m benchmarks.real_streams --write        and put the table into docs/real-streams.md

Each table becomes a CSV file in an order drawn once, 6,000 rows at most; files with columns of
several kinds are those of `benchmarks/look_files.py`. `weald init --from-sample`, `weald run` and
`weald export` do the rest, without a single setting but that Redis is not asked.
Adjusted Rand index of the clusters and of the groups that are shown when the file has ended.
Seconds are wall time from the first command to the end of the run, kernels there.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks.labelled_tables import TABLES, TUNED_ON, drawn
from benchmarks.look_files import FILES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "real-streams.md"
MOST_ROWS = 6000
HEAD = ("| table | records | clusters | groups | seconds |", "|---|---|---|---|---|")
WEALD = Path(sys.executable).with_name("weald")


# Of `benchmarks/look_files.py`, those whose kinds are known and are not tables of numbers.
MIXED = ("penguins", "orders", "events", "transactions", "visits")


class Row(NamedTuple):
    """What a stream shows of a table in the end."""

    table: str
    n: int
    clusters: tuple[int, float]
    groups: tuple[int, float]
    seconds: float


def _weald(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [WEALD, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"weald {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def row_of(name: str) -> Row | None:
    """Run a stream over a table; None where it is not here."""
    table = drawn(name, MOST_ROWS)
    if table is None:
        return None
    values, labels = table
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with (folder / "table.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["id", *(f"x{column}" for column in range(values.shape[1]))])
            writer.writerows([f"row-{at}", *row] for at, row in enumerate(values.tolist()))
        return _streamed(name, folder, "table.csv", labels)


def row_of_file(name: str) -> Row | None:
    """Run a stream over a file as people have it; None where it is not here."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        try:
            file = FILES[name](folder)
        except FileNotFoundError:
            print(f"{name}: not here, passed over", flush=True)
            return None
        return _streamed(name, folder, str(_with_commas(file.path)), np.array(file.kinds))


def _with_commas(path: Path) -> Path:
    """The same file, or one with commas in place of semicolons, which no stream reads."""
    if path.suffix != ".csv" or ";" not in path.open(encoding="utf-8").readline():
        return path
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter=";"))
    with (path.parent / "commas.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return Path(file.name)


def _streamed(name: str, folder: Path, file: str, labels: np.ndarray[Any, Any]) -> Row:
    """What the stream over a file shows of its rows, whose labels are known."""
    began = time.perf_counter()
    _weald(folder, "init", "--from-sample", file)
    _weald(folder, "run", "--set", "redis.enabled=false", "--set", "monitoring.port=0")
    seconds = time.perf_counter() - began
    shown = list(csv.DictReader(_weald(folder, "export", "assignments").splitlines()))
    truth = labels[[int(each["offset"]) for each in shown]]
    levels = []
    for level in ("cluster", "group"):
        found = [each[level] for each in shown]
        levels.append((len(set(found)), float(adjusted_rand_score(truth, found))))
    row = Row(name, len(shown), levels[0], levels[1], seconds)
    print(
        f"{name:16} {row.n:5}  clusters {row.clusters[0]:4} {row.clusters[1]:5.2f}  "
        f"groups {row.groups[0]:4} {row.groups[1]:5.2f}  {seconds:5.1f} s",
        flush=True,
    )
    return row


def page(tables: Sequence[Row], files: Sequence[Row]) -> str:
    """The document."""
    lines = [
        "# Real tables as streams",
        "",
        "Written by `python -m benchmarks.real_streams --write`: `weald init --from-sample`,",
        "`weald run` and `weald export` on a file, without a setting. Adjusted Rand index with the",
        "labels, and the number of clusters, when the file has ended; what fits show of the same",
        "tables, beside peers, is on [another page](real-tables.md). Weald's rules were set on the",
        "tables with a star. Seconds are wall time, on a machine with other work.",
        "",
        *HEAD,
    ]
    lines += [_line(row) for row in tables]
    for title, chosen in (
        ("**mean**", tables),
        ("mean, no star", [row for row in tables if row.table not in TUNED_ON]),
    ):
        means = [
            float(np.mean([getattr(row, level)[1] for row in chosen] or [np.nan]))
            for level in ("clusters", "groups")
        ]
        lines.append(f"| {title} | | {means[0]:.2f} | {means[1]:.2f} | |")
    lines += [
        "",
        "Files whose columns are of several kinds, with gaps, dates, categories and counts:",
        "penguins as they were written down, and what `benchmarks/look_files.py` makes, with",
        "commas between cells. Rows with a gap are set aside by a stream.",
        "",
        *HEAD,
        *(_line(row) for row in files),
    ]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    star = "\\*" if row.table in TUNED_ON else ""
    levels = [f"{index:.2f} ({count})" for count, index in (row.clusters, row.groups)]
    cells = [f"{row.table}{star}", str(row.n), *levels, f"{row.seconds:.0f}"]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Run what was asked for and print, or write, the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", help="all by default")
    parser.add_argument("--write", action="store_true", help="renew docs/real-streams.md")
    parser.add_argument("--files", nargs="*", choices=MIXED, help="all by default")
    asked = parser.parse_args()
    tables = [row_of(name) for name in asked.tables or TABLES if name in TABLES]
    files = [row_of_file(name) for name in (MIXED if asked.files is None else asked.files)]
    told = page([row for row in tables if row], [row for row in files if row])
    print(told)
    if asked.write:
        PAGE.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
