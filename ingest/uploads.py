"""Files that were dropped on the page: kept beside the collection, so that their pages can be opened later."""

import re
from pathlib import Path

from ingest.readers import no_reader, supported

FOLDER = "uploads"
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')
_LONGEST = 150


def keep(collection: Path, name: str, data: bytes) -> Path:
    """Keep a file's bytes; the same bytes under the same name are kept once.

    Args:
        collection: the collection's folder.
        name: as the browser gave it; no part of it is taken for a folder.
        data: the file.

    Returns:
        The path of the file; a second file of the same name with other bytes is numbered.

    Raises:
        ValueError: no reader knows the kind of file.
        OSError: it cannot be written.
    """
    path = collection / FOLDER / _safe(name)
    if not supported(path):
        raise ValueError(f"{name}: {no_reader(path)}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    stem, suffixes = path.name.partition(".")[0], "".join(path.suffixes)
    number = 1
    while path.exists() and path.read_bytes() != data:
        number += 1
        path = path.with_name(f"{stem} ({number}){suffixes}")
    if not path.exists():
        temporary = path.with_name(f".{path.name}.part")
        temporary.write_bytes(data)
        temporary.replace(path)
    return path


def is_kept(collection: Path, path: Path) -> bool:
    """Tell whether a file is one that was dropped on the page."""
    return path.parent == collection / FOLDER


def _safe(name: str) -> str:
    """Take the last part of a name, without what a file system refuses, and never hidden."""
    cleaned = _UNSAFE.sub("_", name.replace("\\", "/").rpartition("/")[2]).strip(" .")
    stem, dot, suffix = cleaned.rpartition(".")
    return f"{stem[:_LONGEST]}{dot}{suffix}" if stem else cleaned or "file"
