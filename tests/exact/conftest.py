"""Run the tests in ``interpreted`` in a second process, in which numba compiles nothing.

Path enumeration needs the production code as plain Python, and numba reads ``NUMBA_DISABLE_JIT``
once, when it is imported. That process runs the selected tests and sends every report back, so each
of them is counted, named and shown here like any other. To debug one, run it there directly:
``NUMBA_DISABLE_JIT=1 pytest tests/exact/interpreted -k NAME --pdb``.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parent / "interpreted"
_CHANNEL = "WEALD_TEST_REPORTS"
_RUN = pytest.StashKey["_Interpreted"]()


def _belongs(item: pytest.Item) -> bool:
    return _FOLDER in item.path.parents


class _Interpreted:
    """A pytest process that runs ``items`` uncompiled and reports through a pipe."""

    def __init__(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        self._config = config
        self._received: dict[str, list[pytest.TestReport]] = defaultdict(list)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  (closed by stop)
        reader, writer = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(i.nodeid for i in items)],
            cwd=config.rootpath,
            env={**os.environ, "NUMBA_DISABLE_JIT": "1", _CHANNEL: str(writer)},
            pass_fds=[writer],
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )
        os.close(writer)
        self._pipe = os.fdopen(reader)

    def reports(self, nodeid: str) -> list[pytest.TestReport]:
        """Wait for one test's reports; the last of them is its teardown's.

        Raises EOFError with all that the process wrote if it ended before.
        """
        mine = self._received[nodeid]
        while not (mine and mine[-1].when == "teardown"):
            line = self._pipe.readline()
            if not line:
                self._output.seek(0)
                raise EOFError(f"the process ended:\n{self._output.read().decode()}")
            report = self._config.hook.pytest_report_from_serializable(
                config=self._config, data=json.loads(line)
            )
            self._received[report.nodeid].append(report)
        return mine

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._pipe.close()
        self._output.close()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Let the second process run the tests that belong to it."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1" or not _belongs(item):
        return None
    stash, items = item.config.stash, item.session.items
    if _RUN not in stash:
        rest = [other for other in items[items.index(item) :] if _belongs(other)]
        stash[_RUN] = _Interpreted(item.config, rest)
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    try:
        reports = stash[_RUN].reports(item.nodeid)
    except EOFError as error:
        # This test brought the process down; the next one starts another.
        stash[_RUN].stop()
        del stash[_RUN]
        reports = [pytest.TestReport(item.nodeid, item.location, {}, "failed", str(error), "call")]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In the second process: send the report to the first."""
    channel = os.environ.get(_CHANNEL)
    if channel is not None:
        data = report._to_json() | {"$report_type": "TestReport"}
        os.write(int(channel), (json.dumps(data) + "\n").encode())


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave no process behind, also when the run was interrupted."""
    if _RUN in config.stash:
        config.stash[_RUN].stop()
