"""Compressed bytes, read no further than a stated limit."""

import contextlib
import gzip
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from ingest.readers import NEEDS_PASSWORD, ReadError

INFLATED_LIMIT = 1 << 30
_STEP = 1 << 20
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_ENCRYPTED_MEMBER = 1
_PROLOGUE = 4096


class Readable(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """Give up to that many bytes; none at the end."""


def read_limited(stream: Readable, limit: int, name: str) -> bytes:
    """Read a stream to its end.

    Raises:
        ReadError: There are more than `limit` bytes in it.
    """
    parts = []
    left = limit
    while part := stream.read(min(_STEP, left + 1)):
        left -= len(part)
        if left < 0:
            raise ReadError(f"too large: {name} holds more than {_size(limit)}")
        parts.append(part)
    return b"".join(parts)


def read_bytes(path: Path, limit: int = INFLATED_LIMIT) -> bytes:
    """Read a file, inflated where its name ends in ``.gz``.

    Raises:
        ReadError: The gzip stream is damaged, or the bytes are more than `limit`.
    """
    try:
        with path.open("rb") as file:
            stream = gzip.GzipFile(fileobj=file) if path.suffix.lower() == ".gz" else file
            return read_limited(stream, limit, path.name)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ReadError(f"damaged: {error}") from error


@contextlib.contextmanager
def open_archive(path: Path, kind: str, limit: int = INFLATED_LIMIT) -> Iterator[zipfile.ZipFile]:
    """Open the zip archive that an office or EPUB file is, after a look at what it claims to hold.

    The sizes are the archive's own claim; `zipfile` reads no member past it.

    Args:
        path: The file.
        kind: What it ought to be, for the message.
        limit: Most bytes that all members together may inflate to.

    Raises:
        ReadError: It is no such archive, is encrypted or too large.
    """
    with path.open("rb") as stream:
        if stream.read(len(_OLE)) == _OLE:
            # Office writes an encrypted document as a compound file around the encrypted archive.
            encrypted = _ENCRYPTED_PACKAGE in read_limited(stream, limit, path.name)
            raise ReadError(NEEDS_PASSWORD if encrypted else f"not {kind}: an older office format")
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > limit:
                raise ReadError(f"too large: its members inflate to more than {_size(limit)}")
            if any(member.flag_bits & _ENCRYPTED_MEMBER for member in members):
                raise ReadError(NEEDS_PASSWORD)
            yield archive
    except zipfile.BadZipFile as error:
        raise ReadError(f"not {kind}: {error}") from error
    except (EOFError, zlib.error, NotImplementedError) as error:
        raise ReadError(f"damaged: {error}") from error


def read_member(archive: zipfile.ZipFile, name: str) -> bytes | None:
    """Read a member of an archive; None where there is none of that name."""
    try:
        return archive.read(name)
    except KeyError:
        return None


def refuse_doctype(archive: zipfile.ZipFile, names: Iterable[str]) -> None:
    """Refuse XML members that declare a document type: office formats have none, entity bombs need one.

    Raises:
        ReadError: One does.
    """
    for name in names:
        with archive.open(name) as member:
            start = member.read(_PROLOGUE).replace(b"\0", b"")  # UTF-16 reads as ASCII then
        if b"<!DOCTYPE" in start or b"<!ENTITY" in start:
            raise ReadError(f"damaged: {name} declares a document type, which this format does not have")


def _size(limit: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if limit >= unit:
            return f"{limit / unit:.3g} {name}"
    return f"{limit} bytes"
