"""Another process that compiles what a first fit will need."""

import re
import subprocess
from pathlib import Path

from weald.cli.fit.compiling import small_fit


def test_the_small_fit_runs(tmp_path: Path) -> None:
    """Nobody hears whether it does: a first fit would only take twice as long."""
    done = subprocess.run(small_fit(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^clusters +3$", done.stdout, re.MULTILINE)
