"""What the page of real tables says of itself is what its rows say."""

import pytest

from benchmarks.real import LEVELS, TOLD, Row, page, sentences

NAN = float("nan")
PEER = "mixture by BIC"


def row(table: str, method: str, n_clusters: int, index: float, **more: float) -> Row:
    """A row of a table in which nothing else is odd."""
    known = {"density": NAN, "error": NAN, "doubted": False, "largest": 0.5} | more
    return Row(
        table,
        method,
        n_clusters,
        index,
        index,
        known["density"],
        known["error"],
        bool(known["doubted"]),
        1.0,
        known["largest"],
        0.6,
    )


ROWS = [
    # Groups are better, few, and doubted without need; density is within an error of the first.
    row("iris", LEVELS[0], 9, 0.5, density=-2.0, error=0.3, doubted=True),
    row("iris", LEVELS[1], 3, 0.8, doubted=True, largest=0.95),
    row("iris", PEER, 2, 0.6, density=-1.8, error=0.1),
    row("iris", TOLD, 3, 0.7),
    # Clusters are better, too many, bad without a warning, and predict worse.
    row("vowel", LEVELS[0], 13, 0.2, density=-2.0, error=0.1),
    row("vowel", LEVELS[1], 1, 0.1),
    row("vowel", PEER, 4, 0.1, density=-1.8, error=0.1),
    row("vowel", TOLD, 11, 0.3),
]


@pytest.mark.parametrize(
    "said",
    [
        "On all tables the better of its two levels has a mean index of 0.50, the best peer",
        "peer that is not told K (mixture by BIC) 0.35, and k-means, which is, 0.50.",
        "On those without a star the better of its two levels has a mean index of 0.20",
        "one standard error of the first on 1 of 2 tables (50%), but not vowel.",
        "that is not told K on 1 tables: vowel (13, mixture by BIC 4).",
        "doubts 0 of the 1 tables on which the better index is below 0.3, but not vowel, and 1 of",
        "in no class, on 1 tables: groups of iris.",
    ],
)
def test_sentences_count_gains_and_losses(said: str) -> None:
    assert said in " ".join(sentences(ROWS))


def test_the_page_has_sentences_and_marks() -> None:
    text = page(ROWS)
    assert "| iris\\* | 0.50 (9)? | 0.80 (3)? | 0.60 (2) | 0.70 (3) |" in text
    assert "- Its density of held-out rows is first" in text
    assert max(map(len, text.splitlines())) <= 100
