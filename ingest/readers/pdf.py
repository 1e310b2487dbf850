"""PDF files: two engines behind one small interface, the second where the first fails."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ingest.readers import NEEDS_PASSWORD, OpenFile, ReadError, reason_of
from ingest.readers.titles import sensible

_DATE = re.compile(r"D?:?(\d{4})(\d\d)?(\d\d)?(?:(\d\d)(\d\d)(\d\d)?)?")
_NAMES = {
    "Author": "author",
    "Subject": "subject",
    "Keywords": "keywords",
    "Creator": "creator",
    "Producer": "producer",
    "CreationDate": "created",
    "ModDate": "modified",
}


class PdfDocument(Protocol):
    """A PDF opened by one engine."""

    page_count: int
    info: dict[str, str]

    def page(self, index: int) -> str:
        """Give the raw text of a page."""

    def close(self) -> None:
        """Let go of the file."""


def _pdfium(path: Path) -> PdfDocument:
    from ingest.readers.pdf_pdfium import PdfiumDocument

    return PdfiumDocument(path)


def _pypdf(path: Path) -> PdfDocument:
    from ingest.readers.pdf_pypdf import PypdfDocument

    return PypdfDocument(path)


# The default first: docs/pdf-engines.md has the measurement.
ENGINES: dict[str, Callable[[Path], PdfDocument]] = {"pdfium": _pdfium, "pypdf": _pypdf}


class _Engines:
    """One file in all engines from the first one on, each opened when it is needed."""

    def __init__(self, path: Path, first: int) -> None:
        self._path = path
        self._left = list(ENGINES.values())[first:]
        self._open: list[PdfDocument] = []
        self._reasons: list[str] = []

    def first(self) -> PdfDocument:
        document = self._document(0)
        if document is None:
            raise ReadError(NEEDS_PASSWORD if NEEDS_PASSWORD in self._reasons else self._reasons[0])
        return document

    def page(self, index: int) -> str:
        """Give the page by the first engine that reads it."""
        reasons: list[str] = []
        at = 0
        while (document := self._document(at)) is not None:
            at += 1
            try:
                return document.page(index)
            except MemoryError:
                raise
            except Exception as error:  # whatever a parser may raise on a damaged page
                reasons.append(reason_of(error))
        raise ReadError(reasons[0])

    def _document(self, at: int) -> PdfDocument | None:
        while len(self._open) <= at and self._left:
            opener = self._left.pop(0)
            try:
                self._open.append(opener(self._path))
            except (MemoryError, OSError):
                raise
            except Exception as error:
                self._reasons.append(reason_of(error))
        return self._open[at] if at < len(self._open) else None

    def close(self) -> None:
        for document in self._open:
            document.close()


def open_file(path: Path, engine: int = 0) -> OpenFile:
    """Open a PDF.

    Args:
        path: The file.
        engine: Where in `ENGINES` to begin: 1 leaves the default engine out.

    Raises:
        ReadError: No engine opens it, or only with a password.
    """
    with path.open("rb") as stream:
        head = stream.read(1024)
    if not head.strip(b"\0 \r\n\t"):
        raise ReadError("not a PDF: the file is empty" if not head else "not a PDF: it starts with nothing but blanks")
    engines = _Engines(path, engine)
    document = engines.first()
    return OpenFile(
        kind="pdf",
        page_count=document.page_count,
        page=engines.page,
        title=sensible(document.info.get("Title")),
        metadata={_NAMES[key]: _value(key, value) for key, value in document.info.items() if key in _NAMES},
        close=engines.close,
    )


def _value(key: str, value: str) -> str:
    """Write a PDF date (``D:20230103140826Z``) as ISO 8601; give anything else as it is."""
    match = _DATE.match(value) if key.endswith("Date") else None
    if match is None:
        return value
    year, month, day, hour, minute, second = match.groups()
    date = "-".join(part for part in (year, month, day) if part)
    return f"{date}T{hour}:{minute}:{second or '00'}" if hour and day else date
