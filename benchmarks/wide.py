"""Time and memory of `weald fit` on images of 784 pixels, as those of MNIST.

    python -m benchmarks.wide 2000 60000

The images are made of scikit-learn's handwritten digits: each is drawn at random, turned by up to
15 degrees, moved by up to two pixels, put on 28 x 28 and given noise where there is ink. The file
is a `.npy` of whole numbers from 0 to 255, and the command runs on its defaults in a process of its
own, with kernels there. Memory is the most that was resident.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from subprocess import run

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import affine_transform
from sklearn.datasets import load_digits

SIDE, SMALL = 28, 8
_TURN, _MOVE, _NOISE = np.deg2rad(15.0), 2.0, 12.0


def images(n: int, rng: np.random.Generator) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (n, 784) and their digits (n)."""
    digits = load_digits()
    chosen = rng.integers(0, len(digits.target), n)
    made = np.empty((n, SIDE * SIDE), dtype=np.uint8)
    centre = (np.array([SIDE, SIDE]) - 1.0) / 2.0
    for row, source in zip(made, digits.images[chosen] / 16.0, strict=True):
        angle = rng.uniform(-_TURN, _TURN)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        turn *= SMALL / (SIDE - 4)
        start = (SMALL - 1.0) / 2.0 - turn @ (centre + rng.uniform(-_MOVE, _MOVE, 2))
        ink = affine_transform(source, turn, start, (SIDE, SIDE), order=1)
        noisy = 255.0 * ink + _NOISE * rng.normal(size=ink.shape) * (ink > 0.0)
        row[:] = np.clip(np.rint(noisy), 0.0, 255.0).ravel()
    return made, digits.target[chosen].astype(np.int64)


def measured(n: int, more: list[str]) -> str:
    """What a fit of n images costs and finds, in a line."""
    made, digit = images(n, np.random.default_rng(0))
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "images.npy", Path(folder) / "out.csv"
        np.save(path, made)
        command = [sys.executable, "-m", "weald.cli.main", "fit", str(path), "--out", str(out)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        told = run([*command, "--output", "json", *more], capture_output=True, check=True)
        wall = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = np.loadtxt(out, delimiter=",", skiprows=1, usecols=(1, 2), dtype=np.int64)
    answer = json.loads(told.stdout)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    pure = [_pure(digit, labels) for labels in found.T]
    return (
        f"{n} x {made.shape[1]}: {processor:.0f} s of processor, {wall:.0f} s, "
        f"{after.ru_maxrss / 1024:.0f} MB; {answer['family']}, {answer['n_components']} components,"
        f" {answer['chains']} chains; {answer['n_clusters']} clusters, "
        f"{answer['n_groups']} groups, of whose rows {pure[0]:.0%} and {pure[1]:.0%} are the "
        "commonest digit"
    )


def _pure(digit: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """Share of the rows whose digit is the commonest of their cluster."""
    counts = np.zeros((labels.max() + 1, digit.max() + 1))
    np.add.at(counts, (labels, digit), 1.0)
    return float(counts.max(axis=1).sum() / digit.size)


def main() -> None:
    """Measure each size, in rising order as memory is that of the largest process so far."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=int, nargs="+")
    parser.add_argument("--iterations", help="as of the command")
    asked = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    more = ["--iterations", asked.iterations] if asked.iterations else []
    # Kernels are compiled where they are not there.
    measured(200, ["--iterations", "2"])
    for n in sorted(asked.rows):
        print(measured(n, more), flush=True)


if __name__ == "__main__":
    main()
