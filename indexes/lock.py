"""The writer's lock: an operating-system lock on a file, and beside it a note of who holds it."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from indexes.errors import LockedError
from indexes.times import now

LOCK_FILE = "writer.lock"
HOLDER_FILE = "writer.json"


@contextmanager
def writer_lock(folder: Path, purpose: str) -> Iterator[None]:
    """Hold the writer's lock of a collection.

    The operating system drops the lock when its process ends, however it ends; the note beside it only serves
    the message, so that a note left by a crash does no harm.

    Args:
        folder: the collection's folder.
        purpose: what the writer does, for the message that another one gets, such as "ingest".

    Raises:
        LockedError: another process, or another part of this one, holds it.
    """
    lock = FileLock(folder / LOCK_FILE, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise LockedError(
            f"The collection at {folder} is being written by {_holder(folder)}: wait for it to finish or stop it"
        ) from None
    try:
        _note(folder, purpose)
        yield
    finally:
        (folder / HOLDER_FILE).unlink(missing_ok=True)
        lock.release()


def _note(folder: Path, purpose: str) -> None:
    temporary = folder / f"{HOLDER_FILE}.{os.getpid()}.tmp"
    temporary.write_text(json.dumps({"pid": os.getpid(), "purpose": purpose, "since": now()}), encoding="utf-8")
    temporary.replace(folder / HOLDER_FILE)


def _holder(folder: Path) -> str:
    try:
        note = json.loads((folder / HOLDER_FILE).read_text(encoding="utf-8"))
        return f"process {int(note['pid'])} ({note['purpose']}, since {note['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"  # it has the lock and has not written its note yet
