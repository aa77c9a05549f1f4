"""Fixtures for every test: real servers, and randomness that the test's own name decides."""

import hashlib
import os
import sys

import hypothesis
import numpy as np
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from tests.servers.kernels import shared_kernels

pytest_plugins = ["tests.servers.fixtures"]

# Before anything loads the compiler, here and in the processes that tests start.
os.environ.update(shared_kernels())
# Bytecode is kept, whatever the environment says: each process would compile everything anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No deadline: the first example may compile a kernel. Derandomised: a run that passed passes again.
hypothesis.settings.register_profile("weald", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("weald")


# Seconds that a test takes where that is far from the others' half a second: it starts services and
# kills them, compiles much, or follows many paths.
SECONDS = {
    "tests/cli/fit/": 4.0,
    "tests/cli/look/": 5.0,
    "tests/crash/": 90.0,
    "tests/docs/": 2.0,
    "tests/e2e/": 15.0,
    "tests/exact/interpreted/test_shards.py": 8.0,
    "tests/exact/interpreted/test_registry.py": 3.0,
    "tests/exact/test_compiled.py": 2.0,
    "tests/mcmc/offline/test_fit.py": 3.0,
    "tests/mcmc/sharded/": 10.0,
    "tests/monitoring/test_operator.py": 15.0,
    "tests/monitoring/test_running_service.py": 15.0,
    "tests/simulation/": 2.0,
    "tests/storage/test_migrations.py": 1.0,
    "tests/stream/estimators/": 2.0,
    "tests/test_packaging.py": 20.0,
    "tests/treecore/family/test_conformance.py": 1.0,
    "tests/treecore/test_compile.py": 6.0,
}


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # the library is untyped
    """Keeps a file's tests in one of the processes that share the work.

    They share kernels that were just compiled, and servers. Interpreted tests share nothing: each
    goes wherever there is time. What takes longest comes first: a file of one long test would run
    last, and alone.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        longest = max(self.workqueue, key=self._seconds)
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)

    def _seconds(self, scope: str) -> float:
        each = next((s for place, s in SECONDS.items() if scope.startswith(place)), 0.5)
        return each * len(self.workqueue[scope])

    def _split_scope(self, nodeid: str) -> str:
        interpreted = nodeid.startswith("tests/exact/interpreted/")
        return nodeid if interpreted else super()._split_scope(nodeid)


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
