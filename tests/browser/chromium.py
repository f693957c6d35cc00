"""A headless Chromium that is spoken to over two pipes: no driver, no port, no other package.

The protocol is the browser's own (DevTools): messages are JSON, each ends with a zero byte; the browser reads from
descriptor 3 and writes to descriptor 4.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ("BROWSER", "Browser", "browser")

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

# No sandbox, since tests may run as root; nothing of what a browser asks the network for by itself.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-dev-shm-usage", "--disable-default-apps", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 60.0  # seconds that the browser may take for one answer on a busy machine

Message = dict[str, object]


class Browser:
    """One page of a browser."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._held = b""
        self._ids = itertools.count(1)
        self._session: str | None = None
        self.events: list[Message] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = str(self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        for domain in ("Page", "Network", "Log", "Runtime", "Accessibility"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: object) -> Message:
        """Return the browser's answer. What else it says meanwhile is kept in `events`."""
        number = next(self._ids)
        message: Message = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == number:
                assert "error" not in said, said
                result = said["result"]
                assert isinstance(result, dict)
                return result
            self.events.append(said)

    def _next(self) -> Message:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._held:
            ready = select.select([self._reading], [], [], max(0.0, end - time.monotonic()))[0]
            assert ready, "the browser does not answer"
            read = os.read(self._reading, 1 << 20)
            assert read, "the browser has gone"
            self._held += read
        said, _, self._held = self._held.partition(b"\0")
        return dict(json.loads(said))

    def open(self, url: str, *, width: int = 1000, height: int = 1400, scheme: str = "light") -> None:
        """Show a page at a width in pixels and in a color scheme, and wait until it is loaded."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.ask("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def value(self, expression: str) -> object:
        """Return the value of a JavaScript expression in the page. What the page forbids to itself does not count here."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"]
        assert isinstance(result, dict)
        return result.get("value")

    def picture(self, *, whole: bool = False) -> bytes:
        """Return what is to be seen, or the whole page, as PNG."""
        data = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        return base64.b64decode(str(data))

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since `open`, in order."""
        sent = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [str(params["request"]["url"]) for params in sent if isinstance(params, dict)]


@contextmanager
def browser(profile: Path, *flags: str) -> Generator[Browser, None, None]:
    """Start a browser with an empty profile, and end it."""
    assert BROWSER
    theirs_reads, ours_writes = os.pipe()
    ours_reads, theirs_writes = os.pipe()
    shell = f'exec "$@" 3<&{theirs_reads} 4>&{theirs_writes}'
    command = ("sh", "-c", shell, "sh", BROWSER, *FLAGS, f"--user-data-dir={profile}", *flags)
    running = subprocess.Popen(
        command, pass_fds=(theirs_reads, theirs_writes), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(theirs_reads)
    os.close(theirs_writes)
    try:
        yield Browser(ours_reads, ours_writes)
    finally:
        running.terminate()
        running.wait(timeout=30)
        os.close(ours_reads)
        os.close(ours_writes)
