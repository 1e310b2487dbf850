"""PDF by pypdf."""

import contextlib
import io
import logging
from pathlib import Path

import pypdf
from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

from ingest.readers import NEEDS_PASSWORD, ReadError
from ingest.readers.pdf_fonts import mend_pages

# What a damaged file makes pypdf raise beside its own errors.
_DAMAGE = (PyPdfError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, OSError)

logging.getLogger("pypdf").addHandler(logging.NullHandler())
logging.getLogger("pypdf").propagate = False


class PypdfDocument:
    """A PDF opened by pypdf."""

    def __init__(self, path: Path) -> None:
        """Open it, with an empty user password where it is encrypted.

        Raises:
            ReadError: It is not a PDF, is damaged or needs a password.
        """
        self._mended: set[int] = set()
        self._stream = path.open("rb")
        try:
            self._reader = pypdf.PdfReader(self._stream)
            if self._reader.is_encrypted and not self._reader.decrypt(""):
                raise ReadError(NEEDS_PASSWORD)
            self.page_count = len(self._reader.pages)
            self.info = self._info()
        except BaseException as error:
            self._stream.close()
            if isinstance(error, FileNotDecryptedError):
                raise ReadError(NEEDS_PASSWORD) from error
            if isinstance(error, (*_DAMAGE, DependencyError)):
                raise ReadError(f"not a PDF: {_first_line(error)}") from error
            raise

    def _info(self) -> dict[str, str]:
        with contextlib.suppress(*_DAMAGE):
            return {key.removeprefix("/"): str(value) for key, value in (self._reader.metadata or {}).items() if value}
        return {}

    def page(self, index: int) -> str:
        """Give the raw text of a page, its fonts mended.

        Raises:
            ReadError: The page cannot be read.
        """
        try:
            page = self._reader.pages[index]
            with contextlib.suppress(*_DAMAGE):  # a font that cannot be mended is read as it is
                mend_pages([page], self._mended)
            return page.extract_text()
        except _DAMAGE as error:
            raise ReadError(f"damaged: {_first_line(error)}") from error

    def mended(self) -> bytes | None:
        """Give the bytes of the whole file with its fonts mended, or None where nothing can be mended."""
        out = io.BytesIO()
        try:
            if not mend_pages(self._reader.pages, self._mended):
                return None
            pypdf.PdfWriter(clone_from=self._reader).write(out)
        except _DAMAGE:
            return None
        return out.getvalue()

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()


def mended(path: Path) -> bytes | None:
    """Give the bytes of the PDF with all its fonts mended, or None where nothing can be mended."""
    try:
        with contextlib.closing(PypdfDocument(path)) as document:
            return document.mended()
    except ReadError:
        return None


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
