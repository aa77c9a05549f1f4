"""Fixtures for every test: real servers, and randomness that the test's own name decides."""

import hashlib

import hypothesis
import numpy as np
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

pytest_plugins = ["tests.servers.fixtures"]

# No deadline: the first example may compile a kernel. Derandomised: a run that passed passes again.
hypothesis.settings.register_profile("weald", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("weald")


# Seconds that a test takes where that is far from the others' half a second: it starts services and
# kills them, or compiles in a folder of its own.
SECONDS = {
    "tests/crash/": 60.0,
    "tests/e2e/": 15.0,
    "tests/monitoring/test_operator.py": 15.0,
    "tests/monitoring/test_running_service.py": 15.0,
    "tests/test_packaging.py": 15.0,
    "tests/treecore/test_compile.py": 15.0,
}


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # the library is untyped
    """Keeps a file's tests, and all interpreted ones, in one of the processes that share the work.

    They share kernels that were just compiled, servers, and the second process of tests/exact. What
    takes longest comes first: a file of one long test would run last, and alone.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        longest = max(self.workqueue, key=self._seconds)
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)

    def _seconds(self, scope: str) -> float:
        each = next((s for place, s in SECONDS.items() if scope.startswith(place)), 0.5)
        return each * len(self.workqueue[scope])

    def _split_scope(self, nodeid: str) -> str:
        interpreted = "tests/exact/interpreted/"
        return interpreted if nodeid.startswith(interpreted) else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A seed below 2**63 that belongs to this test, the same in every run.

    It stays the same when the test's file moves within its room.
    """
    path, _, test = request.node.nodeid.partition("::")
    *folders, file = path.split("/")
    identity = "/".join((*folders[:2], f"{file}::{test}"))
    return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], "big") >> 1


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """A random generator that belongs to this test, the same in every run."""
    return np.random.default_rng(seed)
