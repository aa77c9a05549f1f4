"""What is shown of a stream of mixed records is what came in."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from .conftest import Command

N = 240


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the configuration of a stream of orders of two kinds, and their records."""
    rng = np.random.default_rng(3)
    home = tmp_path_factory.mktemp("orders")
    with (home / "orders.jsonl").open("w") as file:
        for i in range(N):
            kind = i % 2
            row = {
                "id": f"o{i}",
                "price": float(np.round(rng.normal((20.0, 90.0)[kind], 2.0), 2)),
                "country": ("Norway", "Chile")[kind],
                "express": bool(kind),
                "ordered": f"2026-11-{1 + i % 28:02d}T{(8, 20)[kind]:02d}:{i % 60:02d}:00Z",
            }
            file.write(json.dumps(row) + "\n")
    (home / "weald.toml").write_text(
        "[stream]\nname = 'orders'\nsource = 'file'\npath = 'orders.jsonl'\n"
        "[schema]\nkey = 'id'\nfields = [\n"
        "{name = 'price', scale = 'log', center = 3.0, spread = 0.5},\n"
        "{name = 'country', kind = 'category', values = ['Norway', 'Chile']},\n"
        "{name = 'express', kind = 'flag'},\n"
        "{name = 'ordered', kind = 'time', periods = ['day']},\n]\n"
        "[refinement]\nevery_records = 100\npublish_every_records = 100\n"
        "[redis]\nenabled = false\n[monitoring]\nport = 0\n[storage]\nurl = 'sqlite:///weald.db'\n"
    )
    return home


def test_originals_everywhere(
    orders: Path, clean: Path, weald: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEALD_CONFIG", str(orders))
    assert weald("run").code == 0
    sent = [json.loads(line) for line in (orders / "orders.jsonl").read_text().splitlines()]

    exported = list(csv.DictReader(io.StringIO(weald("export", "assignments").out)))
    assert len(exported) == N
    for record, row in zip(sent, exported, strict=True):
        assert float(row["price"]) == pytest.approx(record["price"])
        assert row["country"] == record["country"]
        assert row["express"] == ("yes" if record["express"] else "no")
        assert row["ordered"] == record["ordered"][11:16]

    rows = json.loads(weald("clusters", "--output", "json").out)
    largest = rows[0]["features"]
    assert set(largest) == {"price", "country", "express", "ordered"}
    assert largest["country"]["centre"] in ("Norway", "Chile")
    kind = largest["country"]["centre"] == "Chile"
    assert largest["price"]["centre"] == pytest.approx((20.0, 90.0)[kind], rel=0.05)
    assert largest["ordered"]["centre"].startswith(("08:", "20:")[kind])
    header = weald("clusters").out.splitlines()[0].split()
    assert header[-4:] == ["price", "country", "express", "ordered"]

    told = json.loads(weald("cluster", str(rows[0]["cluster"]), "--output", "json").out)
    assert "country " in json.dumps([row["sentence"] for row in told["contrast"]])
    assert told["members"][0]["country"] in ("Norway", "Chile")

    page = clean / "report.html"
    assert weald("report", "--out", str(page)).code == 0
    text = page.read_text()
    assert "Norway" in text
    assert "ordered.day.sin" not in text.split("Largest clusters", 1)[1]
