"""Readers: one file in, its pages of text out. The table here says which suffix is read by which module."""

import errno
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

NEEDS_PASSWORD = "needs a password"
NO_TEXT = "no text"
NO_TEXT_SCANNED = "no text (scanned?)"
_REASON_LENGTH = 200


class ReadError(Exception):
    """A file that cannot be read. The reason is one short sentence for the user."""

    def __init__(self, reason: str) -> None:
        """Keep the reason, which is also the message."""
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFile:
    """A whole file as clean text.

    Attributes:
        kind: "pdf", "text", "markdown", "html", "docx", "epub" or "odt".
        title: Never empty; the file's stem where nothing better is known.
        pages: Clean text, one string a page; kinds without pages have one (EPUB: one a chapter).
        metadata: What the file tells of itself (author, subject, created ...), JSON-able.
        warnings: What was lost or guessed on the way, one sentence each.
    """

    kind: str
    title: str
    pages: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class OpenFile:
    """A file whose pages can be asked for one by one, in any order.

    Attributes:
        kind: As in `ParsedFile`.
        page_count: Number of pages.
        page: Gives the raw text of the page with that index, from 0; raises `ReadError` where it cannot.
        title: What the file itself gives as its title, or "".
        metadata: As in `ParsedFile`.
        warnings: Sentences about the file as a whole.
        close: Lets go of the file.
    """

    kind: str
    page_count: int
    page: Callable[[int], str]
    title: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Format:
    """Which module reads a kind of file; imported only when such a file is met.

    Attributes:
        kind: As in `ParsedFile`.
        module: Has ``open_file(path, engine)``, or ``open_file(path)`` where there is one engine only.
        engines: How many engines the module has.
    """

    kind: str
    module: str
    engines: int = 1

    def open(self, path: Path, engine: int = 0) -> OpenFile:
        """Open the file with the module's ``open_file``."""
        choice = (engine,) if self.engines > 1 else ()
        opened: OpenFile = importlib.import_module(self.module).open_file(path, *choice)
        return opened


_TEXT = Format("text", "ingest.readers.text")
_MARKDOWN = Format("markdown", "ingest.readers.text")
_HTML = Format("html", "ingest.readers.html")

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        ".pdf": Format("pdf", "ingest.readers.pdf", engines=2),
        ".txt": _TEXT,
        ".text": _TEXT,
        ".rst": _TEXT,
        ".md": _MARKDOWN,
        ".markdown": _MARKDOWN,
        ".html": _HTML,
        ".htm": _HTML,
        ".xhtml": _HTML,
        ".docx": Format("docx", "ingest.readers.docx"),
        ".odt": Format("odt", "ingest.readers.odt"),
        ".epub": Format("epub", "ingest.readers.epub"),
    }
)
_GZIPPED = frozenset(suffix for suffix, known in FORMATS.items() if known.kind in {"text", "markdown", "html"})


def suffix_of(path: Path) -> str:
    """Give the lower-case suffix that decides the reader, a trailing ``.gz`` left out: ``.txt`` for a.txt.gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        inner = suffixes[-2] if len(suffixes) > 1 else ""
        return inner if inner in _GZIPPED else ".gz"
    return suffixes[-1] if suffixes else ""


def stem_of(path: Path) -> str:
    """Give the file's name without the suffix that decides the reader and without ``.gz``."""
    name = path.name
    for suffix in (".gz", suffix_of(path)):
        if suffix and name.lower().endswith(suffix):
            name = name[: -len(suffix)]
    return name or path.name


def format_of(path: Path) -> Format | None:
    """Give what reads the path, by its suffix, or None."""
    return FORMATS.get(suffix_of(path))


def supported(path: Path) -> bool:
    """Tell whether there is a reader for the path's suffix."""
    return format_of(path) is not None


def open_file(path: Path, engine: int = 0) -> OpenFile:
    """Open a file with the reader of its suffix, beginning with that one of the reader's engines.

    Raises:
        ReadError: There is no such reader, or the file is damaged, encrypted or not what its suffix says.
    """
    known = format_of(path)
    if known is None:
        raise ReadError(no_reader(path))
    return known.open(path, engine)


def no_reader(path: Path) -> str:
    """Say that nothing reads files of this suffix."""
    return f"no reader for files ending in {path.suffix!r}" if path.suffix else "no reader for files without a suffix"


def reason_of(error: BaseException) -> str:
    """Say in one short sentence what went wrong."""
    if isinstance(error, ReadError):
        return error.reason
    if isinstance(error, OSError) and error.strerror:
        return unreadable(error)
    first_line = (str(error).strip().splitlines() or [""])[0]
    return f"damaged: {type(error).__name__}: {first_line}"[:_REASON_LENGTH].rstrip(": ")


def unreadable(error: OSError) -> str:
    """Say in one short sentence why the operating system does not give a file."""
    if error.errno == errno.ENAMETOOLONG:
        return "cannot be read: its name is too long, give it or the folders above it shorter ones"
    return f"cannot be read: {error.strerror}"


def whole(
    kind: str,
    pages: tuple[str, ...],
    *,
    title: str = "",
    metadata: Mapping[str, Any] | None = None,
    warnings: tuple[str, ...] = (),
) -> OpenFile:
    """Wrap pages that are already in memory."""
    return OpenFile(
        kind=kind,
        page_count=len(pages),
        page=pages.__getitem__,
        title=title,
        metadata=dict(metadata or {}),
        warnings=warnings,
    )
