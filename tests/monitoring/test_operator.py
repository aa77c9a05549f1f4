"""An operator's morning: an alert fires in a real Prometheus, and what its runbook says ends it."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.monitoring.prometheus import RULES, Prometheus, configuration
from tests.servers.server import Server, free_port, wait_until

WEALD = (sys.executable, "-m", "weald.cli.main")
ALERT = "WealdWarmingUp"

CONFIGURATION = """
[stream]
name = "slow"
source = "stdin"
[schema]
fields = [{{ name = "x" }}, {{ name = "y" }}]
[redis]
enabled = false
[storage]
url = "sqlite:///weald.db"
[monitoring]
port = {port}
"""


def impatient_rules(folder: Path) -> Path:
    """Weald's own rules with every wait cut to seconds: a test has no half hours."""
    for path in RULES.parent.glob(RULES.name):
        text = re.sub(r"\[\d+m\]", "[3s]", path.read_text())
        text = re.sub(r"(for|interval): \d+[ms]", r"\1: 1s", text)
        (folder / path.name).write_text(text)
    return folder / "*.yaml"


@contextmanager
def running(folder: Path, records: int, *flags: str) -> Iterator[None]:
    """A ``weald run`` that has been given so many records, and waits for more."""
    lines = "".join(json.dumps({"x": i % 3, "y": i / 7}) + "\n" for i in range(records))
    with (folder / "weald.log").open("a") as log:
        process = subprocess.Popen(
            [*WEALD, "run", *flags], cwd=folder, stdin=subprocess.PIPE, stderr=log, text=True
        )
        try:
            assert process.stdin is not None
            process.stdin.write(lines)
            process.stdin.flush()
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
            if process.stdin is not None:
                process.stdin.close()


@pytest.mark.slow
@pytest.mark.timeout(600)  # on a busy machine the kernels alone take minutes to compile
def test_a_warm_up_that_does_not_fill(
    tmp_path: Path, start_prometheus: Callable[[str], Server]
) -> None:
    port = free_port()
    (tmp_path / "weald.toml").write_text(CONFIGURATION.format(port=port))
    described = json.loads(configuration(f"127.0.0.1:{port}"))
    (tmp_path / "rules").mkdir()
    described["rule_files"] = [str(impatient_rules(tmp_path / "rules"))]
    prometheus = Prometheus(start_prometheus(json.dumps(described)).port)

    def firing() -> bool:
        return bool(prometheus.query(f'ALERTS{{alertname="{ALERT}", alertstate="firing"}}'))

    with running(tmp_path, 30):
        wait_until(firing, "the alert", 180)
        # Look, says the runbook: `weald status` tells how many have come and how many are needed.
        told = subprocess.run(
            [*WEALD, "status"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert told.returncode == 4
        assert "warming up: 30 of 200 observations" in told.stderr
        assert "model.warmup_records=50" in told.stderr
    # Do: restart with a smaller model.warmup_records.
    with running(tmp_path, 30, "--set", "model.warmup_records=20"):
        wait_until(lambda: bool(prometheus.query("weald_observations == 30")), "its model", 400)
        wait_until(lambda: not firing(), "the end of the alert", 60)
