"""How much memory there is: the machine's, or what bounds the process in it."""

import os
from pathlib import Path

import pytest

from weald.cli.service.machine_memory import machine_memory

MIB = 2**20
# What the kernel says of a process in a group of version 2, and of version 1.
VERSION_2 = "0::/system.slice/weald.service\n"
VERSION_1 = "12:cpuset:/docker/abc\n4:memory,hugetlb:/docker/abc\n1:name=systemd:/docker/abc\n"


def system(root: Path, groups: str, limits: dict[str, str]) -> Path:
    """A root of a file system with these groups of this process, and these limits."""
    for name, text in {"proc/self/cgroup": groups, **limits}.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_without_groups_it_is_the_machine_s(tmp_path: Path) -> None:
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert machine_memory(tmp_path) == whole
    here = machine_memory()
    assert here is not None
    assert 0 < here <= whole


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        # A container sees its own group as the root of all.
        ("0::/\n", {"sys/fs/cgroup/memory.max": f"{64 * MIB}\n"}, 64 * MIB),
        (
            VERSION_2,
            {"sys/fs/cgroup/system.slice/weald.service/memory.max": f"{50 * MIB}\n"},
            50 * MIB,
        ),
        # The limit of a group holds for the groups in it.
        (
            VERSION_2,
            {
                "sys/fs/cgroup/system.slice/weald.service/memory.max": "max\n",
                "sys/fs/cgroup/system.slice/memory.max": f"{40 * MIB}\n",
            },
            40 * MIB,
        ),
        (
            VERSION_1,
            {"sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": f"{30 * MIB}\n"},
            30 * MIB,
        ),
        # Inside a container of version 1 the path is the host's, which is not there.
        (VERSION_1, {"sys/fs/cgroup/memory/memory.limit_in_bytes": f"{20 * MIB}\n"}, 20 * MIB),
    ],
)
def test_the_least_limit_holds(
    tmp_path: Path, groups: str, limits: dict[str, str], expected: int
) -> None:
    assert machine_memory(system(tmp_path, groups, limits)) == expected


def test_no_limit_is_none(tmp_path: Path) -> None:
    limits = {
        "sys/fs/cgroup/memory.max": "max\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        # Groups whose memory is not counted have no say.
        "sys/fs/cgroup/memory/docker/other/memory.limit_in_bytes": "1\n",
    }
    groups = "3:cpuset:/docker/other\nnot a group\n"
    assert machine_memory(system(tmp_path, groups, limits)) == machine_memory(tmp_path / "none")
