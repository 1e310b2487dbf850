"""A job's process that does what its task says, for what no real work does on every machine; else the real work.

With STUB_BATCHES in the environment each document is a batch of its own.
"""

import errno
import os
import threading
from typing import Any

from indexes.errors import LockedError
from ingest.pipeline import Progress
from lmk_rag import indexing, job_worker

_real = job_worker.do
_ERRORS = {
    "locked": LockedError("Process 7 writes."),
    "full": OSError(errno.ENOSPC, "No space left on device", "/disk/file"),
    "wrong": ValueError("The model is missing: run `make setup`."),
    "silent": KeyError(),
}


def do(task: dict[str, Any], progress: Progress, stop: threading.Event) -> dict[str, Any]:
    what = task["do"]
    if what in _ERRORS:
        raise _ERRORS[what]
    match what:
        case "tell":
            print("noise on standard output", flush=True)
            os.write(1, b"noise on the pipe\n")
            progress.start(4, 200)
            progress.message(f"niceness {os.nice(0) if hasattr(os, 'nice') else 0}")
            progress.embedding(50, 30)
            progress.tokens(128)
            progress.finished(1, 50)
            return {"path": task["path"]}
        case "exit":
            os._exit(3)
        case "obey":
            progress.message(str(os.getpid()))
            stop.wait()
            return {"stopped": stop.is_set()}
        case "deaf":
            progress.message(str(os.getpid()))
            threading.Event().wait()
    return _real(task, progress, stop)


if __name__ == "__main__":
    if "STUB_BATCHES" in os.environ:
        indexing._CHARACTERS_A_POSITION = 1e-9  # type: ignore[assignment]
    job_worker.do = do
    job_worker.main()
