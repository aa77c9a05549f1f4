"""The real ``weald run``, killed: a process of its own from the first import to the last flush."""

import json
import os
import signal
import subprocess
import sys

import msgspec

from tests.crash.forked import PATIENCE_SECONDS, Run
from weald.storage.sql.failpoints import VARIABLE

__all__ = ["begun", "commanded"]


def commanded(run: Run, order: str, kill_after: float | None = None) -> bool:
    """Run the stream by ``weald run`` until it ends or is killed; see `forked.forked`."""
    process = begun(run, order)
    try:
        status = process.wait(PATIENCE_SECONDS if kill_after is None else kill_after)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
        if kill_after is None:
            status = 1
    if status not in {0, -signal.SIGKILL}:
        tail = run.log.read_text(errors="replace")[-3000:]
        raise RuntimeError(f"weald run left with {status}:\n{tail}")
    return status != 0


def begun(run: Run, order: str = "") -> subprocess.Popen[bytes]:
    """Start ``weald run`` with the run's settings, what it says going to the run's log."""
    config = run.log.with_suffix(".toml")
    config.write_text(_settings(run))
    with run.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "weald.cli.main", "run", "--verbose", "--config", str(config)],
            stdout=log,
            stderr=log,
            env={**os.environ, VARIABLE: order},
        )


def _settings(run: Run) -> str:
    """The run's settings as ``weald.toml`` has them; a string of JSON is one of TOML, too."""
    plan = run.plan
    fields = ", ".join(f"{{name = {json.dumps(field.name)}}}" for field in plan.schema.fields)
    sections: dict[str, dict[str, object]] = {
        "stream": msgspec.structs.asdict(plan.stream),
        "model": {"seed": plan.model.seed, "warmup_records": plan.model.warmup_records},
        "refinement": msgspec.structs.asdict(plan.refinement),
        "memory": msgspec.structs.asdict(plan.memory),
        "retention": msgspec.structs.asdict(plan.retention),
        "storage": {"url": run.database},
        "redis": {"enabled": False},
        "monitoring": {"enabled": False},
    }
    if run.kafka is not None:
        sections["kafka"] = msgspec.structs.asdict(run.kafka)
    lines = ["[schema]", f"fields = [{fields}]"]
    named = [(name, getattr(plan.schema, name)) for name in ("key", "time")]
    lines += [f"{name} = {json.dumps(path)}" for name, path in named if path is not None]
    for section, settings in sections.items():
        lines.append(f"[{section}]")
        lines += [
            f"{name} = {json.dumps(value)}" for name, value in settings.items() if value is not None
        ]
    return "\n".join(lines) + "\n"
