"""What the kernel says of the memory of a process."""

from pathlib import Path


def mebibytes(process: int | str = "self", kind: str = "VmRSS") -> float:
    """Memory of a process, given by its id, or of this one, MiB.

    ``VmRSS`` is what is resident now, pages of mapped files among it, ``VmHWM`` the most that ever
    was, and ``RssAnon`` what it has for itself now, without pages of files.
    """
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition(f"\n{kind}:")[2].split()[0]) / 1024
