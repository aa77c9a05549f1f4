"""`weald look` on files of many kinds: how fast, how right, and whether it is true.

    python -m benchmarks.look                    every file that is here: five minutes
    python -m benchmarks.look penguins orders    these
    python -m benchmarks.look --seeds 5          each five times: twenty minutes
    python -m benchmarks.look --looks-only       without the other settings

A look is a process of its own with its defaults; seconds are wall time until it has said what it
found, and until its page is there too. The index is the adjusted Rand index with the kinds that the
rows are known to be. The best of other settings is that of the same rows under other families,
priors and cuts, by groups or clusters, chosen with the kinds in view, which nobody has. With
several seeds indices are medians, the best of others among them, and seconds the longest. Every
sentence of every description is counted anew in the file (`benchmarks/look_sentences.py`).
"""

import argparse
import base64
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from io import StringIO
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks.look_files import FILES, MadeFile
from benchmarks.look_sentences import false_sentences, frame_of, written
from weald.cli.fit.sampling import sample, settled
from weald.cli.look.rows import read_rows
from weald.cli.look.seen import seen_of
from weald.mcmc.offline.fit import FitSettings
from weald.mcmc.offline.fit_groups import groups_of_fit

# Seconds of sampling that another setting gets, and the cuts at which its groups are looked at.
SECONDS, CUTS = 4.0, (0.35, 0.5, 0.65)


class Look(NamedTuple):
    """What a look said, when, and which row (0 to n - 1) is where."""

    said: dict[str, Any]
    first: float
    all: float
    rows: np.ndarray[Any, np.dtype[np.int64]]
    cluster: np.ndarray[Any, np.dtype[np.int64]]
    group: np.ndarray[Any, np.dtype[np.int64]]


def looked(path: Path, seed: int) -> Look:
    """Look at a file as people do; its page tells which row is where."""
    page = path.parent / "page.html"
    page.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "weald.cli.main", "look", str(path), "--out", str(page)]
    argv += ["--seed", str(seed)]
    began, first, out = time.perf_counter(), 0.0, b""
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen([*argv, "--output", "json"], stdout=-1, stderr=errors) as process,
    ):
        assert process.stdout is not None
        while chunk := os.read(process.stdout.fileno(), 1 << 16):
            first = first or time.perf_counter() - began
            out += chunk
        if process.wait():
            errors.seek(0)
            raise SystemExit(f"{path.name}: {errors.read().decode()}")
    whole = time.perf_counter() - began
    packed = page.read_text(encoding="utf-8").partition('id="data">')[2].partition("<")[0]
    held = json.loads(gzip.decompress(base64.b64decode(packed)))
    group_of = {each["id"]: each["group"] for each in held["clusters"]}
    cluster = np.array(held["cluster"])
    return Look(
        json.loads(out),
        first,
        whole,
        places_of(path, held["called"], held["keys"]),
        cluster,
        np.array([group_of[each] for each in cluster.tolist()]),
    )


def places_of(path: Path, called: str, names: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Which row of the file (0 to n - 1) each name is of; ``called`` is the column of names."""
    if called == "row":
        return np.array([int(name.removeprefix("row ")) - 1 for name in names])
    place = {name: at for at, name in enumerate(written(path, called))}
    return np.array([place[name] for name in names])


def untrue(look: Look, path: Path) -> tuple[int, list[str]]:
    """How many descriptions there are, and what is false in them."""
    frame = frame_of(path).iloc[look.rows]
    found: list[str] = []
    parts = [("group", look.group), ("cluster", look.cluster)]
    for kind, own in parts:
        for part in look.said[f"{kind}s"]:
            untold = false_sentences(part["description"], frame, own == part[kind])
            found += [f"{kind} {part[kind]}: {each}" for each in untold]
    return sum(len(look.said[f"{kind}s"]) for kind, _ in parts), found


def best_of_others(path: Path, kinds: Sequence[Any], seeds: int) -> tuple[float, str]:
    """The best median index over seeds that another setting reaches, and which."""
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        with redirect_stderr(StringIO()):
            rows = read_rows(str(path), seed)
            told = seen_of(rows, seed)
        seen = told.fitted
        known = np.array(kinds)[places_of(path, rows.called, rows.keys)][told.chosen]
        for name, other in _others(replace(told.settings, seed=seed)):
            with redirect_stderr(StringIO()):
                chosen, _ = settled(seen, other, 1)
                result = sample(seen, replace(chosen, seconds=SECONDS, iterations=None))
            levels = {"clusters": result.labels} | {
                f"groups at {cut}": groups_of_fit(result, seen, cut).group[result.labels]
                for cut in CUTS
            }
            for level, labels in levels.items():
                index = float(adjusted_rand_score(known, labels))
                found.setdefault(f"{name}, {level}", []).append(index)
    return max((float(np.median(each)), name) for name, each in found.items())


def _others(settings: FitSettings) -> Iterator[tuple[str, FitSettings]]:
    yield "as a look", settings
    yield "prior mfm", replace(settings, prior="mfm")
    for family in ("gaussian", "diagonal"):
        if settings.family in ("auto", "gaussian", "diagonal"):
            yield family, replace(settings, family=family)
            continue
        parts = [dict(part) for part in settings.params.get("parts", ())]
        if any(part["family"] == "gaussian" for part in parts) and family == "diagonal":
            for part in parts:
                part["family"] = family if part["family"] == "gaussian" else part["family"]
            yield "diagonal numbers", replace(settings, params={"parts": parts})


def show(name: str, made: MadeFile, seeds: int, *, others: bool) -> None:
    """Look at a file, and print a line on it, with what is false below."""
    looks = [looked(made.path, seed) for seed in range(seeds)]
    index = ["     -", "     -"]
    best = ""
    if made.kinds is not None:
        index = [
            f"{np.median([_index(made.kinds, each.rows, own(each)) for each in looks]):6.3f}"
            for own in (attrgetter("group"), attrgetter("cluster"))
        ]
        if others:
            found, setting = best_of_others(made.path, made.kinds, seeds)
            best = f"{found:6.3f} {setting}"
    told = [untrue(each, made.path) for each in looks]
    found_false = [each for _, untold in told for each in untold]
    said = looks[0].said
    first, whole = max(each.first for each in looks), max(each.all for each in looks)
    print(
        f"{name:13} {first:6.1f} {whole:6.1f} {said['n_groups']:6} "
        f"{said['n_clusters']:8} {index[0]} {index[1]}  "
        f"{sum(n for n, _ in told):4} {len(found_false):5}  {best}",
        flush=True,
    )
    print(f"    {said['verdict']['status']}; settled: {said['settled']}")
    for each in found_false:
        print(f"    FALSE {each}")


def _index(
    kinds: Sequence[Any],
    rows: np.ndarray[Any, np.dtype[np.int64]],
    labels: np.ndarray[Any, np.dtype[np.int64]],
) -> float:
    return float(adjusted_rand_score(np.array(kinds)[rows], labels))


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", choices=[*FILES, []], help="all by default")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--looks-only", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for the files and the last page")
    asked = parser.parse_args()
    print(f"{'file':13}  first    all groups clusters groups clusters  told false  best of others")
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        for name in asked.files or FILES:
            try:
                made = FILES[name](folder)
            except FileNotFoundError as missing:
                print(f"{name:13} not here: {missing}")
                continue
            show(name, made, asked.seeds, others=not asked.looks_only)


if __name__ == "__main__":
    main()
