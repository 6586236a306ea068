"""A headless browser that opens a page, looks at it as a person would, and says what is wrong with it.

Speaks Chrome's DevTools protocol (https://chromedevtools.github.io/devtools-protocol/) over two pipes, so that tests
need a browser and nothing else. As a program, it takes a picture:
`python -m tests.sim.browser PAGE PICTURE [WIDTH HEIGHT [TOP]]`.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CHOSEN = "BNW_TEST_BROWSER"
"""Environment variable that names the browser to be used."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 60.0
"""Seconds for an answer. A browser starts in one; a machine may be busy."""
FIRST_FREE = 10
"""The browser reads commands from 3 and writes to 4; our own ends are kept out of the way."""
OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)


def find_browser() -> str | None:
    """Chromium or Chrome, if this machine has one."""
    if chosen := os.environ.get(CHOSEN):
        return chosen
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One tab. `complaints` are what the console says, exceptions, and what the page asked the network for."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.complaints: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, parameters, self._session, self._hear)

    def open(self, file: Path, *, width: int, height: int = 900, dark: bool = False, scale: float = 1) -> None:
        """Open a file in a window of this size, and return when all of it is there."""
        self.complaints.clear()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=file.absolute().as_uri())
        end = time.monotonic() + PATIENCE
        while self.ask("document.readyState + ' ' + location.protocol") != "complete file:":
            assert time.monotonic() < end, "the page does not end loading"

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON would have it."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self, *, top: int = 0, height: int = 20_000) -> bytes:
        """A PNG of the whole page, or of a part of it."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": top, "width": size["width"], "height": min(size["height"] - top, height), "scale": 1}
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(answer["data"])

    def _hear(self, event: dict[str, Any]) -> None:
        method, said = event["method"], event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(f"exception: {said['exceptionDetails']['text']}")
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console: {said['args']}")
        elif method == "Log.entryAdded":
            self.complaints.append(f"log: {said['entry']['text']}")
        elif method == "Network.requestWillBeSent" and said["request"]["url"] != said["documentURL"]:
            self.complaints.append(f"request: {said['request']['url']}")


class Browser:
    """A browser process, with its commands and answers each ended by a zero byte."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._buffer = b""
        self._number = 0

    def new_page(self) -> Page:
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        return Page(self, session)

    def call(self, method: str, parameters: dict[str, Any], session: str | None = None, hear: Any = None) -> Any:
        """Ask for something and return the answer. `hear` is told of what happens meanwhile in the same session."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            if "method" in answer and hear is not None and answer.get("sessionId") == session:
                hear(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], PATIENCE)
            data = os.read(self._answers, 1 << 20) if ready else b""
            assert data, "the browser has ended" if ready else "the browser does not answer"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


@contextmanager
def browser(program: str) -> Iterator[Browser]:
    """A browser with a profile of its own. Nothing is left of either."""
    home = tempfile.mkdtemp(prefix="bnw-browser-")
    their_in, our_out = _pipe()
    our_in, their_out = _pipe()
    arguments = [program, *OPTIONS, f"--user-data-dir={home}", "about:blank"]
    if os.geteuid() == 0:
        # Chrome's own sandbox is not to be had for root; the page is ours and has no script.
        arguments.insert(1, "--no-sandbox")
    process = os.posix_spawn(
        program,
        arguments,
        {**os.environ, "HOME": home},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, their_in, 3),
            (os.POSIX_SPAWN_DUP2, their_out, 4),
        ],
        setpgroup=0,
    )
    os.close(their_in)
    os.close(their_out)
    try:
        yield Browser(our_out, our_in)
    finally:
        os.close(our_out)
        os.close(our_in)
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        shutil.rmtree(home, ignore_errors=True)


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]


def main() -> None:
    page, picture, *size = sys.argv[1:]
    program = find_browser()
    assert program is not None, "no browser here"
    width, height, top = (*map(int, size), *(1000, 1400, 0)[len(size) :])
    with browser(program) as running:
        tab = running.new_page()
        tab.open(Path(page), width=width, dark="dark" in picture)
        Path(picture).write_bytes(tab.picture(top=top, height=height))


if __name__ == "__main__":
    main()
