"""Long work in a process of its own, so that a server's threads stay quick: as in `ingest.pipeline` and `upkeep`.

The work ends when this process does, however it does. One that is asked to stop and has not done so after a few seconds
is ended: a batch is one transaction, so that nothing is lost but the batch under way.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from indexes.errors import LockedError
from ingest.pipeline import Options, Progress, Report
from ingest.pool import search_path
from lmk_rag.indexing import Settings
from lmk_rag.upkeep import Anew

WORKER_COMMAND = (sys.executable, "-P", "-m", "lmk_rag.job_worker")
GRACE = 3.0
"""Seconds from the request to stop until the process is ended."""
_LOOK = 0.2
"""Seconds between two looks at whether a stop is asked for."""
_TOLD = frozenset({"start", "message", "embedding", "tokens", "finished"})
_WINDOWS_FLAGS = 0x0200 | 0x4000  # CREATE_NEW_PROCESS_GROUP, BELOW_NORMAL_PRIORITY_CLASS


class WorkError(RuntimeError):
    """The work failed, or its process died: one sentence that a user can act on."""


def ingest(
    paths: Sequence[Path], collection: Path, options: Options, progress: Progress, stop: threading.Event
) -> Report | None:
    """Do what `ingest.pipeline.ingest` does; see `run` for what comes back and what is raised."""
    task = {"do": "ingest", "paths": list(map(str, paths)), "collection": str(collection), "options": asdict(options)}
    told = run(task, progress, stop)
    if told is None:
        return None
    pairs = {name: [(path, text) for path, text in told[name]] for name in ("failed", "warnings")}
    return Report(**{**told, **pairs})


def add_pooling(collection: Path, pooling: str, device: str, progress: Progress, stop: threading.Event) -> int | None:
    """Do what `upkeep.add_pooling` does; see `run` for what comes back and what is raised."""
    task = {"do": "add_pooling", "collection": str(collection), "pooling": pooling, "device": device}
    told = run(task, progress, stop)
    return None if told is None else int(told["embedded"])


def embed_anew(collection: Path, settings: Settings, progress: Progress, stop: threading.Event) -> Anew | None:
    """Do what `upkeep.embed_anew` does for all poolings; see `run` for what comes back and what is raised."""
    told = run({"do": "embed_anew", "collection": str(collection), "settings": asdict(settings)}, progress, stop)
    return None if told is None else Anew(**told)


def run(task: Mapping[str, Any], progress: Progress, stop: threading.Event) -> dict[str, Any] | None:
    """Have a task done by a process, and wait for it.

    Args:
        task: JSON-able; see `job_worker.do`.
        progress: told what happens, in this thread.
        stop: when it is set, the process is asked to end, and ended after `GRACE`.

    Returns:
        What came of the task; None where the process had to be ended in the middle of a batch.

    Raises:
        LockedError: another process writes to the collection.
        OSError: what the operating system refused, with its number and file name.
        WorkError: anything else that went wrong.
    """
    process = _start()
    try:
        last = _follow(process, task, progress, stop)
        if last is None and stop.is_set():
            return None
        if last is None:
            raise WorkError(_died(process.wait()))
        if "error" in last:
            raise _error(last["error"])
        outcome: dict[str, Any] = last["outcome"]
        return outcome
    finally:
        process.kill()
        process.wait()
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()


def _start() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        WORKER_COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None,  # what libraries have to say stands where the server's own words do
        env=os.environ | {"PYTHONPATH": search_path()},
        # Ctrl-C in a terminal is for the server, whose end is the worker's.
        process_group=None if sys.platform == "win32" else 0,
        creationflags=_WINDOWS_FLAGS if sys.platform == "win32" else 0,
    )


def _follow(
    process: "subprocess.Popen[bytes]", task: Mapping[str, Any], progress: Progress, stop: threading.Event
) -> dict[str, Any] | None:
    """Pass on what a process tells until it ends; return its last word, None where it could not give one."""
    assert process.stdout is not None
    lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(process.stdout, lines), name="job pipe", daemon=True).start()
    _send(process, task)
    last: dict[str, Any] | None = None
    patience: float | None = None
    while True:
        if stop.is_set() and patience is None:
            _send(process, "stop")
            patience = time.monotonic() + GRACE
        if patience is not None and time.monotonic() > patience:
            process.kill()
        with contextlib.suppress(queue.Empty):
            line = lines.get(timeout=_LOOK)
            if line is None:
                return last
            said = json.loads(line)
            if isinstance(said, dict):
                last = said
            elif said[0] in _TOLD:
                getattr(progress, said[0])(*said[1:])


def _read(stream: IO[bytes], lines: "queue.SimpleQueue[bytes | None]") -> None:
    """Take whole lines until the process ends, then None."""
    with stream:
        for line in stream:
            if line.endswith(b"\n"):  # the end may come in the middle of one
                lines.put(line)
    lines.put(None)


def _send(process: "subprocess.Popen[bytes]", message: object) -> None:
    """Send a line; a process that is gone is noticed by its output's end."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()


def _error(told: Mapping[str, Any]) -> Exception:
    """Make the error that the page tells as it told the worker's."""
    if told["kind"] == LockedError.__name__:
        return LockedError(told["sentence"])
    if "system" in told:
        number, reason, path = told["system"]
        return OSError(number, reason, path)
    return WorkError(told["sentence"])


def _died(code: int) -> str:
    kept = "What it had committed is kept: start the same again, and it goes on from there."
    if code < 0:
        return (
            f"The process that did the work was ended from outside ({_name(-code)}), as a system does that runs out of "
            f"memory: close other programs. {kept}"
        )
    return f"The process that did the work ended with code {code}; the app's own terminal may say why. {kept}"


def _name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
