"""A small history of clusters: births, a split, a merge, a move and an end."""

from weald.storage.queries.base import LineageRow, PublicationRow

__all__ = ["SIZES", "events", "publications"]

# Observations of the living clusters.
SIZES = {1: 160, 2: 120, 3: 80, 4: 40}


def publications(n: int = 4) -> list[PublicationRow]:
    """Publications 1 to n, each after 100 more observations."""
    return [
        PublicationRow(at, 100 * at, 1.8e9 + at, -1.0, -1.0, 4, 100 * at) for at in range(1, n + 1)
    ]


def _event(
    kind: str, publication: int, cluster: int, size: int, *parents: int, n: int = 0, seq: int = 0
) -> LineageRow:
    return LineageRow(
        kind, publication, seq or 100 * publication, 1.8e9 + publication, cluster, parents, size, n
    )


def events() -> list[LineageRow]:
    """What happened, in order: 5 went into 4, that into 2, which split from 1; 6 just ended."""
    return [
        _event("birth", 0, 1, 1, seq=25),
        _event("birth", 0, 5, 1, seq=50),
        _event("birth", 1, 6, 1, seq=150),
        _event("split", 2, 2, 60, 1, n=60),
        _event("birth", 2, 7, 6, 1, 5, n=6),
        _event("retire", 2, 6, 3),
        _event("birth", 2, 3, 1, seq=260),
        _event("merge", 3, 7, 16, 5, n=10),
        _event("retire", 3, 5, 10),
        _event("move", 3, 1, 100, 2, n=4),
        _event("merge", 4, 2, 110, 7, n=20),
        _event("retire", 4, 7, 20),
        _event("birth", 4, 4, 1, seq=450),
    ]
