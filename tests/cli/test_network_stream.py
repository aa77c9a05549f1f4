"""The commands that the page on networks tells people to type, on the stream that it makes."""

import json
import re
import runpy
import shlex
from pathlib import Path

import pytest

from weald.cli.http.exploring import explored_of
from weald.cli.main import main
from weald.cli.terminal.opened import reading

PAGE = (Path(__file__).parents[2] / "docs" / "networks.md").read_text().split("## A stream")[1]


def block(opening: str) -> str:
    """The first fenced block that begins so, without its fences."""
    found = re.search(rf"^```{opening}(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def weald(capsys: pytest.CaptureFixture[str], line: str, code: int = 0) -> str:
    """Run a command and return what it printed."""
    with pytest.raises(SystemExit) as left:
        main(shlex.split(line.removeprefix("weald ")))
    said = capsys.readouterr()
    assert (left.value.code or 0) == code, said.err
    return said.out if code == 0 and said.out else said.out + said.err


def test_the_page_on_networks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEALD__MONITORING__PORT", "0")
    Path("page.py").write_text(block("python\n"))
    runpy.run_path("page.py")
    Path("weald.toml").write_text(block("toml\n"))
    typed = ("weald " + block("\nweald ")).splitlines()
    assert len(typed) == 9
    for line in typed:
        assert weald(capsys, line)
    assert Path("marriages.png").stat().st_size > 1000
    page = Path("weald-report.html").read_text()
    assert page.count("<img") + page.count("<picture") > 0
    assert {"Medici", "Blocks"} <= set(re.findall(r"Medici|Blocks", page))
    status = json.loads(weald(capsys, "status --output json"))
    assert (status["n_inserted"], status["n_observations"]) == (20, 15)
    rows = json.loads(weald(capsys, "clusters --output json"))
    assert sum(row["size"] for row in rows) == 15
    assert sum(row["share"] for row in rows) == pytest.approx(1.0)
    # Twenty marriages have forty ends.
    edges = sum(row["size"] * row["features"]["edges"]["centre"] for row in rows)
    assert edges == pytest.approx(40.0)
    (medici,) = json.loads(weald(capsys, "assign Medici --output json"))
    assert (medici["offset"], medici["values"]) == (0, {})
    assert medici["cluster"] in {row["cluster"] for row in rows}
    exported = weald(capsys, "export assignments").splitlines()
    assert len(exported) == 1 + 15
    # The live page has vertices in clusters, without places.
    with reading(Path(), None, None) as state:
        explored = explored_of(state, limit=1000)
    assert explored.data is not None
    assert len(explored.data["keys"]) == 15
    assert all(any(key in line for line in exported[1:]) for key in explored.data["keys"])
    assert set(explored.data["x"]) == {None}
    assert "Medici" in explored.tree
    assert 'class="lives"' in explored.timeline
    (answer,) = json.loads(weald(capsys, "predict question.jsonl --output json"))
    assert 0.0 < answer["edge"] < 1.0
    assert answer["source_cluster"] == medici["cluster"]


def test_what_a_network_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEALD__MONITORING__PORT", "0")
    Path("weald.toml").write_text(block("toml\n"))
    lines = ['{"source": "a", "target": "b", "time": 0}', '{"source": "b", "target": "b"}']
    Path("marriages.jsonl").write_text("\n".join(lines) + "\n")
    weald(capsys, "run")
    for line in ("tree 1", "assign a --top 3"):
        assert "is a network" in weald(capsys, line, 2)
    assert "itself" in weald(capsys, "dlq list --output json")
    Path("pairs.jsonl").write_text('{"source": "a", "target": "nobody"}\n')
    assert "nobody" in weald(capsys, "predict pairs.jsonl", 1)
    assert "nobody" in weald(capsys, "assign nobody", 3)
