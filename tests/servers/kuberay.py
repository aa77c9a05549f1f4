"""What KubeRay's operator takes: its custom resources, fetched once as the Go module they are in.

``python -m tests.servers.kuberay`` fetches them where they are missing; tests only look for them.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.servers.cache import cache_folder

MODULE, VERSION = "github.com/ray-project/kuberay/ray-operator", "v1.5.0"


def custom_resource(plural: str) -> Path | None:
    """Return the definition of a resource, such as ``rayjobs``, or None where it is not there."""
    file = _kept() / f"ray.io_{plural}.yaml"
    return file if file.exists() else None


def fetch() -> str:
    """Have Go fetch them for this account; return what there is to say."""
    go = shutil.which("go")
    if go is None:
        return "go is not on the PATH; the tests of the chart of fits will be skipped"
    kept = _kept()
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        environment = {**os.environ, "GOPATH": f"{folder}/path", "GOFLAGS": "-modcacherw"}
        argv = [go, "mod", "download", "-json", f"{MODULE}@{VERSION}"]
        done = subprocess.run(
            argv, env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            return f"Go could not fetch KubeRay; tests of its chart will be skipped\n{done.stderr}"
        definitions = Path(json.loads(done.stdout)["Dir"]) / "config" / "crd" / "bases"
        made = Path(folder) / "definitions"
        shutil.copytree(definitions, made)
        shutil.rmtree(kept, ignore_errors=True)
        made.replace(kept)
    return f"fetched KubeRay's resources {VERSION}"


def _kept() -> Path:
    return cache_folder() / f"kuberay-{VERSION}"


if __name__ == "__main__" and custom_resource("rayjobs") is None:
    sys.stderr.write(f"servers: {fetch()}\n")
