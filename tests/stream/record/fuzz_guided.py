"""A guided fuzzer of the decoder: ``python -m tests.stream.record.fuzz_guided --runs 1000000``.

libFuzzer, by atheris, keeps each input that reaches a branch of the decoder that none reached
before and damages it further. What it finds is kept in a folder, which `--keep` condenses into
``data/decode_corpus.json``, and the tests replay that.
"""

import argparse
import json
import random
import sys
from base64 import b64encode
from collections import Counter
from pathlib import Path

import atheris

with atheris.instrument_imports(
    include=["weald.stream.record.decode", "weald.stream.record.explain"]
):
    import weald.stream.record.decode
    import weald.stream.record.explain  # noqa: F401  instrumented by being imported here

from tests.stream.record.fuzz_decode import (
    CORPUS,
    GOOD,
    SCHEMAS,
    SPLICES,
    damaged,
    decode_one,
    saved,
)

LONGEST = 400


def begun(seed: int) -> list[bytes]:
    """Return inputs to begin with: good records and damaged ones, by every schema."""
    draw = random.Random(seed)  # noqa: S311  damage, not secrets
    records = [json.dumps(GOOD).encode(), *(damaged(draw) for _ in range(40))]
    return [bytes([i]) + record for i in range(len(SCHEMAS)) for record in records]


def main() -> None:
    """Fuzz, or condense what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000, help="inputs to try")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--keep", type=int, default=0, help="keep so many inputs for the tests")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.keep:
        paths = [path for path in options.folder.iterdir() if not path.name.startswith("begun-")]
        found = sorted((path.read_bytes() for path in paths), key=len)
        CORPUS.parent.mkdir(exist_ok=True)
        texts = [b64encode(data).decode() for data in found[: options.keep]]
        CORPUS.write_text(json.dumps(texts, indent=0) + "\n")
        return
    for number, data in enumerate([*begun(options.seed), *(saved() if CORPUS.exists() else [])]):
        (options.folder / f"begun-{number}").write_bytes(data)
    words = options.folder.with_suffix(".dict")
    words.write_text("".join(f'"{_escaped(each)}"\n' for each in SPLICES if len(each) < 60))
    verdicts: Counter[str] = Counter()
    n_inputs = 0

    def one(data: bytes) -> None:
        nonlocal n_inputs
        n_inputs += 1
        verdicts.update(decode_one(data))
        if n_inputs == options.runs:
            # The library leaves without returning here.
            _report(verdicts, n_inputs)

    arguments = [f"-atheris_runs={options.runs}", f"-seed={options.seed}", f"-dict={words}"]
    arguments += [f"-max_len={LONGEST}", "-print_final_stats=1", str(options.folder)]
    atheris.Setup([sys.argv[0], *arguments], one)
    atheris.Fuzz()


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


def _report(verdicts: Counter[str], n_inputs: int) -> None:
    for verdict, n in verdicts.most_common():
        sys.stdout.write(f"{n:>10}  {verdict}\n")
    sys.stdout.write(f"{verdicts.total():>10}  records of {n_inputs} inputs, each accounted for\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
