"""How much memory there is for this process: the machine's, or that of the container it is in."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["SHARE", "machine_memory"]

# Of it, what a model may take whose settings do not say what it keeps: a database, a broker and
# the page cache are often on the same machine.
SHARE = 0.5
_SYSTEM = Path("/")
# Where control groups are mounted, and the file with a group's limit: of version 2, and of 1.
_VERSIONS = (
    (Path("sys/fs/cgroup"), "memory.max"),
    (Path("sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
)


def machine_memory(system: Path = _SYSTEM) -> int | None:
    """Bytes of memory that this process may have; None where the system does not say.

    The least of the machine's memory and the limits of the control groups that the process is in,
    by which containers and services are bounded.

    Parameters
    ----------
    system : Path
        Root of the file system.
    """
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    return min([machine, *_limits(system)])


def _limits(system: Path) -> list[int]:
    groups = [Path(), *_groups(system)]
    # A group's limit holds for all below it.
    places = {place for group in groups for place in (group, *group.parents)}
    files = [system / root / place / name for root, name in _VERSIONS for place in places]
    return [limit for limit in map(_number, files) if limit is not None]


def _groups(system: Path) -> list[Path]:
    """Control groups of this process whose memory is counted, from where they are mounted."""
    try:
        lines = (system / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    # Number, what is counted (in version 2 nothing is named), path.
    named = [line.split(":", 2) for line in lines if line.count(":") > 1]
    return [
        Path(path.lstrip("/"))
        for _, counted, path in named
        if not counted or "memory" in counted.split(",")
    ]


def _number(file: Path) -> int | None:
    """What a limit's file says; None where it is not there, or says that there is none."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
