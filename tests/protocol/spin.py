"""``python -m tests.protocol.spin``: search the protocol's model, and what each wrong form breaks.

Spin makes a program of ``weald.pml``, a C compiler builds it once, and the bounds and the form come
to it by its environment. With ``--short`` within the bounds of the suite. Exit code 1 when the
right form breaks a promise, or a wrong one breaks none.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.servers.server import MissingServerError

__all__ = ["FORMS", "SHORT", "Form", "Model", "Verdict"]

MODEL = Path(__file__).with_name("weald.pml")
Bounds = dict[str, int]

# Kinds of commands, as the model numbers them.
CREATE, DROP, KEEP = 1, 2, 4

# What a search begins with; a scene says what differs.
LEAST = {"RECORDS": 2, "LEASES": 1, "KEPT": 2}
SHORT: dict[str, Bounds] = {
    "writers": {"ROUNDS": 1, "SAVES": 1, "CRASHES": 1, "REBALANCES": 1, "LOST": 1},
    "group": {"SAVES": 1, "CRASHES": 1, "REBALANCES": 1, "RESETS": 1, "LOST": 1},
    "workers": {"RECORDS": 1, "LEASES": 2, "ROUNDS": 2, "FLUSHES": 1, "LONELY": 1},
    "replay": {"ROUNDS": 2, "PUBLICATIONS": 1, "SAVES": 2},
    "upgrade": {"ROUNDS": 1, "PUBLICATIONS": 1, "SAVES": 1, "CRASHES": 1, "DIVERGING": 1},
    "create": {"ROUNDS": 1, "SAVES": 2, "COMMANDS": 1, "KINDS": CREATE},
    "drop": {"ROUNDS": 1, "SAVES": 1, "REBALANCES": 1, "COMMANDS": 1, "KINDS": DROP},
    "keep": {"ROUNDS": 1, "SAVES": 1, "REBALANCES": 1, "COMMANDS": 1, "KINDS": KEEP},
    "two people": {"SAVES": 2, "COMMANDS": 2, "KINDS": CREATE | DROP | KEEP, "RETENTION": 1},
    "two snapshots": {"ROUNDS": 1, "SAVES": 1, "COMMANDS": 2, "KINDS": CREATE | DROP},
}
LONG: dict[str, Bounds] = {
    "writers": {"ROUNDS": 1, "SAVES": 1, "CRASHES": 2, "REBALANCES": 1, "LOST": 1},
    "group": {"SAVES": 2, "CRASHES": 1, "REBALANCES": 2, "RESETS": 1, "LOST": 1},
    "workers": {
        "RECORDS": 1,
        "LEASES": 2,
        "ROUNDS": 2,
        "PUBLICATIONS": 1,
        "SAVES": 1,
        "CRASHES": 1,
        "FLUSHES": 1,
        "LONELY": 1,
    },
    "replay": {"ROUNDS": 2, "PUBLICATIONS": 1, "SAVES": 2, "CRASHES": 1, "DIVERGING": 1},
    "create": {"ROUNDS": 1, "SAVES": 2, "REBALANCES": 1, "COMMANDS": 1, "KINDS": CREATE},
    "drop": {"ROUNDS": 2, "SAVES": 2, "COMMANDS": 1, "KINDS": DROP, "CRASHES": 1},
    "keep": {"ROUNDS": 2, "SAVES": 2, "COMMANDS": 1, "KINDS": KEEP, "CRASHES": 1},
    "two people": {"ROUNDS": 1, "SAVES": 2, "COMMANDS": 2, "KINDS": DROP | KEEP},
    "two snapshots": {
        "ROUNDS": 1,
        "SAVES": 1,
        "COMMANDS": 2,
        "KINDS": CREATE | DROP,
        "RETENTION": 1,
    },
}


@dataclass(frozen=True)
class Form:
    """A wrong form of the protocol.

    Parameters
    ----------
    name : str
        As in the model.
    promise : str
        What it breaks first.
    bounds : dict
        Within which it does.
    """

    name: str
    promise: str
    bounds: Bounds


FORMS = [
    Form("FENCE_OFF", "one_writer", SHORT["writers"]),
    Form("OWNER_OFF", "one_writer", SHORT["group"]),
    Form("EPOCH_OFF", "one_writer", SHORT["writers"]),
    Form("GENERATION_OFF", "one_writer", SHORT["writers"]),
    Form("LOCK_OFF", "one_writer", SHORT["writers"]),
    Form("ANSWER_OF_ANOTHER", "one_writer", SHORT["writers"]),
    Form("OFFSETS_OUTSIDE", "each_record_once", SHORT["writers"]),
    Form("TOKEN_OFF", "adopted_under_its_token", {**SHORT["workers"], "CRASHES": 1}),
    Form("ADOPTED_TWICE", "adopted_under_its_token", SHORT["workers"]),
    Form("LEASES_LEFT_OPEN", "rounds_go_on", {**SHORT["workers"], "CRASHES": 1}),
    Form("LOST_LEASES_LEFT", "rounds_go_on", SHORT["workers"]),
    Form("PLACE_OF_THE_BEGINNING_WRONG", "continues_bit_for_bit", SHORT["replay"]),
    Form("PLACE_WITHOUT_PUBLICATION", "continues_bit_for_bit", SHORT["replay"]),
    Form("REPLAY_ADOPTS_AGAIN", "continues_bit_for_bit", SHORT["replay"]),
    Form("REPLAY_TRUSTS_ITSELF", "continues_bit_for_bit", SHORT["upgrade"]),
    Form("SNAPSHOT_WITHOUT_THE_PLACE", "continues_bit_for_bit", SHORT["replay"]),
    Form("CREATED_WITHOUT_THE_PLACE", "continues_bit_for_bit", SHORT["create"]),
    Form("REPLAYED_WHAT_WAS_PRUNED", "one_can_go_back", SHORT["create"]),
    Form("PRUNED_AT_THE_SNAPSHOTS_PLACE", "continues_bit_for_bit", SHORT["replay"]),
    Form("ROUNDS_DROPPED_BY_PLACE", "continues_bit_for_bit", SHORT["drop"]),
    Form("NEVER_ASKS_IN_A_SILENCE", "rounds_go_on", SHORT["drop"]),
    Form("KEPT_OF_ANOTHER_MOMENT", "one_can_go_back", SHORT["keep"]),
    Form("KEPT_WITH_FORGOTTEN_ROUNDS", "continues_bit_for_bit", SHORT["keep"]),
    Form("SAVED_UNASKED", "continues_bit_for_bit", SHORT["two people"]),
    Form("GONE_SNAPSHOT_TAKEN", "each_record_once", SHORT["two people"]),
    Form("SNAPSHOTS_DROPPED_BY_NUMBER", "continues_bit_for_bit", SHORT["two snapshots"]),
]


@dataclass(frozen=True)
class Verdict:
    """What a search came to.

    Parameters
    ----------
    states : int
    seconds : float
    broken : str
        The promise that does not hold; "" when all do, in every state.
    steps : list of str
        How it comes to that.
    """

    states: int
    seconds: float
    broken: str = ""
    steps: list[str] = field(default_factory=list)


class Model:
    """The program that searches the model.

    Parameters
    ----------
    folder : Path
        Where it is built.

    Raises
    ------
    MissingServerError
        Where there is no Spin, or no C compiler.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        spin, compiler = _program("spin"), _program("cc")
        shutil.copy(MODEL, folder)
        self._run(spin, "-a", MODEL.name)
        # Nothing of one process can be left out for another's sake: there is one process.
        options = ("-O1", "-w", "-DSAFETY", "-DNOREDUCE", "-DVECTORSZ=1024", "-DMEMLIM=8000")
        self._run(compiler, *options, "-o", "pan", "pan.c")

    @cached_property
    def version(self) -> str:
        """Of Spin."""
        return self._run(_program("spin"), "-V").split()[2]

    def search(self, bounds: Bounds, form: str | None = None) -> Verdict:
        """Look at every state within the bounds, until one breaks a promise."""
        told = {**LEAST, **bounds, "WRONG": numbers()[form] if form else 0}
        environment = {**os.environ, **{name: str(value) for name, value in told.items()}}
        said = self._run("./pan", "-m10000", "-w22", environment=environment)
        states = re.search(r"(\S+) states, stored", said)
        seconds = re.search(r"elapsed time (\S+) seconds", said)
        if states is None or seconds is None or "max search depth" in said:
            raise RuntimeError(f"the search did not end:\n{said[-2000:]}")
        found = (int(float(states[1])), float(seconds[1]))
        broken = re.search(r"assertion violated (\w+)", said)
        if broken is None:
            if "errors: 0" not in said or "Search not completed" in said:
                raise RuntimeError(f"the search did not end:\n{said[-2000:]}")
            return Verdict(*found)
        trail = self._run("./pan", "-r", environment=environment)
        steps = re.findall(r"^((?:writer|lease|person|the group) .*)$", trail, re.MULTILINE)
        return Verdict(*found, broken[1], steps)

    def _run(self, *words: str, environment: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            words,
            cwd=self._folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
        )
        said = done.stdout + done.stderr
        if done.returncode != 0 and "pan:" not in said:
            raise RuntimeError(f"{' '.join(words)}:\n{said[-2000:]}")
        return said


