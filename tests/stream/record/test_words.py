"""Lines of one template get one set of counts, other lines another; templates can be read."""

import pytest

from weald.stream.record.fields.words import MASK, counts_of, line_tokens, template

TERMINATING = "PacketResponder {} for block blk_{} terminating"


def test_values_are_masked_and_words_are_not() -> None:
    assert line_tokens("Failed password for root from 10.1.2.3 port 4242 ssh2") == [
        "Failed", "password", "for", "root", "from", MASK, "port", MASK,
    ]  # fmt: skip
    assert line_tokens("connection from 1.2.3.4 (a.host.com) at Sun Jul 17 07:07:00 2005") == [
        "connection", "from", MASK, "at", MASK,
    ]  # fmt: skip
    assert line_tokens("it may open /var/log, then rest!") == [
        "it", "may", "open", MASK, "then", "rest",
    ]  # fmt: skip
    assert line_tokens(" \t") == []


def test_lines_of_one_template_count_alike() -> None:
    one, other = TERMINATING.format(1, 388), TERMINATING.format(0, -69)
    assert counts_of(one, 256, "line") == counts_of(other, 256, "line")
    assert counts_of(one, 256, "line") != counts_of(one + " early", 256, "line")
    assert counts_of("Receiving block 7", 256, "line") != counts_of("Received block 7", 256, "line")


def test_counts_do_not_change_between_versions() -> None:
    """A stream's counts are in its database: another hash would tear its clusters apart."""
    counts = counts_of("Failed password for root from 10.1.2.3", 32, "line")
    assert {i: n for i, n in enumerate(counts) if n} == PINNED
    words = counts_of("To be, or not to be", 8, "words")
    assert sum(words) == 6


PINNED: dict[int, float] = {0: 40.0, 2: 1.0, 3: 1.0, 10: 30.0, 15: 31.0, 16: 1.0}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            [TERMINATING.format(i, i) for i in range(3)],
            "PacketResponder <*> for block <*> terminating",
        ),
        (["user ann in", "user bob in", "user cid in"], "user <*> in"),
        (["a b c", "a b c", "d e"], "a b c"),
        ([], ""),
    ],
)
def test_a_template_is_what_lines_have_in_common(lines: list[str], expected: str) -> None:
    assert template(list(map(line_tokens, lines))) == expected
