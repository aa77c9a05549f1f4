"""The cache of compiled kernels, as several processes use it at the same time."""

import os
import subprocess
import sys
from pathlib import Path

# Says when it is ready, waits for a line, and tells how often it compiled the function itself.
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
print("ready", flush=True)
sys.stdin.readline()
membership(np.zeros((3, 4), dtype=np.int64), np.zeros(4, dtype=np.int64))
print(seen.found)
"""


def test_a_function_is_compiled_by_one_process_of_several(tmp_path: Path) -> None:
    environment = {**os.environ, "WEALD_KERNEL_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", SCRIPT]
    both = [
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate(timeout=600)[0] for process in both]
    assert sorted(int(each) for each in said) == [0, 1]
