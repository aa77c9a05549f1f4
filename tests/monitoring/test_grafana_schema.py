"""The dashboards against Grafana's published types, by the TypeScript compiler.

No Grafana server can be installed from a package, so this, the linter's rules and the queries on a
real Prometheus are what the dashboards are checked by. The types cover the envelope of a dashboard
and of its panels; the options of each kind of panel are free-form in them.
"""

import copy
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers.cache import cache_folder
from tests.servers.fixtures import taking_part
from tests.servers.server import MissingServerError
from weald.monitoring.dashboards import DASHBOARDS

PACKAGE = Path(__file__).parent / "grafana" / "package.json"
Json = dict[str, Any]
Complaints = Callable[[Json], str]


def installed() -> Path:
    """Return a folder with the compiler and the types, having npm fetch them the first time."""
    wanted = json.loads(PACKAGE.read_text())["dependencies"]
    cache = cache_folder()
    folder = cache / f"grafana-schema-{wanted['@grafana/schema']}"
    if (folder / "node_modules").is_dir():
        return folder
    npm = shutil.which("npm")
    if npm is None:
        raise MissingServerError("npm is not on the PATH, to fetch @grafana/schema")
    cache.mkdir(parents=True, exist_ok=True)
    # Two runs may fetch at once; each fills a folder of its own and the first to end is kept.
    with tempfile.TemporaryDirectory(dir=cache) as fetched:
        types = Path(fetched) / "types"
        types.mkdir()
        shutil.copy(PACKAGE, types)
        argv = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
        done = subprocess.run(argv, cwd=types, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise MissingServerError(f"npm could not fetch @grafana/schema:\n{done.stderr[-500:]}")
        try:
            types.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    return folder


@pytest.fixture(scope="module")
def complaints(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Complaints:
    """Compile a dashboard as Grafana's type; return what the compiler has to say."""
    with taking_part(request.config, "Grafana's schema"):
        packages = installed() / "node_modules"
    folder = tmp_path_factory.mktemp("schema")
    (folder / "node_modules").symlink_to(packages)

    def check(board: Json) -> str:
        board = copy.deepcopy(board)
        for mark in board["annotations"]["list"]:
            # What belongs to Prometheus, and not to the envelope that the types describe.
            del mark["titleFormat"], mark["textFormat"], mark["target"]["expr"]
            del mark["target"]["interval"]
        # The enumerations in our JSON; the compiler does not take a text for one.
        text = json.dumps(board).replace('"mode": "absolute"', '"mode": ThresholdsMode.Absolute')
        text = text.replace('"type": "value"', '"type": MappingType.ValueToText')
        source = "import { Dashboard, MappingType, ThresholdsMode } from '@grafana/schema';\n"
        (folder / "board.ts").write_text(f"{source}export const board: Dashboard = {text};\n")
        argv: list[str | Path] = [
            *("node", packages / "typescript" / "bin" / "tsc", "--noEmit", "--strict"),
            *("--skipLibCheck", "--moduleResolution", "node", "--target", "es2020", "board.ts"),
        ]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == (done.stdout == ""), done.stdout + done.stderr
        return done.stdout

    return check


@pytest.mark.parametrize("name", DASHBOARDS)
def test_dashboard_is_of_grafanas_type(name: str, complaints: Complaints) -> None:
    assert complaints(DASHBOARDS[name].json()) == ""


def test_the_check_does_check(complaints: Complaints) -> None:
    good = DASHBOARDS["model.json"].json()
    unknown, mistyped = copy.deepcopy(good), copy.deepcopy(good)
    unknown["panels"][1]["colour"] = "blue"
    mistyped["refresh"] = 30
    assert "'colour' does not exist" in complaints(unknown).replace('"', "")
    assert "'number' is not assignable" in complaints(mistyped)
