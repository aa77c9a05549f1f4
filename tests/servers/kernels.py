"""Compiled kernels of the tests: for the best level of processors that a wheel has them for.

The test of a wheel that brings its kernels finds most of them compiled by the other tests, and all
tests run the code that users get.
"""

import os
import platform
from pathlib import Path

from weald.treecore.compiled.packaged import LEVELS, lacking, settings_of

__all__ = ["SETTINGS", "shared_kernels"]

# What a process must be without to choose a processor by itself.
SETTINGS = tuple(settings_of(LEVELS[0]))


def shared_kernels() -> dict[str, str]:
    """Return the environment in which kernels are compiled for the level, and kept beside others.

    Nothing on processors without it.
    """
    level = LEVELS[0]
    if platform.machine() != "x86_64" or lacking(level):
        return {}
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = os.environ.get("WEALD_KERNEL_CACHE") or str(kept / "weald" / f"kernels-{level}")
    return settings_of(level) | {"WEALD_KERNEL_CACHE": folder}
