"""Where the real data sets lie: the folder that ``WEALD_DATA`` names, else ``../shared/data``."""

import os
from pathlib import Path

__all__ = ["DATA"]

DATA = Path(os.environ.get("WEALD_DATA", "../shared/data"))