def numbers() -> dict[str, int]:
    """Wrong forms, as the model numbers them."""
    _, after = MODEL.read_text().split("/* Wrong forms. */")
    told = after[: after.index("\n\n")]
    return {name: int(number) for name, number in re.findall(r"#define (\w+) (\d+)", told)}


def _program(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        package = {"spin": "spin", "cc": "gcc"}[name]
        raise MissingServerError(f"{name} is not on the PATH (Debian package {package})")
    return program


def main() -> int:
    """Search all scenes and forms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="within the bounds of the suite")
    arguments = parser.parse_args()
    states, wrong = 0, 0
    with tempfile.TemporaryDirectory(prefix="weald-spin-") as folder:
        model = Model(Path(folder))
        for scene, bounds in (SHORT if arguments.short else LONG).items():
            verdict = model.search(bounds)
            states, wrong = states + verdict.states, wrong + bool(verdict.broken)
            print(f"{scene}: {verdict.states} states, {verdict.seconds} s {verdict.broken}")
            print("".join(f"    {step}\n" for step in verdict.steps), end="", flush=True)
        n_found = 0
        for form in FORMS:
            verdict = model.search(form.bounds, form.name)
            n_found += bool(verdict.broken)
            print(f"{form.name}: {verdict.broken or 'not found'} in {verdict.states} states")
    print(f"{states} states, {wrong} scenes wrong; {n_found} of {len(FORMS)} wrong forms found")
    return int(wrong > 0 or n_found < len(FORMS))


if __name__ == "__main__":
    sys.exit(main())
