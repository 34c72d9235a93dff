"""A browser for the tests of reports and of the site: Chromium without a window, over a pair of pipes."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--disable-default-apps",
    "--remote-debugging-pipe",
]
# Names are not looked up: a request to the network fails at once, and is on the list all the same.
_NO_NETWORK = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
# Chromium reads its orders from the file descriptor 3 and answers on 4.
_AT_3_AND_4 = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execvp(sys.argv[3], sys.argv[3:])"
)
_TIMEOUT = 60
_IMAGES = """
Promise.all(Array.from(document.images, async (image) => {
  try { await image.decode(); } catch { return {loaded: false, colours: 0}; }
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
  const context = canvas.getContext("2d", {willReadFrequently: true});
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return {loaded: image.complete && image.naturalWidth > 0, colours: new Set(pixels).size};
}))
"""


class Chromium:
    """A running Chromium and its DevTools protocol."""

    def __init__(self, program: str, profile: Path) -> None:
        ours_in, theirs_out = _pipe()
        theirs_in, ours_out = _pipe()
        command = [program, *_FLAGS, _NO_NETWORK, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _AT_3_AND_4, str(theirs_in), str(theirs_out), *command],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out, self._buffer, self._number = ours_in, ours_out, b"", 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(timeout=10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            os.close(self._in)
            os.close(self._out)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """The answer to a call; events on the way are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        os.write(self._out, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def open(self, session: str, url: str) -> None:
        """Open a page, and wait until all of it has loaded."""
        self.call("Page.setLifecycleEventsEnabled", session, enabled=True)
        self.events.clear()
        loader = self.call("Page.navigate", session, url=url)["loaderId"]
        while not any(_is_load(event, loader) for event in self.events):
            self.events.append(self._receive())

    def evaluate(self, session: str, expression: str) -> Any:
        found = self.call("Runtime.evaluate", session, expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{found['exceptionDetails']}")
        return found["result"]["value"]

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + _TIMEOUT
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"Chromium has not answered for {_TIMEOUT} s.")
            part = os.read(self._in, 1 << 16)
            if not part:
                raise ConnectionError("Chromium has ended.")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)


def _is_load(event: dict[str, Any], loader: str) -> bool:
    about = event.get("params", {})
    return event.get("method") == "Page.lifecycleEvent" and (about["name"], about["loaderId"]) == ("load", loader)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are not among the numbers that Chromium wants."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


@dataclass
class Seen:
    """What a browser makes of a page."""

    address: str
    messages: list[str]  # of the console
    requests: list[str]  # the addresses asked for
    images: list[dict[str, Any]]  # whether an image has loaded, and how many colours it has
    width: int  # of all that can be scrolled to
    answer: Any  # to what the page was asked

    @property
    def faults(self) -> list[str]:
        """What no page may have, in the window in which it was opened: a file is all of it, a site has its server."""
        parts = urlsplit(self.address)
        own = f"{parts.scheme}://{parts.netloc}/" if parts.netloc else self.address
        strange = [url for url in self.requests if not url.startswith((own, "data:"))]
        return [
            *(f"console: {message}" for message in self.messages),
            *(f"request: {url}" for url in strange),
            *(f"image {n} has not loaded" for n, image in enumerate(self.images) if not image["loaded"]),
            *(f"image {n} is blank" for n, i in enumerate(self.images) if i["loaded"] and i["colours"] < 3),
        ]


@pytest.fixture(scope="session")
def _chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    if fcntl is None:
        pytest.skip("drives Chromium over pipes of given numbers, which need the module fcntl")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("needs Chromium, and there is no chromium, chromium-browser or google-chrome on PATH")
    browser = Chromium(program, tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture
def open_page(_chromium: Chromium) -> Callable[..., Seen]:
    """Opens a file or an address in a window of some width, asks it for the value of a JavaScript expression, and tells
    what can be seen there. Skips where there is no Chromium.
    """

    def open_page(page: Path | str, width: int, question: str = "null") -> Seen:
        address = page if isinstance(page, str) else page.resolve().as_uri()
        target = _chromium.call("Target.createTarget", url="about:blank")["targetId"]
        session = _chromium.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            _chromium.call(f"{domain}.enable", session)
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        _chromium.call("Emulation.setDeviceMetricsOverride", session, **size)
        _chromium.open(session, address)
        images = _chromium.evaluate(session, _IMAGES)
        total = _chromium.evaluate(session, "document.documentElement.scrollWidth")
        answer = _chromium.evaluate(session, question)
        seen = Seen(address, _messages(_chromium.events), _requests(_chromium.events), images, total, answer)
        _chromium.call("Target.closeTarget", targetId=target)
        return seen

    return open_page


def _messages(events: list[dict[str, Any]]) -> list[str]:
    found = []
    for event in events:
        kind, about = event.get("method"), event.get("params", {})
        if kind == "Runtime.consoleAPICalled":
            found.append(f"{about['type']}: {[item.get('value') for item in about['args']]}")
        elif kind == "Runtime.exceptionThrown":
            found.append(f"exception: {about['exceptionDetails']['text']}")
        elif kind == "Log.entryAdded":
            found.append(f"{about['entry']['level']}: {about['entry']['text']}")
    return found


def _requests(events: list[dict[str, Any]]) -> list[str]:
    return [event["params"]["request"]["url"] for event in events if event.get("method") == "Network.requestWillBeSent"]
