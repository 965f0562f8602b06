"""Drive a page in headless Chromium as a person does: real keys, real files, and what a screen reader is told.

The fixture `browser` starts one browser for all tests (Debian's package: apt-get install chromium). Its debugging
protocol (https://chromedevtools.github.io/devtools-protocol/) is spoken over a pipe.
"""

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
_OPTIONS = ("headless", "no-sandbox", "disable-gpu", "no-first-run", "disable-background-networking", "disable-sync")
_FLAGS = [f"--{option}" for option in (*_OPTIONS, "hide-scrollbars")]
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH (apt-get install chromium)")


class Page:
    """One page of a browser.

    Attributes:
        complaints: What the page wrote to the console, with refused requests and uncaught errors.
        requests: The addresses that it asked for.
    """

    def __init__(self, browser: "Browser", target: str):
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._browser = browser
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, session=self._session, note=self._note, **parameters)

    def open(self, address: str) -> None:
        """Open an address and wait until all of it is loaded."""
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def value(self, expression: str) -> Any:
        """Return what a JavaScript expression is."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < end, f"{expression} is still not true; {self.complaints}"
            time.sleep(0.02)

    def press(self, key: str) -> None:
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        text = {"Enter": "\r", " ": " "}.get(key, "")
        named = {"key": key, "windowsVirtualKeyCode": codes[key], "text": text}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **named)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=codes[key])

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def choose(self, selector: str, file: Path) -> None:
        """Choose a file in an input, as the browser's own dialog does."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(file)])

    def drop(self, selector: str, file: Path) -> None:
        """Drop a file on the middle of an element."""
        place = self.value(
            f"(() => {{ const r = document.querySelector({selector!r}).getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        data = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, x=place[0], y=place[1], data=data)

    def dom(self) -> str:
        """Return the page as it is now, as HTML."""
        return self.value("document.documentElement.outerHTML")

    def picture(self, width: int, height: int) -> bytes:
        """Return a PNG of the top of the page."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def named(self) -> set[tuple[str, str]]:
        """Return role and name of everything that a screen reader can be told of."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return {
            (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node.get("ignored")
        }

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("sessionId") != self._session:
            return  # of an earlier page
        told = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif event.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.complaints.append(json.dumps(told))


class Browser:
    """A running browser. Each of its pages has a cache, cookies, and storage of its own."""

    def __init__(self, to_browser: int, from_browser: int):
        self._to, self._from = to_browser, from_browser
        self._rest = b""
        self._number = 0

    @contextmanager
    def page(self) -> Iterator[Page]:
        """Yield an empty page."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        yield Page(self, self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"])
        self.call("Target.disposeBrowserContext", browserContextId=context)

    def call(
        self,
        method: str,
        session: str | None = None,
        note: Callable[[dict[str, Any]], None] = lambda event: None,
        **parameters: Any,
    ) -> dict[str, Any]:
        """Return the result of a method; `note` gets the events that come before it."""
        self._number += 1
        number = self._number
        sent = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self._to, json.dumps(sent).encode() + b"\0")
        while (message := self._next()).get("id") != number:
            note(message)
        assert "error" not in message, message["error"]
        return message["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._from, 1 << 16)
            assert part, "the browser has ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser; `profile` is an empty folder for it."""
    browser_reads, to_browser = os.pipe()
    from_browser, browser_writes = os.pipe()
    command = [str(CHROMIUM), *_FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
    # The browser reads from descriptor 3 and writes to 4.
    redirected = f'exec "$@" 3<&{browser_reads} 4>&{browser_writes}'
    with subprocess.Popen(
        ["bash", "-c", redirected, "chromium", *command],
        pass_fds=(browser_reads, browser_writes),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        os.close(browser_reads)
        os.close(browser_writes)
        try:
            driven = Browser(to_browser, from_browser)
            yield driven
            driven.call("Browser.close")
        finally:
            running.kill()
            os.close(to_browser)
            os.close(from_browser)
