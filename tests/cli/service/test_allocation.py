"""What a refinement frees leaves the process, and records are no reason to look for cycles."""

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


# Whether a large array is made of huge pages where the system gives them to who asks.
ASKS = """
import sys
from weald.cli.service.allocation import ask_for_usual_pages

if sys.argv[1] == "usual":
    ask_for_usual_pages()
import numpy as np
large = np.ones(2**23)
place, asked, inside = large.ctypes.data + 2**22, False, False
for line in open("/proc/self/smaps"):
    words = line.split()
    if "-" in words[0] and not words[0].endswith(":"):
        first, last = (int(each, 16) for each in words[0].split("-"))
        inside = first <= place < last
    elif inside and words[0] == "VmFlags:":
        asked = "hg" in words
print(asked)
"""


def asks(how: str) -> str:
    """Whether the system is asked for huge pages."""
    command = [sys.executable, "-c", ASKS, how]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="huge pages are asked for on Linux alone")
def test_arrays_are_made_of_usual_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMPY_MADVISE_HUGEPAGE", raising=False)
    assert asks("usual") == "False"
    # Else nobody would have to say so.
    assert asks("as ever") == "True"


# What a batch of 4,000 records makes, with the collector's looks at everything meanwhile.
COLLECTS = """
import gc, sys
from weald.cli.service.allocation import seek_cycles_rarely
from weald.stream.record.record import Message

if sys.argv[1] == "rarely":
    seek_cycles_rarely()
looks = []
gc.callbacks.append(lambda phase, info: looks.append(info["generation"]))
for _ in range(50):
    batch = [(Message("t", 0, i, 0, None, b""), [i]) for i in range(4_000)]
print(len(looks))
"""


def looks(how: str) -> int:
    """How often the collector begins or ends while batches come and go."""
    command = [sys.executable, "-c", COLLECTS, how]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_records_are_no_reason_to_look_for_cycles() -> None:
    assert looks("rarely") == 0
    assert looks("as ever") > 100
