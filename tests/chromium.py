"""Headless Chromium, spoken to through a pipe: what a page says and looks like."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
needed = pytest.mark.skipif(
    PROGRAM is None, reason="chromium is not installed; .ci/chromium does it on Debian"
)

# Chromium reads commands from descriptor 3 and answers on 4.
_START = "import os, sys; r, w = map(int, sys.argv[1:3]); os.dup2(r, 3); os.dup2(w, 4); "
_START += "os.execv(sys.argv[3], sys.argv[3:])"
_CODES = {"Escape": 27, " ": 32, "PageDown": 34, "End": 35, "Home": 36}
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def _is_loaded(event: dict, loader: str) -> bool:
    """Whether an event says that the page of this navigation is loaded."""
    about = event.get("params", {})
    state = (event.get("method"), about.get("name"), about.get("loaderId"))
    return state == ("Page.lifecycleEvent", "load", loader)


class Chromium:
    """A browser with one page; use it in a `with` block."""

    def __init__(self, profile: Path) -> None:
        assert PROGRAM is not None
        pipes = [*os.pipe(), *os.pipe()]
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in pipes]
        for end in pipes:
            os.close(end)
        theirs_in, self._out, self._in, theirs_out = high
        flags = (*_FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}")
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(theirs_in), str(theirs_out), PROGRAM, *flags],
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def __enter__(self) -> Chromium:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session = None
        with contextlib.suppress(OSError, EOFError):
            self.call("Browser.close")
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def call(self, method: str, **params: object) -> dict:
        self._number += 1
        request = {"id": self._number, "method": method, "params": params}
        if self._session:
            request["sessionId"] = self._session
        os.write(self._out, json.dumps(request).encode() + b"\0")
        for message in self._messages():
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)
        raise EOFError("chromium has ended")

    def _messages(self) -> Iterator[dict]:
        while True:
            while b"\0" in self._buffer:
                line, self._buffer = self._buffer.split(b"\0", 1)
                yield json.loads(line)
            read = os.read(self._in, 1 << 16)
            if not read:
                raise EOFError("chromium has ended")
            self._buffer += read

    def _noted(self) -> Iterator[dict]:
        """Yield the messages that come from now on, and note each as an event."""
        for message in self._messages():
            self.events.append(message)
            yield message

    def open(self, page: Path | str, width: int, *, dark: bool = False) -> None:
        """Show a page or an address at a width and wait until it is loaded."""
        self.call("Page.navigate", url="about:blank")  # what a page asked for last ends here
        self.events.clear()
        self._emulate(width)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        address = page if isinstance(page, str) else page.resolve().as_uri()
        loader = self.call("Page.navigate", url=address)["loaderId"]
        waiting = itertools.chain(tuple(self.events), self._noted())
        next(event for event in waiting if _is_loaded(event, loader))
        assert self.ask("document.readyState") == "complete"

    def resize(self, width: int) -> None:
        """Show the page at another width, and wait until it has been laid out anew."""
        self._emulate(width)
        self.painted()

    def painted(self) -> None:
        """Wait until the page is on screen as it is now."""
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def _emulate(self, width: int) -> None:
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)

    def press(self, *keys: str) -> None:
        """Press keys one right after the other."""
        for key in keys:
            text: dict = {"text": key} if len(key) == 1 else {}
            if key in _CODES:  # what the browser itself does with a key, it does by its number
                text["windowsVirtualKeyCode"] = _CODES[key]
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def wait_for(self, expression: str) -> object:
        """Wait until an expression on the page is true, and return its value."""
        check = f"""new Promise(done => {{ const look = () => {{ const v = ({expression});
            v ? done(v) : setTimeout(look, 10); }}; look(); }})"""
        return self.ask(check)

    def picture(self, path: Path) -> None:
        """Write what is seen as PNG."""
        shot = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    def ask(self, expression: str) -> object:
        """The value of an expression on the page; of a promise what it gives."""
        options = {"returnByValue": True, "awaitPromise": True}
        result = self.call("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def complaints(self) -> list[dict]:
        """Messages to the console since the page was opened."""
        kinds = {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"}
        return [event for event in self.events if event.get("method") in kinds]

    def requested(self) -> list[str]:
        """Every address that the page asked for, itself included."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
