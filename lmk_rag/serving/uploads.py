"""Files that are sent to the server: kept in a folder of the collection, and ingested from there."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

from indexes.collection import Collection
from indexes.records import StoredDocument
from ingest.pipeline import Options, Report, ingest
from ingest.uploads import FOLDER, is_kept, safe_name


def upload(collection: Collection, name: str, content: IO[bytes]) -> Report:
    """Keep a file in the collection's folder and ingest it; one of the same name is replaced.

    A file that cannot be read as a document is not kept.

    Raises:
        ValueError: the name is none.
        CollectionError: another process writes to the collection, or its model cannot be had.
    """
    folder = collection.path / FOLDER
    folder.mkdir(exist_ok=True)
    target = folder / safe_name(name)
    before = target.read_bytes() if target.exists() else None
    _replace(target, content)
    try:
        report = ingest([target], collection.path, Options(retry_failed=True))
    except BaseException:
        _restore(target, before)
        raise
    if report.failed:
        _restore(target, before)
        _forget(collection, target)
    return report


def remove(collection: Collection, document: StoredDocument) -> None:
    """Remove a document; its file too if it was sent here, else the file stays.

    Raises:
        LockedError: another process writes to the collection.
    """
    with collection.write("remove"):
        with collection.transaction() as transaction:
            transaction.remove(document.id)
        collection.persist_caches()
    path = Path(document.path)
    if document.source == "file" and is_kept(collection.path, path):
        path.unlink(missing_ok=True)


def _replace(target: Path, content: IO[bytes]) -> None:
    """Write a file beside its place and move it there, so that nobody reads half of it."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as out:
            shutil.copyfileobj(content, out)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _restore(target: Path, before: bytes | None) -> None:
    if before is None:
        target.unlink(missing_ok=True)
    else:
        target.write_bytes(before)


def _forget(collection: Collection, target: Path) -> None:
    """Drop the note about a file that is not kept."""
    if collection.failure(str(target)) is not None:
        with collection.write("upload"), collection.transaction() as transaction:
            transaction.forget_failure(str(target))
