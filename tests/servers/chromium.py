"""A real browser without a window: what a page looks like, and what it says on its console."""

import html
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.servers.server import MissingServerError

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 90.0
CONSOLE = re.compile(r"CONSOLE[^\]]*\]\s*(.*)")
# Its window is never narrower than this; a narrower page is shown in a frame.
NARROWEST_WINDOW = 600


@dataclass(frozen=True)
class Seen:
    """What a page said on its console, and a picture of it."""

    console: list[str]
    picture: Path


@dataclass(frozen=True)
class Browser:
    """A Chromium on this machine; each look starts a fresh one."""

    program: str
    version: str

    def look(
        self, address: str, folder: Path, *, width: int = 1200, height: int = 1600, dark: bool
    ) -> Seen:
        """Load a page at a size, in light or dark.

        ``address`` is a URL; the picture and the profile lie in ``folder``.
        """
        frame = folder / "frame.html"
        frame.write_text(
            f'<!doctype html><link rel="icon" href="data:,"><body style="margin:0">'
            f'<iframe src="{html.escape(address)}" style="border:0;width:{width}px;'
            f'height:{height}px"></iframe>'
        )
        picture = folder / f"{width}-{'dark' if dark else 'light'}.png"
        # 0 is dark, 1 is light.
        scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        window = f"--window-size={max(width, NARROWEST_WINDOW)},{height}"
        console = self._run(folder, scheme, window, f"--screenshot={picture}", frame.as_uri())
        return Seen(console, picture)

    def _run(self, folder: Path, *arguments: str) -> list[str]:
        done = subprocess.run(
            [
                self.program,
                *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *("--disable-dev-shm-usage", "--no-first-run", "--enable-logging=stderr"),
                f"--user-data-dir={folder / 'profile'}",
                *arguments,
            ],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return CONSOLE.findall(done.stderr)


def browser() -> Browser:
    """The browser of this machine; raises MissingServerError where there is none."""
    program = next((path for path in map(shutil.which, NAMES) if path), None)
    if program is None:
        raise MissingServerError("chromium is not on the PATH")
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"\d+(\.\d+)+", told.stdout)
    return Browser(program, found.group() if found else "unknown")
