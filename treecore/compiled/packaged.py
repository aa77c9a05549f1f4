"""Kernels that came compiled with the package, and whether this process may use them.

An installation can hold folders of kernels, each compiled for a level of processors rather than for
one (``docker/package_kernels.py`` makes them). A checkout has none, and compiles for its own
processor.
"""

import json
import logging
import os
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

__all__ = [
    "LEVELS",
    "MANIFEST",
    "lacking",
    "made_by",
    "packaged_kernels",
    "packaged_level",
    "settings_of",
]

FOLDER = Path(__file__).resolve().parent / "kernels"
MANIFEST = "manifest.json"

# Of each level, the best one first, what a processor must have. Source: the psABI for x86-64, in
# LLVM's words. Processors have v3 since 2013 (Haswell, Zen); virtual machines often show v2 alone.
_V2 = "cx16,fxsr,mmx,popcnt,sahf,sse,sse2,sse3,sse4.1,sse4.2,ssse3"
_FEATURES = {
    "x86-64-v3": f"avx,avx2,bmi,bmi2,f16c,fma,lzcnt,movbe,xsave,{_V2}",
    "x86-64-v2": _V2,
}
LEVELS = tuple(_FEATURES)

_log = logging.getLogger(__name__)


def settings_of(level: str) -> dict[str, str]:
    """Return the environment in which numba compiles for a level, whatever the host has."""
    features = ",".join(f"+{each}" for each in sorted(_FEATURES[level].split(",")))
    return {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": features}


def lacking(level: str) -> list[str]:
    """Return what this processor lacks of a level."""
    from llvmlite import binding

    has = binding.get_host_cpu_features()
    return [each for each in _FEATURES[level].split(",") if not has.get(each)]


def made_by() -> dict[str, str]:
    """Return the versions that compiled code depends on, by name."""
    python = f"{sys.implementation.cache_tag}-{sys.platform}"
    return {"python": python} | {name: version(name) for name in ("llvmlite", "numba")}


def _misfit(level: str) -> str | None:
    """Return why the kernels of a level cannot be used here, or nothing."""
    made, here = json.loads((FOLDER / level / MANIFEST).read_text()), made_by()
    for name, wanted in made.items():
        if here[name] != wanted:
            return f"they were made with {name} {wanted}, and this is {here[name]}"
    for name, value in settings_of(level).items():
        if os.environ.get(name, value) != value:
            return f"{name} is set"
    lacks = lacking(level)
    return f"this processor lacks {', '.join(lacks)}" if lacks else None


@cache
def packaged_level() -> str | None:
    """Return the best level whose kernels came with the package and run here.

    Where some came and none can be used, a warning says why.
    """
    came = [level for level in LEVELS if (FOLDER / level / MANIFEST).is_file()]
    reason = None
    for level in came:
        reason = _misfit(level)
        if reason is None:
            return level
    if came:
        _log.warning("kernels are compiled here, not taken from the package: %s", reason)
    return None


def packaged_kernels() -> Path | None:
    """Return the folder of the kernels that came with the package, if any run here."""
    level = packaged_level()
    return None if level is None else FOLDER / level
