"""The part of the forest that a cluster's observations hang on, out of the newest snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import NoAnswerYetError

if TYPE_CHECKING:
    from .stored_stream import StoredStream

__all__ = ["SnapshotForest", "TreePart", "part_records", "parts_of"]

Ids = NDArray[np.int64]
# Of a part, and of the others of its cluster.
LOOKED_AT = 200
_NOBODY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class TreePart:
    """A node that holds members of the cluster on both of its sides, or is not looked into.

    Parameters
    ----------
    depth : int
        Below the first node that holds all.
    members : int64[m]
        Numbers of its observations that are in the cluster.
    leaf : bool
        Whether it is one of the parts asked for, and not cut further.
    n_trees : int
        How many trees it is made of: the smallest are one part, beyond as many as are asked for.
    """

    depth: int
    members: Ids
    leaf: bool
    n_trees: int = 1


class SnapshotForest:
    """The trees of a snapshot, over the observations that have a leaf of their own in it.

    Parameters
    ----------
    arrays : mapping
        Payload of a snapshot.
    """

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.left = arrays["chain.forest_left"].astype(np.int64)
        self.right = arrays["chain.forest_right"].astype(np.int64)
        self.parent = arrays["chain.forest_parent"].astype(np.int64)
        self.size = arrays["chain.forest_node_size"].astype(np.int64)
        self._atom = arrays["chain.forest_atom"].astype(np.int64)
        self._seq_of_atom = arrays["roster.seq"]
        self.last_seq = int(arrays["shown"][3])

    @classmethod
    def of(cls, state: StoredStream) -> SnapshotForest:
        """Take the newest snapshot of a stream.

        Raises
        ------
        NotReadyError
            If it has none.
        """
        state.require_values("edges and hang on no tree")
        snapshot = state.reader.newest_snapshot(state.stream)
        if snapshot is None:
            raise NoAnswerYetError(
                f"stream {state.stream} has no snapshot yet, and trees are kept there",
                next_step="weald status    says when the next one is due",
            )
        return cls(snapshot.payload)

    @cached_property
    def _leaves(self) -> tuple[Ids, Ids]:
        """Observations that have a leaf of their own, rising, and these leaves."""
        nodes = np.flatnonzero(self._atom >= 0)
        seqs = self._seq_of_atom[self._atom[nodes]]
        order = np.argsort(seqs)
        order = order[seqs[order] > 0]
        return seqs[order], nodes[order]

    def leaves(self, seqs: Ids) -> Ids:
        """Leaf of each observation; -1 for one that came later, left, or is in a bundle."""
        known, nodes = self._leaves
        if known.size == 0:
            return np.full(seqs.shape, -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(known, seqs), known.size - 1)
        return np.where(known[at] == seqs, nodes[at], -1)

    def path(self, seq: int) -> list[int]:
        """Return the sizes of the nodes from the root down to an observation's leaf."""
        sizes = []
        node = int(self.leaves(np.array([seq]))[0])
        while node >= 0:
            sizes.append(int(self.size[node]))
            node = int(self.parent[node])
        return sizes[::-1]

    def parts(self, members: Sequence[int], n_parts: int) -> list[TreePart]:
        """Cut the trees over these observations, always the largest part, into ``n_parts``.

        Returns them with the nodes between, from the top down and the larger side first. Trees that
        hang on no other are one part, last, until that is the largest; then its largest is apart.
        """
        tree = _Restricted(self, np.array(members, dtype=np.int64))
        tops = sorted(tree.tops(), key=lambda node: -tree.count[node])
        n_apart = len(tops) if len(tops) == 1 else 0
        pieces = [tree.down(node) for node in tops[:n_apart]]
        cut: set[int] = set()
        while len(pieces) + (n_apart < len(tops)) < n_parts:
            largest = max(pieces, key=lambda node: tree.count[node], default=-1)
            n_largest, rest = tree.count.get(largest, 0), tops[n_apart:]
            if rest and sum(tree.count[node] for node in rest) >= n_largest:
                # Of two one alone would leave a part of one tree.
                found = rest[: 2 if len(rest) == 2 else 1]
                pieces += [tree.down(node) for node in found]
                n_apart += len(found)
                continue
            if n_largest < 2:
                break
            cut.add(largest)
            pieces.remove(largest)
            pieces += [tree.down(child) for child in tree.children(largest)]
        told: list[TreePart] = []
        pending = [(tree.down(node), 0) for node in reversed(tops[:n_apart])]
        while pending:
            node, depth = pending.pop()
            told.append(TreePart(depth, tree.members(node), leaf=node not in cut))
            if node in cut:
                below = sorted(tree.children(node), key=lambda child: tree.count[child])
                pending += [(tree.down(child), depth + 1) for child in below]
        if n_apart < len(tops):
            members_of_rest = np.sort(np.concatenate([tree.members(at) for at in tops[n_apart:]]))
            told.append(TreePart(0, members_of_rest, leaf=True, n_trees=len(tops) - n_apart))
        return told


