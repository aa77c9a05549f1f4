"""``weald fit --family irm`` from a list of edges to blocks, predicted links and a picture."""

import csv
import errno
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from tests.cli.conftest import Command
from weald.cli.errors import ExitCode
from weald.cli.main import main

pytestmark = pytest.mark.usefixtures("clean")

N, K = 60, 3


@pytest.fixture
def friends(tmp_path: Path, rng: Generator) -> tuple[Path, Any]:
    """Sixty people in three rings, friends within mostly."""
    truth = np.arange(N) % K
    share = np.where(truth[:, None] == truth[None, :], 0.6, 0.05)
    a = np.triu(rng.random((N, N)) < share, 1)
    path = tmp_path / "friends.csv"
    lines = [f"p{i},p{j}" for i, j in zip(*np.nonzero(a), strict=True)]
    path.write_text("\n".join(["source,target", *lines]))
    return path, truth


def test_from_edges_to_blocks(friends: tuple[Path, Any], tmp_path: Path, weald: Command) -> None:
    path, truth = friends
    out, links, picture = (tmp_path / name for name in ("o.csv", "l.csv", "p.png"))
    arguments = ["fit", str(path), "--family", "irm", "--iterations", "40", "--chains", "4"]
    arguments += ["--hide", "0.1", "--out", str(out), "--links", str(links)]
    result = weald(*arguments, "--picture", str(picture), "--output", "json")
    assert result.code == 0, result.err
    told = json.loads(result.out)
    assert told["n_vertices"] == N
    assert told["n_clusters"] == K
    # A pair inside a ring is one of 0.6, one between rings one of 0.05: no better than 0.89.
    assert told["area_under_curve"] > 0.75
    assert {row["kernel"] for row in told["kernels"]} == {"accord-history", "arm-history", "gibbs"}
    rows = list(csv.DictReader(out.read_text().splitlines()))
    ring = [int(truth[int(row["vertex"][1:])]) for row in rows]
    assert len({(a, row["cluster"]) for a, row in zip(ring, rows, strict=True)}) == K
    predicted = list(csv.DictReader(links.read_text().splitlines()))
    assert len(predicted) == N * (N - 1) // 2 - len(path.read_text().splitlines()) + 1
    expected = [float(row["expected"]) for row in predicted]
    assert expected == sorted(expected, reverse=True)
    assert picture.read_bytes().startswith(b"\x89PNG")


class Closed(io.StringIO):
    """Standard output of which nobody reads any more."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def test_files_are_written_where_nobody_reads_the_answer(
    friends: tuple[Path, Any], tmp_path: Path
) -> None:
    out, trace = tmp_path / "o.csv", tmp_path / "t.npz"
    quick = ("--iterations", "2", "--chains", "1", "--kernel", "gibbs")
    arguments = ("fit", str(friends[0]), "--family", "irm", *quick)
    with redirect_stdout(Closed()), pytest.raises(SystemExit) as left:
        main([*arguments, "--out", str(out), "--trace", str(trace)])
    assert left.value.code == 1
    assert len(out.read_text().splitlines()) == N + 1
    assert trace.exists()


def test_a_report_of_a_network(friends: tuple[Path, Any], tmp_path: Path, weald: Command) -> None:
    path, trace, page = friends[0], tmp_path / "t.npz", tmp_path / "r.html"
    arguments = ["fit", str(path), "--family", "irm", "--iterations", "20", "--chains", "4"]
    assert weald(*arguments, "--param", "learn=true", "--trace", str(trace)).code == 0
    drawn = ["--out", str(page), "--pictures", str(tmp_path / "p"), "--output", "json"]
    result = weald("report", str(path), "--trace", str(trace), *drawn)
    assert result.code == 0, result.err
    told = json.loads(result.out)
    assert told["vertices"] == str(N)
    # That of the highest log joint is shown, which may have a vertex apart.
    assert int(told["blocks"]) in (K, K + 1)
    pictures = {Path(name).stem.removesuffix("-dark") for name in told["pictures"]}
    assert pictures == {"blocks", "traces", "together"}
    text = page.read_text()
    assert all(words in text for words in ("Largest blocks", "accord-history", "edge_a", "p0"))
    short = tmp_path / "short.csv"
    short.write_text("source,target\na,b")
    result = weald("report", str(short), "--trace", str(trace))
    assert result.code == 2
    assert f"is of {N} rows" in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--family", "irm", "--param", "c=1"], "unknown parameter 'c'"),
        (["--family", "irm", "--kernel", "tgmcmc"], "no kernel"),
        (["--family", "irm", "--chains", "2"], "4 at least"),
        (["--family", "irm", "--param", "directed=3"], "true or false"),
        (["--hide", "0.1"], "networks"),
    ],
)
def test_what_cannot_be_asked(
    friends: tuple[Path, Any], arguments: list[str], said: str, weald: Command
) -> None:
    result = weald("fit", str(friends[0]), *arguments)
    assert result.code == 2
    assert said in result.err


def test_one_chain_of_a_network_has_nobody_to_guide_it(
    friends: tuple[Path, Any], weald: Command
) -> None:
    refused = weald("fit", str(friends[0]), "--family", "irm", "--chains", "1")
    assert refused.code == ExitCode.USAGE
    assert "ask for 4 at least, not 1" in refused.err
