"""Starting, killing and awaiting runners."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from tests.crash.runner import STACKS, Orders

ROOT = Path(__file__).parents[2]


class Runner:
    """One runner process; its standard error is kept beside its orders."""

    def __init__(self, orders: Orders, folder: Path, name: str) -> None:
        file = folder / f"{name}.json"
        file.write_bytes(msgspec.json.encode(orders))
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.runner", str(file)],
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )

    def says(self, text: str) -> bool:
        """Whether the text is in the log."""
        return text in self.log.read_text(errors="replace")

    def ended(self, seconds: float = 240.0) -> int:
        """Wait for the end and tell the exit status."""
        return self.process.wait(timeout=seconds)

    def stop(self) -> None:
        """Ask for an orderly end and see that it comes."""
        self.process.send_signal(signal.SIGTERM)
        assert self.ended(60.0) == 0, self.log.read_text()

    def last_words(self) -> str:
        """The end of its log and, where it still runs, what each of its threads is doing."""
        if self.process.poll() is None:
            self.process.send_signal(STACKS)
            time.sleep(1.0)  # Nothing says when it has written them; the test has failed already.
        return f"{self.log.name}: ...{self.log.read_text(errors='replace')[-8_000:]}"

    def kill(self) -> None:
        """End it at once, wherever it is."""
        self.process.kill()
        self.ended()


@contextmanager
def runners(folder: Path) -> Iterator[Callable[..., Runner]]:
    """Start runners that do not outlive the test: ``start(orders, name)``."""
    with ExitStack() as running:

        def start(orders: Orders, name: str = "runner") -> Runner:
            runner = Runner(orders, folder, name)
            running.callback(runner.process.wait)
            running.callback(runner.process.kill)
            return runner

        yield start


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 240.0) -> None:
    """Wait for a condition, and say which one never came."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s in vain until {what}"
        time.sleep(0.05)
