"""Files that were dropped on the page or sent to the server: kept in the collection's folder under a safe name."""

import re
from pathlib import Path

from ingest.readers import no_reader, supported

FOLDER = "uploads"
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')
_LONGEST_NAME = 150  # bytes


def safe_name(name: str) -> str:
    """Take from a file's name all that leads out of a folder or that some file system refuses.

    Raises:
        ValueError: nothing is left.
    """
    last = re.split(r"[/\\]", name)[-1]
    stem, dot, ending = _UNSAFE.sub("_", last).strip(". ").rpartition(".")
    kept = stem.encode("utf-8", "replace")[:_LONGEST_NAME].decode("utf-8", "ignore") + dot + ending[:20]
    if not kept.strip("._ "):
        raise ValueError(f"{name!r} is no name for a file: send one such as report.pdf.")
    return kept


def keep(collection: Path, name: str, data: bytes) -> Path:
    """Keep a file's bytes; the same bytes under the same name are kept once.

    Args:
        collection: the collection's folder.
        name: as the browser gave it; no part of it is taken for a folder.
        data: the file.

    Returns:
        The path of the file; a second file of the same name with other bytes is numbered.

    Raises:
        ValueError: no reader knows the kind of file, or its name is none.
        OSError: it cannot be written.
    """
    path = collection / FOLDER / safe_name(name)
    if not supported(path):
        raise ValueError(f"{name}: {no_reader(path)}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    suffixes = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix  # ".txt.gz"
    stem = path.name.removesuffix(suffixes)
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
