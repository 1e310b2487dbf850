"""The app in a browser: a server of its own over an empty collection, and Debian's chromium.

Nothing is skipped here: a browser that is not there fails the tests. Every request and every message of the browser's
console is kept, and a test that leaves an error or a request beyond this machine fails.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
SHOTS = ROOT / "build" / "screenshots"
PATIENCE = 180_000
"""Milliseconds that a step may take on a machine that is busy; a step that is done goes on at once."""
START_SECONDS = 120


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, the distribution's own: nothing is downloaded."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.fail("There is no chromium: install Debian's package `chromium`, or name a browser in CHROMIUM.")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@dataclass
class App:
    """A running server: its address, the folder of its collection, its process."""

    address: str
    collection: Path
    process: subprocess.Popen[bytes]


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The app over a collection that is not there yet, started as a user starts it."""
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("STREAMLIT_", "LMK_RAG_"))},
        "LMK_RAG_COLLECTION": str(folder / "collection"),
        "HF_HUB_OFFLINE": "1",
        "HOME": str(folder),
    }
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(ROOT / "ui" / "app.py")]
    command += ["--server.port", str(port), "--server.headless", "true"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            _wait_for(f"http://localhost:{port}/_stcore/health", process)
            yield App(f"http://localhost:{port}", folder / "collection", process)
        finally:
            process.terminate()
            process.wait(30)
    _, *tracebacks = (folder / "server.log").read_text(errors="replace").split("Traceback")
    assert not [each for each in tracebacks if "WebSocketDisconnected" not in each]  # a window was closed meanwhile


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, "the server ended"
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"The server did not answer within {START_SECONDS} seconds.")


@dataclass
class Watched:
    """A page, with what went wrong in it."""

    page: Page
    address: str
    wrong: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        """Open a path of the app and wait until it has been shown."""
        self.page.goto(self.address + path)
        return self.settled()

    def settled(self) -> Page:
        """Wait until the script has run to its end, and nothing is coming any more."""
        self.page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=PATIENCE)
        return self.page

    def shot(self, name: str) -> None:
        """Keep a picture, to be looked at; it is not in git."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png")


@pytest.fixture
def open_window(browser: Browser, app: App, request: pytest.FixtureRequest) -> Iterator["type[Watched] | object"]:
    """Give a function that opens a window of a width, light or dark."""
    windows: list[Watched] = []

    def open_sized(width: int = 1280, *, dark: bool = False) -> Watched:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        watched = Watched(page, app.address)
        page.on("console", lambda message: _check_message(message, watched.wrong))
        page.on("pageerror", lambda error: watched.wrong.append(f"exception: {error}"))
        page.on("dialog", lambda dialog: _refuse(dialog, watched.wrong))
        page.on("request", lambda request: _check_request(request.url, watched.wrong))
        page.on("websocket", lambda opened: _check_request(opened.url, watched.wrong))
        windows.append(watched)
        return watched

    yield open_sized
    for number, watched in enumerate(windows):
        watched.shot(f"last-{request.node.name}-{number}")  # what was seen when a test failed
        watched.page.context.close()
    assert [wrong for watched in windows for wrong in watched.wrong] == []


def _refuse(dialog: Dialog, wrong: list[str]) -> None:
    wrong.append(f"dialog: {dialog.message}")
    dialog.dismiss()


def _check_message(message: ConsoleMessage, wrong: list[str]) -> None:
    """Keep an error, but for the look-ups by which Streamlit finds its server from the address of a page."""
    address = urlsplit(message.location["url"])
    probing = address.path.count("/") > 2 and "/_stcore/" in address.path
    if message.type == "error" and not probing:
        wrong.append(f"{message.text} ({message.location['url']})")


def _check_request(url: str, wrong: list[str]) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("data", "blob") and parts.hostname not in ("localhost", "127.0.0.1"):
        wrong.append(f"request: {url}")
