"""Kernels that came compiled with the package, and whether this process may use them.

A wheel can hold a folder of kernels that were compiled for a level of processors rather than for
one (``docker/build_wheel.py`` makes it). A checkout has none, and compiles for its own processor.
"""

import json
import logging
import os
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

__all__ = ["LEVEL", "MANIFEST", "made_by", "packaged_kernels", "settings_of_the_level"]

FOLDER = Path(__file__).resolve().parent / "kernels"
MANIFEST = "manifest.json"

# Source: the psABI for x86-64, in LLVM's words. Processors have it since 2013 (Haswell, Zen).
LEVEL = "x86-64-v3"
_FEATURES = (
    "avx,avx2,bmi,bmi2,cx16,f16c,fma,fxsr,lzcnt,mmx,movbe,popcnt,sahf,"
    "sse,sse2,sse3,sse4.1,sse4.2,ssse3,xsave"
)

_log = logging.getLogger(__name__)


def settings_of_the_level() -> dict[str, str]:
    """Return the environment in which numba compiles for the level, whatever the host has."""
    features = ",".join(f"+{each}" for each in _FEATURES.split(","))
    return {"NUMBA_CPU_NAME": LEVEL, "NUMBA_CPU_FEATURES": features}


def made_by() -> dict[str, str]:
    """Return the versions that compiled code depends on, by name."""
    python = f"{sys.implementation.cache_tag}-{sys.platform}"
    return {"python": python} | {name: version(name) for name in ("llvmlite", "numba")}


def _misfit(folder: Path) -> str | None:
    """Return why the kernels in a folder cannot be used here, or nothing."""
    made, here = json.loads((folder / MANIFEST).read_text()), made_by()
    for name, wanted in made.items():
        if here[name] != wanted:
            return f"they were made with {name} {wanted}, and this is {here[name]}"
    for name, value in settings_of_the_level().items():
        if os.environ.get(name, value) != value:
            return f"{name} is set"
    from llvmlite import binding

    has = binding.get_host_cpu_features()
    lacking = [each for each in _FEATURES.split(",") if not has.get(each)]
    return f"this processor lacks {', '.join(lacking)}" if lacking else None


@cache
def packaged_kernels() -> Path | None:
    """Return the folder of the kernels that came with the package, if they run here.

    Where they came and cannot be used, a warning says why.
    """
    if not (FOLDER / MANIFEST).is_file():
        return None
    reason = _misfit(FOLDER)
    if reason is None:
        return FOLDER
    _log.warning("kernels are compiled here, not taken from the package: %s", reason)
    return None
