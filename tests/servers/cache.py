"""Where what tests have others fetch or build is kept between runs."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder of this account, which need not be there yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weald"
