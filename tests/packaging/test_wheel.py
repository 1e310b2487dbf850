"""The built wheel holds what it should, and works in an environment of its own, away from the clone."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

PACKAGES = {"lmk_rag", "indexes", "ingest", "ui"}
TEXTS = {
    "tides.txt": "The tides follow the moon. " * 30 + "A spring tide comes when sun and moon pull along one line.",
    "bread.txt": "Dough rises while yeast feeds. " * 30 + "A hot stone gives the loaf its crust.",
}


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the project's own backend."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(repository)]
    subprocess.run(command, check=True, capture_output=True)
    [built] = folder.glob("lmk_rag-*.whl")
    return built


def test_wheel_holds_the_packages_and_their_data(wheel: Path, repository: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    information = f"{wheel.name.split('-py3')[0]}.dist-info"
    assert {name.partition("/")[0] for name in names} == PACKAGES | {information}
    assert {"ui/app.py", "ui/.streamlit/config.toml", "lmk_rag/py.typed", "lmk_rag/cli.py"} <= names
    assert {f"{information}/licenses/LICENSE", f"{information}/licenses/NOTICE"} <= names

    # Every file of the four packages that git knows or would take is in the wheel, adapters included.
    command = ["git", "-C", str(repository), "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode == 0:  # a source archive has no git
        expected = {name for name in listed.stdout.splitlines() if (repository / name).is_file()}
        assert expected <= names


class Installed:
    """An environment that holds the wheel, and the dependencies of the environment that runs the tests."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.folder = folder / "env"
        venv.create(self.folder, with_pip=False)
        self.commands = self.folder / ("Scripts" if os.name == "nt" else "bin")
        python = str(self.commands / "python")
        # First the wheel, then the path to the dependencies: pip must not find the clone's editable install there.
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel],
            check=True,
            env=self.environment(),
        )
        query = "import sysconfig; print(sysconfig.get_path('purelib'))"
        own = Path(subprocess.run([python, "-c", query], check=True, capture_output=True, text=True).stdout.strip())
        borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        # A plain path: Python runs no .pth file of a folder that it reaches in this way, so no editable install leaks.
        (own / "borrowed.pth").write_text("\n".join(borrowed) + "\n")

    def environment(self, **changes: str) -> dict[str, str]:
        """The tests' environment without anything that points to the clone; home is empty."""
        guard = os.environ["PYTHONPATH"].split(os.pathsep)[0]
        home = str(self.work)
        return {
            **os.environ,
            "PYTHONPATH": guard,
            "HOME": home,
            "USERPROFILE": home,
            "PYTHONUNBUFFERED": "1",
            **changes,
        }

    def run(self, command: str, *arguments: str) -> str:
        """Runs a command of the environment outside the clone and returns its standard output."""
        line = [str(self.commands / command), *arguments]
        done = subprocess.run(
            line, cwd=self.work, env=self.environment(), capture_output=True, text=True, stdin=-3, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"), wheel)


@pytest.fixture(scope="module")
def collection(installed: Installed) -> Path:
    """Two short texts, ingested by the installed command."""
    documents = installed.work / "documents"
    documents.mkdir()
    for name, text in TEXTS.items():
        (documents / name).write_text(text)
    folder = installed.work / "collection"
    report: dict[str, Any] = json.loads(
        installed.run("lmk-rag", "ingest", str(documents), "--collection", str(folder), "--json")
    )
    assert (report["indexed"], report["failed"], report["documents"]) == (2, [], 2)
    return folder


def test_the_packages_come_from_the_wheel(installed: Installed) -> None:
    code = f"import json, {', '.join(PACKAGES)}; print(json.dumps([m.__file__ for m in ({', '.join(PACKAGES)})]))"
    for file in json.loads(installed.run("python", "-c", code)):
        assert Path(file).is_relative_to(installed.folder)


def test_installed_search_finds(installed: Installed, collection: Path) -> None:
    found = json.loads(installed.run("lmk-rag", "search", "crust of a loaf", "--collection", str(collection), "--json"))
    assert Path(found["hits"][0]["path"]).name == "bread.txt"


def test_installed_version(installed: Installed, wheel: Path) -> None:
    assert wheel.name.split("-")[1] in installed.run("lmk-rag", "--version")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def served(installed: Installed, collection: Path, port: int) -> Iterator[tuple[int, str]]:
    """`lmk-rag ui` as a user starts it: its process id and what it printed, once it serves; ended afterwards."""
    environment = installed.environment()
    del environment["STREAMLIT_BROWSER_GATHER_USAGE_STATS"]  # the page's own settings must turn it off
    with subprocess.Popen(
        [str(installed.commands / "lmk-rag"), "ui", "--collection", str(collection), "--port", str(port)],
        cwd=installed.work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as page:
        # A page that never says that it serves, or never ends, must not hang the suite.
        watchdog = threading.Timer(120, partial(os.killpg, page.pid, signal.SIGKILL))
        watchdog.start()
        try:
            assert page.stdout is not None
            printed = []
            for line in page.stdout:
                printed.append(line)
                if f"URL: http://localhost:{port}" in line:  # Streamlit's own line: the server listens
                    break
            else:
                pytest.fail("".join(printed))
            yield page.pid, "".join(printed)
        finally:
            if page.poll() is None:
                os.killpg(page.pid, signal.SIGTERM)
            page.communicate()  # until the server has ended, which still writes to the pipe
            watchdog.cancel()


def test_installed_page_starts_with_its_own_settings(installed: Installed, collection: Path) -> None:
    port = free_port()
    with served(installed, collection, port) as (page, printed):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/_stcore/health")
        assert connection.getresponse().read() == b"ok"
        connection.close()
        listening = {
            opened.laddr.ip
            for process in (psutil.Process(page), *psutil.Process(page).children(recursive=True))
            for opened in process.net_connections()
            if opened.status == psutil.CONN_LISTEN and opened.laddr.port == port
        }
        assert listening == {"127.0.0.1"}
        assert "usage statistics" not in printed
