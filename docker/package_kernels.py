"""Compile kernels for levels of processors, into the folders where a package brings them.

    python docker/package_kernels.py COMMAND ...     for the Weald of this Python

The command is run once for each level, and what it has compiled then is packaged. On processors
that have no levels it is run alone, and what it compiles stays in the cache. What was compiled for
the same sources before is taken again.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

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
    for level, cache in zip(levels, kept, strict=True):
        run(*command, WEALD_KERNEL_CACHE=str(cache), **settings_of(level))
    # Afterwards: where they lie no command may find them before the last has run.
    for level, cache in zip(levels, kept, strict=True):
        folder = into / level
        shutil.rmtree(folder, ignore_errors=True)
        for source, stamp in stamps().items():
            if source != EVERYTHING:
                place = Path(source).with_suffix("") / stamp
                if (cache / place).is_dir():
                    shutil.copytree(cache / place, folder / place)
        shutil.copy(cache / f"stamps-{state_of_sources()}.json", folder)
        (folder / MANIFEST).write_text(json.dumps(made_by(), indent=2))


def main() -> None:
    """Have the command compile for the Weald of this Python."""
    command: list[str | Path] = [*sys.argv[1:]]
    if platform.machine() == "x86_64":
        package_kernels(FOLDER, list(LEVELS), command)
    else:
        run(*command)


if __name__ == "__main__":
    main()
