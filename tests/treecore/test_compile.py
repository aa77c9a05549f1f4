"""The cache of compiled kernels, as several processes use it at the same time."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = tuple(marker.parent for marker in ROOT.glob("*/py.typed"))

# Says where it comes from when it is ready, waits for a line, and tells how often it compiled the
# function itself.
SCRIPT = """
import sys
import numpy as np
from numba.core import event
from weald.mcmc.consensus import _membership, membership
from weald.treecore import compile

class Compilations(event.Listener):
    found = 0
    def on_start(self, compilation):
        self.found += compilation.data["dispatcher"] is _membership
    def on_end(self, compilation):
        pass

seen = Compilations()
event.register("numba:compile", seen)
print(compile.__file__, flush=True)
sys.stdin.readline()
membership(np.zeros((3, 4), dtype=np.int64), np.zeros(4, dtype=np.int64))
print(seen.found)
"""


def copy_of_the_sources(folder: Path) -> dict[str, str]:
    """Environment of a process that imports the rooms from another place."""
    for room in ROOMS:
        shutil.copytree(room, folder / "weald" / room.name)
    for source in folder.rglob("*.py"):
        os.utime(source, (0, 0))
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize("installed_twice", [False, True])
def test_a_function_is_compiled_by_one_process_of_several(
    tmp_path: Path, installed_twice: bool
) -> None:
    environment = {**os.environ, "WEALD_KERNEL_CACHE": str(tmp_path / "kernels")}
    elsewhere = copy_of_the_sources(tmp_path / "copy") if installed_twice else {}
    command = [sys.executable, "-c", SCRIPT]
    both = [
        subprocess.Popen(
            command,
            env=environment | place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for place in ({}, elsewhere)
    ]
    places = set()
    for process in both:
        assert process.stdout is not None
        places.add(process.stdout.readline())
    assert len(places) == 1 + installed_twice
    for process in both:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate(timeout=600)[0] for process in both]
    assert sorted(int(each) for each in said) == [0, 1]
