"""Prometheus from the PATH, scraping what a test tells it to, and its checker promtool."""

import http.client
import re
import shutil
import subprocess
from pathlib import Path

from tests.servers.server import MissingServerError, Server, free_port


def prometheus_server(folder: Path, configuration: str) -> Server:
    """Describe a Prometheus with this configuration (YAML text), not yet started."""
    program = _program("prometheus")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"version (\d\S+)", said.stdout + said.stderr)
    (folder / "prometheus.yml").write_text(configuration)
    port = free_port()
    return Server(
        name="Prometheus",
        version=found.group(1).partition("+")[0] if found else "of unknown version",
        argv=[
            program,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        port=port,
        folder=folder,
        ready=lambda: _answers(port),
    )


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run promtool; the caller looks at its exit status and its output."""
    return subprocess.run(
        [_program("promtool"), *arguments], capture_output=True, text=True, check=False
    )


def _program(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        raise MissingServerError(f"{name} is not on the PATH (Debian package prometheus)")
    return program


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/-/ready")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()
