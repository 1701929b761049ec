"""A headless Chromium, driven over its debugging pipe."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
AXE = next(
    (
        path
        for folder in (os.environ.get("NODE_PATH", ""), "node_modules", "/usr/lib/node_modules")
        if folder and (path := Path(folder) / "axe-core" / "axe.min.js").is_file()
    ),
    None,
)
"""axe-core, as npm installs it; where it lies in another folder, NODE_PATH names that."""
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --remote-debugging-pipe"
)
_SECONDS = 30


class BrowserError(Exception):
    """The browser cannot do what it is told, as where a page goes away meanwhile."""


class Browser:
    """
    One page of a browser.

    Args:
        write: Descriptor that takes commands.
        read: Descriptor that gives replies and events.
    """

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._rest = b""
        self._sent = 0
        self._session = ""
        self.complaints: list[str] = []
        """What the console told as an error or a warning, or a script failed with."""
        self._loaded: set[str] = set()  # ids of navigations that came to their end
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        self.send("Page.setLifecycleEventsEnabled", enabled=True)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """What a command gives."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._next()
            if reply.get("id") == self._sent:
                if "error" in reply:
                    raise BrowserError(str(reply["error"]))
                result: dict[str, Any] = reply["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._read, 1 << 20)
            assert data, "the browser has ended"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        method, params = message.get("method", ""), message.get("params", {})
        if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(str(params["args"]))
        elif method == "Page.lifecycleEvent" and params["name"] == "load":
            self._loaded.add(params["loaderId"])
        return message

    def open(self, url: str) -> None:
        """Go to a page and wait until it has loaded."""
        loader = self.send("Page.navigate", url=url)["loaderId"]
        while loader not in self._loaded:
            self._next()

    def look(self, scheme: str, width: int) -> None:
        """Prefer light or dark pages, on a screen of that width."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        metrics: Mapping[str, Any] = {"height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.send("Emulation.setDeviceMetricsOverride", width=width, **metrics)

    def ask(self, expression: str) -> Any:
        """What a JavaScript expression gives on the page."""
        reply = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key."""
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=key if len(key) == 1 else "")
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def wait(self, expression: str) -> None:
        """Wait until an expression is true; fails after half a minute."""
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            with suppress(BrowserError):
                if self.ask(f"Boolean({expression})"):
                    return
            time.sleep(0.1)
        raise AssertionError(f"never true: {expression}")


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with an empty page, ended at the end."""
    theirs_read, ours_write = os.pipe()
    ours_read, theirs_write = os.pipe()
    profile = tempfile.mkdtemp(prefix="panda-browser-")
    command = f'exec "$0" {_FLAGS} --user-data-dir="$1" 3<&{theirs_read} 4>&{theirs_write}'
    with subprocess.Popen(
        ["/bin/bash", "-c", command, str(CHROMIUM), profile],
        pass_fds=(theirs_read, theirs_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(theirs_read)
        os.close(theirs_write)
        try:
            yield Browser(ours_write, ours_read)
        finally:
            process.kill()
            process.wait()
            os.close(ours_write)
            os.close(ours_read)
            shutil.rmtree(profile, ignore_errors=True)
