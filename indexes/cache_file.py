"""Index files: a header that says what they hold, and bytes; written whole or not at all."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

_MAGIC = b"lmk-rag index 1\n"


def write(path: Path, header: dict[str, Any], payload: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one, never a part.

    Args:
        path: of the file.
        header: JSON-able; must not hold "sha256".
        payload: any bytes.
    """
    line = json.dumps({**header, "sha256": _digest(header, payload)}).encode() + b"\n"
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        for part in (_MAGIC, line, payload):
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    _sync_folder(path.parent)


def read(path: Path) -> tuple[dict[str, Any], memoryview] | None:
    """Return header and payload; None where the file is missing, or is not as it was written."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    end = data.find(b"\n", len(_MAGIC))
    if not data.startswith(_MAGIC) or end < 0:
        return None
    payload = memoryview(data)[end + 1 :]  # an index may be large: no copies
    try:
        header = json.loads(data[len(_MAGIC) : end])
        expected = header.pop("sha256")
    except (ValueError, KeyError, AttributeError, TypeError):
        return None
    return (header, payload) if expected == _digest(header, payload) else None


def _digest(header: dict[str, Any], payload: bytes | memoryview) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    digest.update(payload)
    return digest.hexdigest()


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot open a folder, and needs no flush of it
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
