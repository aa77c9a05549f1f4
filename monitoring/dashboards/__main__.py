"""``python -m weald.monitoring.dashboards``: write the JSON of every dashboard beside its code."""

import json
import sys
from pathlib import Path

from . import DASHBOARDS


def main() -> None:
    """Write every file and name it on standard error."""
    for name, dashboard in DASHBOARDS.items():
        path = Path(__file__).with_name(name)
        path.write_text(json.dumps(dashboard.json(), indent=2) + "\n")
        sys.stderr.write(f"wrote {path}\n")


if __name__ == "__main__":
    main()
