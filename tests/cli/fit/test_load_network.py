"""Networks out of files of every kind: the same edges, or an error that names line and reason."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import csr_array, save_npz

from weald.cli.errors import UsageError
from weald.cli.files.network import LoadedNetwork, load_network
from weald.cli.fit.network import area_under_curve

EDGES = [("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 3.0), ("d", "a", 1.0)]

GRAPHML = """<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
 <key id="w" for="edge" attr.name="weight" attr.type="double"/>
 <graph edgedefault="{kind}">
  <node id="a"/><node id="b"/><node id="c"/><node id="d"/><node id="e"/>
  {edges}
 </graph>
</graphml>"""


def edges_of(network: LoadedNetwork) -> set[tuple[str, str, float]]:
    links = network.links
    found = zip(links.source.tolist(), links.target.tolist(), links.weight.tolist(), strict=True)
    return {(*sorted((network.names[a], network.names[b])), weight) for a, b, weight in found}


EXPECTED = {(*sorted(edge[:2]), edge[2]) for edge in EDGES}


@pytest.mark.parametrize(
    ("name", "between"),
    [("e.csv", ","), ("e.tsv", "\t"), ("e.txt", " "), ("e.edges", "\t"), ("e.csv.gz", ",")],
)
def test_lists_of_edges(tmp_path: Path, name: str, between: str) -> None:
    lines = ["# who flies where", *(between.join(map(str, edge)) for edge in EDGES), ""]
    if "," in between:
        lines[0] = "source,target,weight"
    path, text = tmp_path / name, "\n".join(lines).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    found = load_network(path)
    assert edges_of(found) == EXPECTED
    assert found.names == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("header", "lines"),
    [("user,item", ["1,2", "2,3"]), ("from,to,calls", ["a,b,1", "b,c,1"])],
)
def test_names_of_columns_are_no_edge(tmp_path: Path, header: str, lines: list[str]) -> None:
    path = tmp_path / "e.csv"
    path.write_text("\n".join([header, *lines]))
    found = load_network(path)
    assert found.names == sorted({name for line in lines for name in line.split(",")[:2]})
    assert len(found.links.source) == 2


def test_a_first_line_that_may_name_columns_is_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "e.csv"
    path.write_text("user,item\nann,tea\nbob,tea\n")
    assert len(load_network(path).links.source) == 3
    assert "taken for an edge from 'user' to 'item'" in capsys.readouterr().err
    path.write_text("ann,tea\nbob,tea\n")
    assert len(load_network(path).links.source) == 2
    assert capsys.readouterr().err == ""


def test_objects(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text('{"source": "a", "target": "b"}\n{"source": 1, "target": "a", "weight": 4}\n')
    assert edges_of(load_network(path)) == {("a", "b", 1.0), ("1", "a", 4.0)}


def matrix(symmetric: bool) -> Any:
    dense = np.zeros((4, 4))
    for a, b, weight in EDGES:
        dense["abcd".index(a), "abcd".index(b)] = weight
    return dense + dense.T if symmetric else dense


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("kind", ["dense", "sparse", "market"])
def test_matrices(tmp_path: Path, kind: str, symmetric: bool) -> None:
    path = tmp_path / ("m.mtx" if kind == "market" else "m.npz")
    if kind == "dense":
        np.savez(path, A=matrix(symmetric), names=np.array(list("abcd")))
    elif kind == "sparse":
        save_npz(path, csr_array(matrix(symmetric)))
    else:
        mmwrite(path, csr_array(matrix(symmetric)))
    found = load_network(path)
    assert found.directed is not symmetric
    assert len(found.links.source) == len(EDGES)
    assert found.names == (list("abcd") if kind == "dense" else list("0123"))


@pytest.mark.parametrize("kind", ["directed", "undirected"])
def test_graphml(tmp_path: Path, kind: str) -> None:
    edges = "".join(
        f'<edge source="{a}" target="{b}"><data key="w">{w}</data></edge>' for a, b, w in EDGES
    )
    path = tmp_path / "g.graphml"
    path.write_text(GRAPHML.format(kind=kind, edges=edges))
    found = load_network(path)
    assert edges_of(found) == EXPECTED
    assert found.directed is (kind == "directed")
    assert found.names == ["a", "b", "c", "d", "e"], "a vertex without edges is a vertex"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("e.csv", "a,b\na\n", "line 2"),
        ("e.csv", "a,b,heavy\n", "weight 'heavy'"),
        ("e.csv", "a,b,-1\n", "weight '-1'"),
        ("e.csv", "# nothing\n", "no edges"),
        ("e.jsonl", '{"source": "a"}\n', "line 1"),
        ("e.graphml", "<graphml>", "not GraphML"),
        ("e.graphml", '<!DOCTYPE a [<!ENTITY b "c">]><graphml/>', "document type"),
        ("e.mtx", "no matrix", "Matrix Market"),
        ("e.pdf", "", "cannot tell"),
    ],
)
def test_what_is_no_network(tmp_path: Path, name: str, content: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(UsageError, match=said):
        load_network(path)


def test_a_matrix_that_is_not_square(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", A=np.zeros((2, 3)))
    with pytest.raises(UsageError, match="square"):
        load_network(tmp_path / "m.npz")


def test_area_under_the_curve() -> None:
    present = np.array([True, False, True, False])
    assert area_under_curve(np.array([0.9, 0.1, 0.4, 0.6]), present) == pytest.approx(0.75)
    assert area_under_curve(np.full(4, 0.5), present) == pytest.approx(0.5)
    assert area_under_curve(np.full(4, 0.5), np.ones(4, dtype=bool)) is None
