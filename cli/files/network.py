"""Read a network: a list of edges, Matrix Market, GraphML, or an adjacency matrix of NumPy."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from weald.cli.errors import NotFoundError, UsageError
from weald.cli.terminal.csv_cells import is_number
from weald.cli.terminal.output import note

from .refused_rows import UNREADABLE
from .table import open_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weald.treecore.relational.network import Links

__all__ = ["NETWORK_SUFFIXES", "LoadedNetwork", "load_network"]

NETWORK_SUFFIXES = (".npz", ".csv", ".tsv", ".txt", ".edges", ".jsonl", ".mtx", ".graphml")

Edge = tuple[str, str, float]


@dataclass(frozen=True)
class LoadedNetwork:
    """What a file says of a network.

    Parameters
    ----------
    names : list of str, length n
        Vertices: in an adjacency matrix its ``names`` or row numbers, else in the order in which
        edges name them.
    links : Links
        Edges by vertex number, with weights (1 where the file has none).
    directed : bool or None
        Whether edges have a direction, where the file says so.
    n_loops : int
        Edges from a vertex to itself, which the model does not have.
    truth : int64[n] or None
        Labels that came along: only compared with.
    """

    names: list[str]
    links: Links
    directed: bool | None
    n_loops: int
    truth: NDArray[np.int64] | None = None


def load_network(path: Path) -> LoadedNetwork:
    """Load a file by its suffix, which may be followed by ``.gz`` for text.

    Raises
    ------
    NotFoundError
        If there is no such file.
    UsageError
        If it holds no network; the message names the line or the array.
    """
    if not path.is_file():
        raise NotFoundError(f"{path}: no such file")
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".npz"):
        return _from_numpy(path)
    if name.endswith(".mtx"):
        return _from_matrix_market(path)
    if name.endswith(".graphml"):
        return _from_graphml(path)
    if name.endswith(".jsonl"):
        return _named(path, list(_json_edges(path)), None)
    if name.endswith(NETWORK_SUFFIXES):
        return _named(path, _without_header(path, _text_edges(path)), None)
    expected = ", ".join(NETWORK_SUFFIXES)
    raise UsageError(f"{path}: cannot tell what network it is; expected one of {expected}")


def _named(path: Path, edges: list[Edge], directed: bool | None) -> LoadedNetwork:  # noqa: FBT001 - what the file says
    import numpy as np

    from weald.treecore.relational.network import Links

    if not edges:
        raise UsageError(f"{path}: no edges")
    number: dict[str, int] = {}
    for source, target, _ in edges:
        number.setdefault(source, len(number))
        number.setdefault(target, len(number))
    links = Links(
        np.array([number[source] for source, _, _ in edges], dtype=np.int64),
        np.array([number[target] for _, target, _ in edges], dtype=np.int64),
        np.array([weight for _, _, weight in edges]),
    )
    return LoadedNetwork(list(number), links, directed, int((links.source == links.target).sum()))


def _weight(path: Path, number: int, value: Any) -> float:
    try:
        weight = float(value)
    except (TypeError, ValueError, OverflowError):
        weight = -1.0
    if not 0.0 <= weight < float("inf"):
        raise UsageError(f"{path}: line {number}: the weight {value!r} is no number from 0")
    return weight


def _text_edges(path: Path) -> list[Edge]:
    """Lines of source, target and perhaps a weight, apart by commas, tabs or blanks."""
    edges: list[Edge] = []
    weights_called = None
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if not text or text[0] in "#%":
                continue
            cells = next(csv.reader([text])) if "," in text else text.split()
            cells = [cell.strip() for cell in cells]
            if number == 1 and [cell.lower() for cell in cells[:2]] == ["source", "target"]:
                continue
            if len(cells) not in (2, 3) or not all(cells[:2]):
                raise UsageError(
                    f"{path}: line {number} should be source, target and perhaps a weight, "
                    f"is {text[:60]!r}"
                )
            if number == 1 and len(cells) == 3 and not is_number(cells[2]):
                weights_called = cells[2]
                continue
            weight = _weight(path, number, cells[2]) if len(cells) == 3 else 1.0
            edges.append((cells[0], cells[1], weight))
    if weights_called is not None and not edges:
        # There is nothing for which it would be a name.
        _weight(path, 1, weights_called)
    return edges


def _without_header(path: Path, edges: list[Edge]) -> list[Edge]:
    """The edges without a first line that names columns, as what it says is not like the others."""
    names = {name for edge in edges[1:] for name in edge[:2]}
    first = edges[0][:2] if names else ()
    if not first or names & set(first):
        return edges
    if not any(name.isdecimal() for name in first) and all(name.isdecimal() for name in names):
        return edges[1:]
    note(
        f"{path}: the first line is taken for an edge from {first[0]!r} to {first[1]!r}, which no "
        "other line names: begin it with # if these are names of columns"
    )
    return edges


def _json_edges(path: Path) -> Iterator[Edge]:
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                ends = [str(record[name]) for name in ("source", "target")]
            except (*UNREADABLE, KeyError, TypeError) as error:
                raise UsageError(
                    f"{path}: line {number} is no object with source and target"
                ) from error
            yield ends[0], ends[1], _weight(path, number, record.get("weight", 1.0))


def _from_numpy(path: Path) -> LoadedNetwork:
    import numpy as np
    from scipy.sparse import csr_array

    try:
        loaded = np.load(path, allow_pickle=False)
    except (ValueError, OSError) as error:
        raise UsageError(f"{path}: not a NumPy file of plain numbers: {error}") from error
    with loaded:
        keys = set(loaded.files)
        if "A" in keys:
            matrix: Any = loaded["A"]
        elif {"data", "indices", "indptr", "shape"} <= keys:
            parts = (loaded["data"], loaded["indices"], loaded["indptr"])
            matrix = csr_array(parts, shape=tuple(loaded["shape"]))
        else:
            raise UsageError(f"{path}: expected an array A, found {', '.join(sorted(keys))}")
        names = [str(name) for name in loaded["names"]] if "names" in keys else None
        truth = loaded["y"] if "y" in keys else None
    found = _from_matrix(path, matrix, names)
    if truth is None or truth.shape != (len(found.names),) or truth.dtype.kind not in "iu":
        return found
    return LoadedNetwork(
        found.names, found.links, found.directed, found.n_loops, truth.astype(np.int64)
    )


def _from_matrix(path: Path, matrix: Any, names: list[str] | None) -> LoadedNetwork:
    """Network of an adjacency matrix; it has no direction if the matrix is symmetric."""
    import numpy as np
    from scipy.sparse import coo_array

    from weald.treecore.relational.network import Links

    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dtype.kind not in "fiub":
        raise UsageError(
            f"{path}: an adjacency matrix is square and of numbers, this is {matrix.dtype} "
            f"{matrix.shape}"
        )
    n = matrix.shape[0]
    entries = coo_array(matrix)
    entries.sum_duplicates()
    source, target = (each.astype(np.int64) for each in entries.coords)
    weight = entries.data.astype(np.float64)
    wrong = np.flatnonzero(~((weight >= 0.0) & (weight < np.inf)))
    if wrong.size:
        at = int(wrong[0])
        raise UsageError(f"{path}: row {source[at]}, column {target[at]} is {weight[at]!r}")
    there, back = source * n + target, target * n + source
    symmetric = _same_entries((there, weight), (back, weight))
    n_loops = int((source == target).sum())
    if symmetric:
        upper = source <= target
        source, target, weight = source[upper], target[upper], weight[upper]
    if names is None or len(names) != n:
        names = [str(index) for index in range(n)]
    return LoadedNetwork(names, Links(source, target, weight), not symmetric, n_loops)


def _same_entries(one: Any, other: Any) -> bool:
    import numpy as np

    orders = [np.argsort(keys, kind="stable") for keys, _ in (one, other)]
    (keys, values), (other_keys, other_values) = one, other
    return bool(
        (keys[orders[0]] == other_keys[orders[1]]).all()
        and (values[orders[0]] == other_values[orders[1]]).all()
    )


def _from_matrix_market(path: Path) -> LoadedNetwork:
    from scipy.io import mmread

    try:
        matrix: Any = mmread(path)
    except (ValueError, OSError) as error:
        raise UsageError(f"{path}: not a Matrix Market file: {error}") from error
    return _from_matrix(path, matrix, None)


def _from_graphml(path: Path) -> LoadedNetwork:
    data = path.read_bytes()
    if path.name.lower().endswith(".gz"):
        data = gzip.decompress(data)
    # Entities could make a small file a huge one, and no graph needs any.
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise UsageError(f"{path}: a GraphML file may not declare a document type")
    try:
        root = ET.fromstring(data)  # noqa: S314 - no entities, see above
    except ET.ParseError as error:
        raise UsageError(f"{path}: not GraphML: {error}") from error
    graph = root.find("{*}graph")
    if graph is None:
        raise UsageError(f"{path}: holds no graph")
    weights = {
        key.get("id")
        for key in root.findall("{*}key")
        if key.get("attr.name") == "weight" and key.get("for") in ("edge", "all")
    }
    edges = []
    for number, edge in enumerate(graph.findall("{*}edge"), start=1):
        source, target = edge.get("source"), edge.get("target")
        if source is None or target is None:
            raise UsageError(f"{path}: edge {number} lacks its source or target")
        held = [d.text for d in edge.findall("{*}data") if d.get("key") in weights]
        edges.append((source, target, _weight(path, number, held[0]) if held else 1.0))
    return _with_lonely(
        _named(path, edges, graph.get("edgedefault") == "directed"),
        [str(node.get("id")) for node in graph.findall("{*}node")],
    )


def _with_lonely(found: LoadedNetwork, nodes: list[str]) -> LoadedNetwork:
    """The network with the vertices that no edge names as well."""
    known = set(found.names)
    names = found.names + [node for node in nodes if node not in known]
    return LoadedNetwork(names, found.links, found.directed, found.n_loops)
