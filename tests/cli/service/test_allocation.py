"""What a refinement frees leaves the process."""

import platform
import subprocess
import sys

import pytest

# Arrays of 8 MiB that are freed between those of one that stay, of which there are 20 MiB.
FREES = """
import sys
import numpy as np
from pathlib import Path
from weald.cli.service.allocation import give_arrays_back

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

if sys.argv[1] == "back":
    assert give_arrays_back()
for size in (16, 8):
    before, small = resident(), []
    large = []
    for _ in range(20):
        large.append(np.ones(size * 2**17))
        small.append(np.ones(2**17))
    large.clear()
print((resident() - before) // 2**20)
"""


def kept(how: str) -> int:
    """MiB that stay of 160 that are freed."""
    command = [sys.executable, "-c", FREES, how]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc alone has this setting")
def test_freed_arrays_leave_the_process() -> None:
    assert kept("back") < 20
    # Else nobody would have to ask for it.
    assert kept("as ever") > 100
