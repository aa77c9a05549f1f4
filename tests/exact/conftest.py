"""Run the tests in ``interpreted`` in a second process, in which numba compiles nothing.

Path enumeration needs the production code as plain Python, and numba reads ``NUMBA_DISABLE_JIT``
once, when it is imported. That process is told test after test and sends every report back, so each
of them is counted, named and shown here like any other. To debug one, run it there directly:
``NUMBA_DISABLE_JIT=1 pytest tests/exact/interpreted -k NAME --pdb``.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parent / "interpreted"
# Ends of two pipes: where the second process reads its tests, and where it writes reports.
_CHANNEL = "WEALD_TEST_CHANNEL"
_RUN = pytest.StashKey["_Interpreted"]()


def _belongs(item: pytest.Item) -> bool:
    return _FOLDER in item.path.parents


class _Interpreted:
    """A pytest process that runs uncompiled what it is told, and reports through a pipe."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  (closed by stop)
        told, teller = os.pipe()
        reader, writer = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", _FOLDER],
            cwd=config.rootpath,
            env={**os.environ, "NUMBA_DISABLE_JIT": "1", _CHANNEL: f"{told} {writer}"},
            pass_fds=[told, writer],
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )
        os.close(told)
        os.close(writer)
        self._teller, self._pipe = os.fdopen(teller, "w"), os.fdopen(reader)

    def reports(self, item: pytest.Item, following: pytest.Item | None) -> list[pytest.TestReport]:
        """Run a test and return its reports; what ``following`` shares with it is kept for that.

        Raises OSError with all that the process wrote if it ended before.
        """
        found: list[pytest.TestReport] = []
        after = following.nodeid if following is not None else None
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps([item.nodeid, after]), file=self._teller, flush=True)
        while not (found and found[-1].when == "teardown"):
            line = self._pipe.readline()
            if not line:
                self._output.seek(0)
                raise OSError(f"the process ended:\n{self._output.read().decode()}")
            data = json.loads(line)
            if isinstance(data["longrepr"], list):  # a skipped test's, which JSON knows no tuple of
                data["longrepr"] = tuple(data["longrepr"])
            report = self._config.hook.pytest_report_from_serializable(
                config=self._config, data=data
            )
            found.append(report)
        return found

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):  # of what it did not live to read
            self._teller.close()
        self._pipe.close()
        self._output.close()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Let the second process run the tests that belong to it."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1" or not _belongs(item):
        return None
    stash = item.config.stash
    if _RUN not in stash:
        stash[_RUN] = _Interpreted(item.config)
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    following = nextitem if nextitem is not None and _belongs(nextitem) else None
    try:
        reports = stash[_RUN].reports(item, following)
    except OSError as error:
        # This test brought the process down; the next one starts another.
        stash[_RUN].stop()
        del stash[_RUN]
        reports = [pytest.TestReport(item.nodeid, item.location, {}, "failed", str(error), "call")]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """In the second process: run what the first one says."""
    channel = os.environ.get(_CHANNEL)
    if channel is None:
        return None
    items = {item.nodeid: item for item in session.items}
    with os.fdopen(int(channel.split()[0])) as told:
        for line in told:
            this, following = json.loads(line)
            item, after = items[this], items.get(following)
            item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
    return True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In the second process: send the report to the first."""
    channel = os.environ.get(_CHANNEL)
    if channel is not None:
        data = report._to_json() | {"$report_type": "TestReport"}
        os.write(int(channel.split()[1]), (json.dumps(data) + "\n").encode())


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave no process behind, also when the run was interrupted."""
    if _RUN in config.stash:
        config.stash[_RUN].stop()
