"""Throw damaged records at the decoder: ``python -m tests.stream.record.fuzz_decode --seconds 60``.

Good records are encoded, then damaged at random: bytes flipped, cut, repeated, spliced from a
list of things that have broken decoders before. Whatever comes out must be accounted for.
"""

import argparse
import json
import random
import sys
import time
from base64 import b64decode
from collections import Counter
from pathlib import Path

import numpy as np

from weald.stream.record.decode import decode
from weald.stream.record.record import Message
from weald.stream.record.schema import Schema
from weald.stream.settings import FieldSettings, SchemaSettings

X, Y = FieldSettings("x"), FieldSettings("y")
SCHEMAS = (
    Schema.of(SchemaSettings(fields=(X, Y), key="id", time="time")),
    Schema.of(SchemaSettings(fields=(X, Y), key="id", time="time"), text=True),
    Schema.of(SchemaSettings(fields=(X, Y), key="id", forbid_unknown=True)),
    Schema.of(SchemaSettings(fields=(FieldSettings("v", size=2), X))),
    Schema.of(SchemaSettings(fields=(FieldSettings("x", path="a.b"), FieldSettings("v.1")))),
)
CORPUS = Path(__file__).with_name("data") / "decode_corpus.json"
SPLICES = (
    *(b"null", b"true", b'""', b"-0", b"1e999", b"-1e-999", b"9" * 330, b"9" * 5_000, b"NaN"),
    *(b"Infinity", b"\x00", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"\xef\xbb\xbf"),
    *(b"[" * 40, b"{" * 40, b'{"a":' * 300, b"]", b"}", b'"', b"\\", b",", b":", b"\n", b" " * 9),
    *(b'"2024-02-30"', b'"0001-01-01T00:00:00+23:59"', b"1e12", b'"9999-12-31T23:59:59-23:59"'),
    *(b'"x":1,', b'"x":"1",', b"'", b"1_0", b"0x1p3", b"+1", b"01", b".5", b"5.", b"--1"),
)
GOOD = {"x": 1.5, "y": -2, "id": "k", "time": 1.7e9, "v": [0.5, 7], "a": {"b": 3}, "v.1": 4}
VALUES = (1, -2.5, 9e29, "3", "", None, [1, 2], [1.0, "2"], {"b": 4}, "2024-01-01T00:00:00Z")


def accounted(messages: list[Message], schema: Schema) -> list[str]:
    """Decode, check that nothing is lost or unfit to store, and tell the verdicts."""
    batch, dead = decode(messages, schema)
    assert len(batch) + len(dead) == len(messages)
    assert np.isfinite(batch.values).all()
    assert np.isfinite(batch.event_time).all()
    for text in (*batch.key, *(letter.detail for letter in dead)):
        assert text is None or ("\0" not in text and text.encode("utf-8") is not None)
    return ["good"] * len(batch) + [letter.reason for letter in dead]


def damaged(draw: random.Random) -> bytes:
    """One record, damaged up to three times."""
    record: dict[str, object] = dict(GOOD)
    for name in draw.sample(list(GOOD), draw.randint(0, 2)):
        record[name] = draw.choice(VALUES)
    if draw.random() < 0.2:
        del record[draw.choice(list(record))]
    value = json.dumps(record, ensure_ascii=draw.random() < 0.5).encode()
    for _ in range(draw.choice((0, 0, 1, 1, 2, 3))):
        at = draw.randint(0, len(value))
        match draw.randrange(4):
            case 0:
                value = value[:at] + draw.choice(SPLICES) + value[at:]
            case 1:
                value = value[:at] + value[at + draw.randint(0, 6) :]
            case 2:
                value = value[:at] + draw.randbytes(draw.randint(1, 3)) + value[at + 1 :]
            case _:
                value = value[:at] + value[at // 2 :]
    return value


def saved() -> list[bytes]:
    """Return the inputs that the tests replay."""
    return [b64decode(text) for text in json.loads(CORPUS.read_text())]


def decode_one(data: bytes) -> list[str]:
    """Decode one input; its first byte says by which schema and how many records it is."""
    if not data:
        return []
    schema = SCHEMAS[data[0] % len(SCHEMAS)]
    values: list[bytes | None] = list(data[1:].split(b"\x1e", data[0] // len(SCHEMAS) % 4))
    if data[0] >= 250:
        values.append(None)
    times = (-1, 0, 1_700_000_000_000, 2**62)
    messages = [
        Message("t", 0, i, times[(data[0] + i) % 4], value, value) for i, value in enumerate(values)
    ]
    return accounted(messages, schema)


def fuzz(seed: int, n_inputs: int = 2**62, seconds: float = float("inf")) -> Counter[str]:
    """Decode damaged records until one of the limits; count the verdicts."""
    draw = random.Random(seed)  # noqa: S311  damage, not secrets
    verdicts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while (left := n_inputs - verdicts.total()) > 0 and time.monotonic() < end:
        schema = draw.choice(SCHEMAS)
        values = [damaged(draw) for _ in range(min(20, left))]
        verdicts.update(
            accounted([Message("t", 0, i, 0, v, v) for i, v in enumerate(values)], schema)
        )
    return verdicts


def main() -> None:
    """Fuzz for a while and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    verdicts = fuzz(options.seed, seconds=options.seconds)
    for verdict, n in verdicts.most_common():
        sys.stdout.write(f"{n:>10}  {verdict}\n")
    sys.stdout.write(f"{verdicts.total():>10}  inputs\n")


if __name__ == "__main__":
    main()
