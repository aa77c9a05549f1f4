"""Helm, which renders the chart: from the PATH, or built once from its Go module.

``python -m tests.servers.helm`` builds it where it is missing; tests only look for it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.servers.cache import cache_folder

VERSION = "v3.22.0"


def helm_program() -> str | None:
    """Return the program, or None where there is none."""
    return shutil.which("helm") or shutil.which(_kept())


def build() -> str:
    """Have Go build Helm for this account; return what there is to say."""
    go = shutil.which("go")
    if go is None:
        return "neither helm nor go is on the PATH; the tests of the chart will be skipped"
    kept = _kept()
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        environment = {
            **os.environ,
            "GOBIN": folder,
            "GOPATH": f"{folder}/path",
            "GOCACHE": f"{folder}/cache",
            "GOFLAGS": "-modcacherw",
        }
        # It renders charts as well unoptimised, and takes a third less time to build.
        flags = ["-ldflags=-s -w", "-gcflags=all=-N -l"]
        argv = [go, "install", *flags, f"helm.sh/helm/v3/cmd/helm@{VERSION}"]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"Go could not build helm; the tests of the chart will be skipped\n{done.stderr}"
        (Path(folder) / "helm").replace(kept)
    return f"built helm {VERSION}"


def _kept() -> Path:
    return cache_folder() / f"helm-{VERSION}" / "helm"


if __name__ == "__main__" and helm_program() is None:
    sys.stderr.write(f"servers: {build()}\n")
