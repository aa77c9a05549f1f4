"""A page in a real browser that is clicked, typed into and measured, by Chrome's own protocol."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Page", "driven"]

SECONDS = 30.0
# How the protocol writes keys that are no letters, with their numbers.
KEYS = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39, "/": 191}


class Page:
    """One page of a browser without a window.

    Attributes
    ----------
    console:
        What it said there, errors and violations of its policy included.
    requests:
        Addresses that it asked for.
    """

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write, self._number, self._rest = read, write, 0, b""
        self._session: str | None = None
        self.console: list[str] = []
        self.requests: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._next()
            if heard.get("id") == self._number:
                assert "error" not in heard, heard["error"]
                result: dict[str, Any] = heard["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], SECONDS)
            assert ready, "the browser says nothing"
            self._rest += os.read(self._read, 1 << 20)
        line, _, self._rest = self._rest.partition(b"\0")
        heard: dict[str, Any] = json.loads(line)
        self._note(heard.get("method", ""), heard.get("params", {}))
        return heard

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.console.append(json.dumps(params["exceptionDetails"])[:2000])
        elif method == "Runtime.consoleAPICalled":
            self.console.append(json.dumps(params["args"])[:2000])
        elif method == "Log.entryAdded":
            self.console.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded = True

    def open(
        self, address: str, *, width: int = 1280, height: int = 1000, dark: bool = False
    ) -> None:
        """Load an address in a window of a size, in light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.media(dark=dark)
        self._loaded = False
        self.call("Page.navigate", url="about:blank")
        while not self._loaded:
            self._next()
        self._loaded = False
        self.call("Page.navigate", url=address)
        while not self._loaded:
            self._next()

    def media(self, *, dark: bool = False, kind: str = "") -> None:
        """Show the page for the screen or for paper, in light or dark."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=kind, features=[scheme])

    def ask(self, expression: str) -> Any:
        """Value of a JavaScript expression, awaited where it is a promise."""
        told = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + SECONDS
        while not self.ask(f"Boolean({expression})"):
            assert time.monotonic() < end, f"never true: {expression}"
            self.ask("new Promise(requestAnimationFrame)")

    def click(self, selector: str) -> None:
        """Press the mouse in the middle of the first element of a selector."""
        self.ask(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        x, y = self.ask(
            f"(() => {{ const b = document.querySelector({selector!r}).getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, x, y)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Move or press the mouse somewhere in the window."""
        button = "none" if kind == "mouseMoved" and "button" not in more else "left"
        held = {"type": kind, "x": x, "y": y, "button": button, "clickCount": 1, **more}
        self.call("Input.dispatchMouseEvent", **held)

    def type(self, text: str) -> None:
        """Put text where the cursor is."""
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press and release one key."""
        told: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0]))}
        if key == "Enter":
            told["text"] = "\r"
        elif len(key) == 1:
            told["text"] = key
        self.call("Input.dispatchKeyEvent", type="keyDown", **told)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Save what is seen, or the whole page, as PNG."""
        told = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(told["data"]))

    def without_scripts(self) -> None:
        """Load pages as a browser does that runs no scripts."""
        self.call("Emulation.setScriptExecutionDisabled", value=True)


@contextmanager
def driven(program: str) -> Iterator[Page]:
    """A page of a fresh browser; ``program`` is its path."""
    theirs, ours = os.pipe()
    from_them, to_us = os.pipe()
    profile = tempfile.mkdtemp(prefix="weald-chromium-")
    arguments = [
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *("--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe"),
        f"--user-data-dir={profile}",
    ]
    # The protocol is spoken on descriptors 3 and 4.
    script = f'exec "$@" 3<&{theirs} 4>&{to_us}'
    browser = subprocess.Popen(
        ["bash", "-c", script, "chromium", program, *arguments],
        pass_fds=(theirs, to_us),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    os.close(to_us)
    try:
        yield Page(from_them, ours)
    finally:
        os.close(ours)
        os.close(from_them)
        browser.kill()
        browser.wait()
        shutil.rmtree(profile, ignore_errors=True)
