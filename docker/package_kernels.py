"""Compile kernels for levels of processors, into the folders where a package brings them.

    python docker/package_kernels.py COMMAND ...     for the Weald of this Python

The command is run once for each level, and what it has compiled then is packaged. On processors
that have no levels it is run alone, and what it compiles stays in the cache. What was compiled for
the same sources before is taken again.

Of what was compiled a package gets the machine code of what Python calls. The intermediate code,
from which callers are compiled, is four fifths of it all, and who compiles has the sources.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile

from weald.treecore.compiled.code_library import called_by_others, made_lean
from weald.treecore.compiled.kernel_cache import cache_directory
from weald.treecore.compiled.packaged import FOLDER, LEVELS, MANIFEST, made_by, settings_of
from weald.treecore.compiled.source_stamps import EVERYTHING, stamps, state_of_sources


def run(*command: str | Path, **environment: str) -> None:
    """Run a command of ours, with these variables."""
    subprocess.run(command, env=os.environ | environment, check=True)  # noqa: S603 - our own


def package_kernels(into: Path, levels: list[str], command: list[str | Path]) -> None:
    """Have a command compile what it needs for each level, and copy that into the level's folder.

    Parameters
    ----------
    into : Path
        Made where it is missing; a level that it has is replaced.
    levels : list of str
    command : list of str or Path
        A program and its arguments.
    """
    kept = [cache_directory().with_name(f"kernels-{level}") for level in levels]

    def compile_for(level: str, cache: Path) -> None:
        run(*command, WEALD_KERNEL_CACHE=str(cache), **settings_of(level))

    # Most of what a command compiles comes one after the other.
    with ThreadPoolExecutor(os.cpu_count()) as at_once:
        list(at_once.map(compile_for, levels, kept))
    # Afterwards: where they lie no command may find them before the last has run.
    for level, cache in zip(levels, kept, strict=True):
        folder = into / level
        shutil.rmtree(folder, ignore_errors=True)
        _copy_lean(cache, folder)
        shutil.copy(cache / f"stamps-{state_of_sources()}.json", folder)
        (folder / MANIFEST).write_text(json.dumps(made_by(), indent=2))


def _copy_lean(cache: Path, folder: Path) -> None:
    """Copy what a process needs that calls kernels from Python and compiles nothing."""
    whole = called_by_others(data[0] for *_, data in _compiled(cache))
    for place, name, key, data in _compiled(cache):
        state = data[0] if data[0][0] in whole else made_lean(data[0])
        if state is not None:
            (folder / place).mkdir(parents=True, exist_ok=True)
            IndexDataCacheFile(str(folder / place), name, place.name).save(key, (state, *data[1:]))


def _compiled(cache: Path) -> Iterator[tuple[Path, str, Any, tuple[Any, ...]]]:
    """The compiled functions of today's sources: folder, name, key and contents of each."""
    found = {source: stamp for source, stamp in stamps().items() if source != EVERYTHING}
    for source, stamp in found.items():
        place = Path(source).with_suffix("") / stamp
        for index in sorted((cache / place).glob("*.nbi")):
            files = IndexDataCacheFile(str(cache / place), index.stem, stamp)
            for key in files._load_index():  # noqa: SLF001 - numba has no door
                yield place, index.stem, key, files.load(key)


def main() -> None:
    """Have the command compile for the Weald of this Python."""
    command: list[str | Path] = [*sys.argv[1:]]
    if platform.machine() == "x86_64":
        package_kernels(FOLDER, list(LEVELS), command)
    else:
        run(*command)


if __name__ == "__main__":
    main()
