"""A stretch of seeds, and that what must be noticed is noticed.

Simulations run in a process of their own: they replace the clock.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.chain import CoinChain
from tests.simulation.mutants import BEGIN, END, Mutant, mutants
from tests.simulation.redis_store import Commands, RedisStore

ROOT = Path(__file__).parents[2]
# One of each kind of promise; each is noticed within its first few seeds.
BREAKAGES = (8, 14, 21, 31, 53, 54, 87)


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_no_seed_finds_a_violation() -> None:
    done = simulate("0:100000", "--seconds", "60")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert int(done.stdout.split()[-7]) > 10, done.stdout


def test_a_group_meets_without_the_member_that_does_not_come() -> None:
    """A writer that died while the others were there already, and was the last to be missed."""
    done = simulate("101744")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def test_the_cheap_chain_has_what_a_shard_asks_of_one() -> None:
    rooms = [ROOT / "stream" / name for name in ("model/mixture_shard.py", "model/shard.py")]
    asked = {name for room in rooms for name in re.findall(r"self\.chain\.(\w+)", room.read_text())}
    # For columns that are left out, which a simulation has not.
    never = {"seen_anew"}
    made = {*vars(CoinChain), "family", "prior", "disruption", *never}
    assert asked - made == set()


def test_a_seed_is_the_same_run_each_time() -> None:
    first, second = (simulate("3", "--digest").stdout for _ in range(2))
    assert first.splitlines()[0].startswith("digest")
    assert first.splitlines()[0] == second.splitlines()[0]


def test_broken_lines_are_found() -> None:
    command = [sys.executable, "-m", "tests.simulation.mutants", "--quick", "--seeds", "8"]
    done = subprocess.run(
        [*command, *map(str, BREAKAGES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found = [line.split("\t")[:2] for line in done.stdout.splitlines() if "\t" in line]
    assert found == [[str(number), "simulation"] for number in BREAKAGES], done.stdout + done.stderr


def test_the_score_in_the_document_is_of_the_mutants_that_are_listed() -> None:
    text = (ROOT / "docs" / "guarantees.md").read_text()
    score = text[text.index(BEGIN) : text.index(END)]
    told = {
        name: list(map(int, counts))
        for name, *counts in re.findall(
            r"^\| ([a-z ]+) " + r"\| (\d+) " * 5 + r"\|$", score, re.MULTILINE
        )
    }
    listed = Counter(each.group for each in mutants())
    assert {name: sum(counts) for name, counts in told.items()} == {
        **listed,
        "all": listed.total(),
    }
    _, _, equivalent, survive, not_judged = told["all"]
    assert (survive, not_judged) == (0, 0)
    assert equivalent == sum(bool(each.remark) for each in mutants())
    assert all(each.remark in score for each in mutants())


@pytest.mark.parametrize("mutant", mutants(), ids=lambda each: str(each.number))
def test_every_mutant_is_a_line_of_the_code(mutant: Mutant) -> None:
    text = (ROOT / mutant.path).read_text()
    compile(mutant.applied(text), mutant.path, "exec")


def test_redis_in_this_process_answers_as_redis_does(redis_url: str) -> None:
    import redis

    server: Any = redis.Redis.from_url(redis_url)
    server.flushall()
    here = Commands(RedisStore(lambda: 1_800_000_000.0))
    for client in (server, here):
        client.xgroup_create("s", "g", id="0", mkstream=True)
        for name in ("a", "b", "c"):
            client.xadd("s", {"key": name}, maxlen=100, approximate=True)
        client.hset("h", mapping={"x": b"1", "y": b"2"})
    steps: list[Callable[[Any], object]] = [
        lambda each: fields_of(each.xreadgroup("g", "w", {"s": ">"}, 2)),
        lambda each: [row["consumer"] for row in each.xpending_range("s", "g", "-", "+", 9)],
        lambda each: len(each.xautoclaim("s", "g", "v", 0, count=1)[1]),
        lambda each: [
            (row["consumer"], row["times_delivered"])
            for row in each.xpending_range("s", "g", "-", "+", 9)
        ],
        lambda each: fields_of(each.xreadgroup("g", "v", {"s": ">"}, 2)),
        lambda each: fields_of(each.xreadgroup("g", "v", {"s": ">"}, 2)),
        lambda each: each.xack(
            "s", "g", each.xpending_range("s", "g", "-", "+", 1)[0]["message_id"]
        ),
        lambda each: len(each.xpending_range("s", "g", "-", "+", 9)),
        lambda each: each.xgroup_delconsumer("s", "g", "v"),
        lambda each: len(each.xpending_range("s", "g", "-", "+", 9)),
        lambda each: (each.hget("h", "x"), each.hget("h", "z"), each.hgetall("h")),
        lambda each: (each.hdel("h", "x", "z"), each.hdel("h", "y"), each.exists("h")),
        lambda each: (each.delete("s"), each.exists("s")),
    ]
    for number, step in enumerate(steps):
        assert step(server) == step(here), number
    for client in (server, here):
        with pytest.raises(redis.ResponseError, match="NOGROUP"):
            client.xreadgroup("g", "w", {"s": ">"}, 1)


def fields_of(read: Any) -> list[object]:
    """Fields of what was read of one stream, in either shape that redis-py gives."""
    if not read:
        return []
    entries: list[Any] = next(iter(read.values())) if isinstance(read, dict) else read[0][1]
    if entries and isinstance(entries[0], list):
        entries = [each for part in entries for each in part]
    return [fields for _, fields in entries]