class _Restricted:
    """The forest with only some of its observations."""

    def __init__(self, forest: SnapshotForest, seqs: Ids) -> None:
        self._forest = forest
        self.count: dict[int, int] = {}
        self._seq: dict[int, int] = {}
        for seq, leaf in zip(seqs.tolist(), forest.leaves(seqs).tolist(), strict=True):
            if leaf < 0:
                continue
            node = leaf
            self._seq[leaf] = seq
            while node >= 0:
                self.count[node] = self.count.get(node, 0) + 1
                node = int(forest.parent[node])

    def tops(self) -> list[int]:
        return [node for node in self.count if int(self._forest.parent[node]) < 0]

    def children(self, node: int) -> list[int]:
        both = (int(self._forest.left[node]), int(self._forest.right[node]))
        return [child for child in both if child in self.count]

    def down(self, node: int) -> int:
        """Skip nodes that hold members on one side only."""
        while len(below := self.children(node)) == 1:
            node = below[0]
        return node

    def members(self, node: int) -> Ids:
        found, pending = [], [node]
        while pending:
            at = pending.pop()
            below = self.children(at)
            pending += below
            if not below:
                found.append(self._seq[at])
        return np.array(sorted(found), dtype=np.int64)


def parts_of(state: StoredStream, cluster: int, n_parts: int) -> list[dict[str, Any]]:
    """Return the sub-structure of a cluster: its tree cut into parts; nothing without a tree."""
    if state.network:
        return []
    try:
        forest = SnapshotForest.of(state)
    except NoAnswerYetError:
        return []
    members = state.reader.member_seqs(state.stream, cluster)
    told = part_records(state, forest.parts(members, n_parts))
    return sorted((row for row in told if row["leaf"]), key=lambda row: -row["size"])


def part_records(state: StoredStream, parts: Sequence[TreePart]) -> list[dict[str, Any]]:
    """Return the parts of a cluster as rows: how many each has, and what sets it apart."""
    everyone = np.concatenate([part.members for part in parts if part.leaf] or [_NOBODY])
    return [_record(state, part, np.setdiff1d(everyone, part.members)) for part in parts]


def _record(state: StoredStream, part: TreePart, others: Ids) -> dict[str, Any]:
    """One part beside the ``others`` of its cluster, by the newest observations of either."""
    own = state.reader.observed(state.stream, part.members[-LOOKED_AT:].tolist())
    rest = state.reader.observed(state.stream, others[-LOOKED_AT:].tolist())
    share = len(part.members) / (len(part.members) + len(others))
    told = _told(state, own, rest, share)
    return {
        "depth": part.depth,
        "size": len(part.members),
        "leaf": part.leaf,
        "trees": part.n_trees,
        "description": told if part.n_trees == 1 else f"{part.n_trees} trees apart: {told}",
        "keys": [row.key or f"#{row.seq}" for row in own[-3:]],
    }


def _told(state: StoredStream, own: Sequence[Any], rest: Sequence[Any], share: float) -> str:
    if not rest:
        return "all that have a leaf"
    from weald.stream.record.fields.originals import originals_of

    from .description.sentences import told
    from .description.texts import explain_rows, teller_of

    rows = [*own, *rest]
    columns = originals_of(state.schema, np.stack([row.values for row in rows]))
    texts = [row.text or "" for row in rows] if state.schema.has_text else []
    inside = np.arange(len(rows)) < len(own)
    return told(explain_rows(columns, teller_of(texts, state.schema), inside, share=share))
