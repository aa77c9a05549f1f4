"""A kernel added as `docs/add-a-kernel.md` says: its own file, and a line in the registry."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import type_command
from weald.mcmc.chain.chain import MixtureChain
from weald.mcmc.contract import Claim, Entry
from weald.mcmc.schedule import registry
from weald.mcmc.schedule.stream_kernels import stream_kernels
from weald.monitoring.metrics import Metrics
from weald.treecore.errors import ParameterError
from weald.treecore.family import FAMILIES
from weald.treecore.prior import build_prior

MODULE = "tests.mcmc.schedule.merge_only"
ROOT = Path(__file__).parents[3]


def add(monkeypatch: pytest.MonkeyPatch, claim: Claim) -> None:
    line = Entry("merge-only", claim, MODULE)
    monkeypatch.setattr(registry, "REGISTRY", [*registry.REGISTRY, line])


def test_the_page_shows_the_file() -> None:
    page = (ROOT / "docs" / "add-a-kernel.md").read_text()
    (shown,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert shown == (ROOT / f"{MODULE.replace('.', '/')}.py").read_text()


def test_a_fit_takes_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    add(monkeypatch, "approximate")
    assert "merge-only" in registry.kernel_names()
    points = tmp_path / "points.csv"
    rows = np.random.default_rng(3).normal(size=(40, 2)).tolist()
    points.write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
    words = ["--kernel", "gibbs,merge-only", "--init", "singletons", "--iterations", "20"]
    done = type_command("fit", str(points), *words, "--output", "json")
    assert done.code == 0, done.err
    (row,) = [row for row in json.loads(done.out)["kernels"] if row["kernel"] == "merge-only"]
    assert row["claim"] == "approximate"
    assert row["move"] == "merge-only"
    assert 0 < row["accepted"] <= row["proposed"]


def test_a_stream_refuses_it_for_what_it_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, "approximate")
    with pytest.raises(ParameterError, match="merge-only is approximate"):
        stream_kernels("gibbs,merge-only")


def test_ledgers_and_metrics_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, "exact")  # or no stream would have it
    values = np.random.default_rng(4).normal(size=(40, 2))
    chain = MixtureChain.start(
        FAMILIES["gaussian"].build({}, values), build_prior("dp", {}), seed=1
    )
    chain.insert(values)
    done = chain.refine(3, kernels="gibbs,merge-only")
    (report,) = [report for report in done.kernels if report.name == "merge-only"]
    assert report.proposed > 0
    metrics = Metrics("stream")
    metrics.kernel_round(report.name, report.proposed, report.accepted, report.seconds, 0.0)
    labels = {"stream": "stream", "kernel": "merge-only"}
    shown = metrics.registry.get_sample_value("weald_kernel_proposed_total", labels)
    assert shown == report.proposed
