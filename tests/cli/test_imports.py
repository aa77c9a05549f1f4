"""What each command may load: a person waits for every module before the first word."""

import json
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from .conftest import type_command

PROGRAM = """
import sys
from weald.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(*{name.partition(".")[0] for name in sys.modules}, sep="\\n", file=sys.stderr)
"""
INSTALLED = packages_distributions().keys() - {"weald", "_distutils_hack", "_virtualenv"}

ANY = {"annotated_doc", "shellingham", "typer"}
SETTINGS = ANY | {"msgspec", "typing_extensions"}
SQL = SETTINGS | {"greenlet", "numpy", "sqlalchemy"}
MIGRATIONS = SQL | {"alembic", "mako", "markupsafe", "pygments"}
# What Numba brings is its own affair.
NUMBA = {"_cffi_backend", "cffi", "charset_normalizer", "llvmlite", "numba", "pycparser", "yaml"}
KERNELS = SETTINGS | NUMBA | {"numpy", "scipy"}

MAY_LOAD = {
    "--help": ANY,
    "run --help": ANY,
    "worker --help": ANY,
    "serve --help": ANY,
    "status": SETTINGS,
    "config show": SETTINGS,
    "lineage": SQL,
    "assign k0": SQL,
    "export assignments": SQL,
    "snapshot list": SQL,
    "dlq list": SQL,
    "db current": MIGRATIONS,
    "clusters": SQL | KERNELS,
    "cluster CLUSTER": SQL | KERNELS,
    # Parts are told by what sets them apart.
    "tree CLUSTER": SQL | KERNELS,
    "assign k0 --top 1": SQL | KERNELS,
    "export clusters": SQL | KERNELS,
    "fit POINTS --iterations 1": KERNELS,
}


@pytest.mark.parametrize("command", MAY_LOAD)
def test_a_command_loads_what_it_uses(command: str, filled: Path, tmp_path: Path) -> None:
    points = tmp_path / "points.csv"
    points.write_text("x,y\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(20)))
    shown = type_command("clusters", "--config", str(filled), "--limit", "1", "-o", "json")
    cluster = str(json.loads(shown.out)[0]["cluster"])
    words = command.replace("POINTS", str(points)).replace("CLUSTER", cluster).split()
    argv = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(
        argv, cwd=filled, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.split()) & INSTALLED
    assert loaded <= MAY_LOAD[command]
    assert loaded >= ANY, "or nothing was told"
