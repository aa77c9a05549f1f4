"""Every command that reruns a paper, on little data for a moment: what it prints, and going on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import schedules
from benchmarks.papers import (
    arm,
    arm_readings,
    arm_small,
    jain_neal,
    population,
    smart_dumb,
    subclusters,
    tgmcmc,
)
from benchmarks.papers.chains import source
from weald.treecore.relational.network import Links, Network, make_network

# Seconds, of a chain: one sweep.
MOMENT = 1e-9
Rows = list[dict[str, Any]]


@pytest.fixture
def told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[Rows, str]]:
    """Runs a module's command with some words: its rows, and its tables."""

    def command(module: Any, *words: str) -> tuple[Rows, str]:
        monkeypatch.setattr("sys.argv", [module.__name__, *words, "--output", "json"])
        module.main()
        printed = capsys.readouterr()
        return json.loads(printed.out), printed.err

    return command


def in_doubt(*_: Any) -> Network:
    """Six vertices, half of whose pairs are linked."""
    first, second = np.nonzero(np.triu(source(1).random((6, 6)) < 0.5, 1))
    return make_network(6, Links(first, second, np.ones(len(first))))


def test_adaptive_reconfiguration_on_little(
    told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(population, "N_FIRST", 2)
    monkeypatch.setattr(arm_small, "N", 15)
    monkeypatch.setattr(arm_small, "PER_COMPONENT", 1)
    words = ("--sets", "1", "--attributes", "6", "--iterations", "4", "--keep", str(tmp_path))
    rows, printed = told(arm_small, *words, "--draws", "160")
    figure, table = rows[: len(arm_small.SAMPLERS)], rows[len(arm_small.SAMPLERS) :]
    # Twice what chance alone makes it, on average.
    assert all(row["off"] < 2.0 * row["chance"] for row in figure)
    assert [row["sampler"] for row in table] == list(arm_small.SAMPLERS)
    assert all(len(row["trace"]) == population.N_CHAINS for row in table)
    assert "published 116.5 +- 93.9" in printed
    again, _ = told(arm_small, *words, "--draws", "16")
    np.testing.assert_equal(again[len(figure) :], table)


def test_pairs_that_never_move_have_no_time() -> None:
    assert arm_small.moving(np.array([[1.0, 0.0], [1.0, 1.0]])).tolist() == [[0.0, 1.0]]


def test_networks_on_little(monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(population, "N_FIRST", 2)
    monkeypatch.setattr(arm, "N_FEELERS", 2)
    monkeypatch.setattr(arm, "network", in_doubt)
    monkeypatch.setattr(arm_readings, "network", in_doubt)
    words = ["--iterations", "4", "--restarts", "2", "--networks", "NIPS:1.0", "--keep"]
    monkeypatch.setattr("sys.argv", ["arm", *words, str(tmp_path)])
    arm.main()
    first = capsys.readouterr().out
    assert all(f"{method}  R-hat" in first for method in population.METHODS)
    arm.main()
    assert capsys.readouterr().out == first
    words = ["arm_readings", "--warm", "4", "--moves", "1", "--kept", str(tmp_path / "4")]
    monkeypatch.setattr("sys.argv", words)
    arm_readings.main()
    printed = capsys.readouterr().out
    told_before = first.split("ARM  R-hat")[1].split()[0]
    assert f"NIPS-1.0-ARM-history, 2 restarts: by index {told_before}, median" in printed
    assert all(name in printed for name in arm_readings.SOURCES + arm_readings.FIRST_VERTICES)


def test_jain_and_neal_on_little(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    some = {scans: jain_neal.TABLE_6[scans] for scans in ((1, 1, 1), (1, 1, 0))}
    monkeypatch.setattr(jain_neal, "TABLE_6", some)
    rows, printed = told(jain_neal, "--sets", "1", "--iterations", "6")
    assert [row["sampler"] for row in rows] == [
        *("Gibbs", "(0,1,1)", "(5,1,1)"),
        *2 * ("(1,1,1)", "(1,1,0)"),
    ]
    assert "165.8" in printed


def test_smart_dumb_on_little(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smart_dumb, "CASES", ((100, 5),))
    monkeypatch.setattr(smart_dumb, "ITERATIONS", {100: 10})
    monkeypatch.setattr(smart_dumb, "MIXTURE_SECONDS", {100: MOMENT})
    rows, printed = told(smart_dumb, "--seeds", "1")
    assert {row["sampler"] for row in rows} == {*smart_dumb.SAMPLERS, *smart_dumb.MIXTURE_KERNELS}
    assert "7.8" in printed
    assert "0.5 later than SDDS" in printed


def test_sub_clusters_on_little(told: Any, tmp_path: Path) -> None:
    words = ("--sets", "separated", "--n", "60", "--seconds", str(MOMENT), "--keep", str(tmp_path))
    rows, printed = told(subclusters, *words)
    assert [row["kernel"] for row in rows[::2]] == list(subclusters.KERNELS)
    assert all(np.isfinite(row["density"]) for row in rows)
    assert "very poor from 1" in printed
    assert told(subclusters, *words)[0] == rows


def test_tree_guided_on_little(told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = tgmcmc.SETS["toy"].published
    small = tgmcmc.Setting(
        lambda: tgmcmc.separated(source(3), 50), tgmcmc.DP, MOMENT, 1, published=published
    )
    monkeypatch.setitem(tgmcmc.SETS, "small", small)
    rows, printed = told(tgmcmc, "--sets", "small", "--keep", str(tmp_path))
    assert [row["sampler"] for row in rows][-2:] == ["tgMCMC", tgmcmc.PRINTED]
    # An approximate sampler sets no level.
    assert rows[0]["level"] == max(row["late"] for row in rows[:-1])
    assert printed.count("-1577.7") == 2
    np.testing.assert_equal(told(tgmcmc, "--sets", "small", "--keep", str(tmp_path))[0], rows)


def test_schedules_on_little(told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = schedules.Setting(schedules.circle(1.0, 60), "gaussian", MOMENT)
    monkeypatch.setitem(schedules.SETS, "small", small)
    words = ("--sets", "small", "--seeds", "2", "--keep", str(tmp_path))
    rows, printed = told(schedules, *words)
    assert [row["kernel"] for row in rows] == ["auto", *schedules.SINGLE]
    assert "auto within 1.5 of the best's time on" in printed
    assert told(schedules, *words)[0] == rows
    # One more is followed, and the chains that were kept are not run again.
    more, _ = told(schedules, *words, "--adaptive")
    assert [row["kernel"] for row in more][:2] == ["auto", "auto-adaptive"]
    assert [row for row in more if row["kernel"] != "auto-adaptive"] == rows
