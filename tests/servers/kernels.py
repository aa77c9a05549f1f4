"""Compiled kernels of the tests: for the level of processors that the wheel's are for.

The test of a wheel that brings its kernels finds most of them compiled by the other tests, and all
tests run the code that users get.
"""

import os
import platform
from pathlib import Path

from llvmlite import binding

from weald.treecore.compiled.packaged import LEVEL, settings_of_the_level

__all__ = ["SETTINGS", "shared_kernels"]

# What a process must be without to choose a processor by itself.
SETTINGS = tuple(settings_of_the_level())


def shared_kernels() -> dict[str, str]:
    """Return the environment in which kernels are compiled for the level, and kept beside others.

    Nothing on processors without it.
    """
    level = settings_of_the_level()
    has = binding.get_host_cpu_features()
    features = level["NUMBA_CPU_FEATURES"].replace("+", "").split(",")
    if platform.machine() != "x86_64" or not all(has.get(each) for each in features):
        return {}
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = os.environ.get("WEALD_KERNEL_CACHE") or str(kept / "weald" / f"kernels-{LEVEL}")
    return level | {"WEALD_KERNEL_CACHE": folder}
