"""Work in a process of its own: what it tells, how it ends, and what is left when it is killed."""

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest

from indexes.collection import Collection
from indexes.errors import LockedError
from ingest.pipeline import Options, Progress
from ingest.pipeline import ingest as ingest_here
from lmk_rag import job_process
from lmk_rag.indexing import Settings
from lmk_rag.job_process import WorkError
from lmk_rag.job_worker import NICENESS

SECONDS = 300.0
STUB = Path(__file__).with_name("stub_job.py")
posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")


class Heard(Progress):
    """Keeps what is told, and does something at each message or piece of text."""

    def __init__(self, act: Callable[["Heard", str, Any], None] = lambda heard, name, value: None) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.act = act

    def start(self, files: int, size: int) -> None:
        self.told.append(("start", files, size))

    def message(self, text: str) -> None:
        self.told.append(("message", text))
        self.act(self, "message", text)

    def embedding(self, size: int, characters: int) -> None:
        self.told.append(("embedding", size, characters))

    def tokens(self, count: int) -> None:
        self.told.append(("tokens", count))
        self.act(self, "tokens", count)

    def finished(self, files: int, size: int) -> None:
        self.told.append(("finished", files, size))


@pytest.fixture
def _stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmk_rag.job_process.WORKER_COMMAND", (sys.executable, "-P", str(STUB)))


def run(task: str, heard: Heard | None = None, stop: threading.Event | None = None, **values: Any) -> Any:
    return job_process.run({"do": task, **values}, heard or Heard(), stop or threading.Event())


@pytest.mark.usefixtures("_stub")
def test_what_is_told_arrives_and_noise_does_not() -> None:
    heard = Heard()
    path = "/bad\udcff name \u00e4"  # as Python gives a file's name that is not UTF-8
    assert run("tell", heard, path=path) == {"path": path}
    nice = min(os.nice(0) + NICENESS, 19) if hasattr(os, "nice") else 0
    assert heard.told == [
        ("start", 4, 200),
        ("message", f"niceness {nice}"),
        ("embedding", 50, 30),
        ("tokens", 128),
        ("finished", 1, 50),
    ]


@pytest.mark.usefixtures("_stub")
def test_errors_come_back_as_the_page_tells_them() -> None:
    with pytest.raises(LockedError, match=r"^Process 7 writes\.$"):
        run("locked")
    with pytest.raises(OSError, match="No space left") as caught:
        run("full")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/disk/file")
    with pytest.raises(WorkError, match=r"^The model is missing: run `make setup`\.$"):
        run("wrong")
    with pytest.raises(WorkError, match=r"^KeyError$"):
        run("silent")


@pytest.mark.usefixtures("_stub")
def test_a_process_that_ends_by_itself_is_told_with_its_code() -> None:
    with pytest.raises(WorkError, match="ended with code 3; the app's own terminal may say why"):
        run("exit")


@posix
@pytest.mark.usefixtures("_stub")
def test_a_process_that_is_killed_is_told_with_what_to_do() -> None:
    def kill(heard: Heard, name: str, value: Any) -> None:
        os.kill(int(value), signal.SIGKILL)

    with pytest.raises(WorkError, match=r"SIGKILL.*memory: close other programs\..*start the same again"):
        run("deaf", Heard(kill))


@pytest.mark.usefixtures("_stub")
def test_one_that_is_asked_to_stop_has_the_last_word() -> None:
    stop = threading.Event()
    assert run("obey", Heard(lambda *_: stop.set()), stop) == {"stopped": True}


@pytest.mark.usefixtures("_stub")
def test_one_that_goes_on_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmk_rag.job_process.GRACE", 0.0)
    stop, heard = threading.Event(), Heard(lambda *_: stop.set())
    assert run("deaf", heard, stop) is None
    [(_, pid)] = heard.told
    assert not psutil.pid_exists(int(pid))


@posix
def test_it_ends_with_the_process_that_began_it(repository: Path) -> None:
    code = (
        "import sys, threading\n"
        "from ingest.pipeline import Progress\n"
        "from lmk_rag import job_process\n"
        f"job_process.WORKER_COMMAND = (sys.executable, '-P', {str(STUB)!r})\n"
        "class Tell(Progress):\n"
        "    def message(self, text):\n"
        "        print(text, flush=True)\n"
        "job_process.run({'do': 'deaf'}, Tell(), threading.Event())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=repository, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        parent.wait()
        child.wait(SECONDS)
    assert not child.is_running()


@pytest.fixture
def folder(tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LMK_RAG_BASE", str(tiny_bert))
    files = tmp_path / "files"
    files.mkdir()
    for name in "abc":
        (files / f"{name}.txt").write_text(f"Iron {name} rusts in wet air, and the sea eats the hull. " * 300)
    return files


@pytest.mark.filterwarnings("ignore::lmk_rag.encoding.base_model.ModelWarning")
def test_the_real_work_does_there_what_it_does_here(folder: Path, tmp_path: Path) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    options = Options(poolings=("mean",), settings=Settings(device="cpu"), include=("*",), workers=0)
    there, here = tmp_path / "there", tmp_path / "here"
    heard, stop = Heard(), threading.Event()
    report = job_process.ingest([folder], there, options, heard, stop)
    expected = ingest_here([folder], here, options)
    assert report is not None
    assert asdict(report) | {"seconds": 0} == asdict(expected) | {"seconds": 0}
    assert report.failed == expected.failed != []
    assert sum(told[1] for told in heard.told if told[0] == "finished") == 4
    assert job_process.add_pooling(there, "lmk", "cpu", heard, stop) == 3
    anew = job_process.embed_anew(there, Settings(device="cpu"), heard, stop)
    assert anew is not None
    assert anew.embedded == {"mean": 0, "lmk": 0}  # by the same model: there is nothing to do
    with Collection.open(there) as one, Collection.open(here) as other:
        [record] = other.encoders()
        twin = one.encoder("mean")
        assert twin is not None
        assert twin.fingerprint == record.fingerprint
        assert not one.verify()


@posix
@pytest.mark.usefixtures("_stub")
def test_killed_in_the_middle_of_a_batch_only_that_batch_is_lost(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_BATCHES", "1")
    options = Options(poolings=("lmk",), settings=Settings(device="cpu"))

    def kill(heard: Heard, name: str, value: Any) -> None:
        if name == "tokens" and any(told[0] == "finished" for told in heard.told):
            [child] = psutil.Process().children()
            child.kill()

    with pytest.raises(WorkError, match="SIGKILL"):
        job_process.ingest([folder], tmp_path / "collection", options, Heard(kill), threading.Event())
    with Collection.open(tmp_path / "collection") as opened:
        assert opened.count() == 1
        assert not opened.verify()
        with opened.write("test"):
            pass
    report = job_process.ingest([folder], tmp_path / "collection", options, Heard(), threading.Event())
    assert report is not None
    assert (report.indexed, report.unchanged, report.documents) == (2, 1, 3)


@pytest.mark.usefixtures("_stub")
def test_cancelled_in_the_middle_of_a_batch_the_lock_is_free_at_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_BATCHES", "1")
    monkeypatch.setattr("lmk_rag.job_process.GRACE", 0.0)
    stop = threading.Event()
    heard = Heard(lambda heard, name, value: stop.set() if name == "tokens" else None)
    options = Options(poolings=("lmk",), settings=Settings(device="cpu"))
    assert job_process.ingest([folder], tmp_path / "collection", options, heard, stop) is None
    with Collection.open(tmp_path / "collection") as opened, opened.write("test"):
        assert not opened.verify()
