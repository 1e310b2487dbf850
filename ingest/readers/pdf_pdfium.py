"""PDF by pypdfium2. PDFium is not thread-safe: one lock around every call."""

import contextlib
import re
import threading
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium_c

from ingest.readers import NEEDS_PASSWORD, ReadError

LOCK = threading.RLock()
_REASONS = {
    pdfium_c.FPDF_ERR_FILE: "not a PDF: it cannot be opened as one",
    pdfium_c.FPDF_ERR_FORMAT: "not a PDF: its format is wrong or it is damaged",
    pdfium_c.FPDF_ERR_PASSWORD: NEEDS_PASSWORD,
    pdfium_c.FPDF_ERR_SECURITY: "encrypted in a way that is not supported",
}
# PDFium writes U+FFFE for the hyphen of a word broken over two lines, and for a glyph that maps to NUL.
_MARK = re.compile("\ufffe")
_HYPHEN_AND_LINE_END = "-\n"
_UNMAPPED = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ue000-\uf8ff]")


class PdfiumDocument:
    """A PDF opened by PDFium."""

    def __init__(self, path: Path) -> None:
        """Open it; an empty user password is tried by PDFium itself.

        Raises:
            ReadError: It is not a PDF, is damaged or needs a password.
        """
        self._path = path
        self._mended = False
        with LOCK:
            try:
                self._pdf = pypdfium2.PdfDocument(path)
            except pypdfium2.PdfiumError as error:
                raise ReadError(_REASONS.get(error.err_code, f"damaged: {error}")) from error
            self.page_count = len(self._pdf)
            self.info: dict[str, str] = self._pdf.get_metadata_dict(skip_empty=True)

    def page(self, index: int) -> str:
        """Give the raw text of a page, lone surrogates kept; glyphs without letters are NUL.

        Raises:
            ReadError: The page cannot be read.
        """
        with LOCK:
            try:
                text, dropped = self._text(index)
                if (dropped or _UNMAPPED.search(text)) and self._mend():
                    text, _ = self._text(index)
            except pypdfium2.PdfiumError as error:
                raise ReadError(f"damaged: {error}") from error
        return text

    def _text(self, index: int) -> tuple[str, int]:
        """Give a page's text and how many of its characters PDFium left out."""
        with contextlib.closing(self._pdf[index]) as page, contextlib.closing(page.get_textpage()) as text_page:
            text = str(text_page.get_text_range(errors="surrogatepass"))
            dropped = text_page.count_chars() - len(text.encode("utf-16-le", "surrogatepass")) // 2
            return _MARK.sub(lambda match: _meaning(text_page, text, match.start()), text), max(dropped, 0)

    def _mend(self) -> bool:
        """Open the file anew with its fonts mended, the first time that a page has glyphs without letters."""
        if self._mended:
            return False
        self._mended = True
        from ingest.readers.pdf_pypdf import mended

        data = mended(self._path)
        if data is None:
            return False
        try:
            pdf = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError:
            return False
        if len(pdf) != self.page_count:
            pdf.close()
            return False
        self._pdf.close()
        self._pdf = pdf
        return True

    def close(self) -> None:
        """Let go of the file."""
        with LOCK:
            self._pdf.close()


def _meaning(text_page: pypdfium2.PdfTextPage, text: str, at: int) -> str:
    units = len(text[:at].encode("utf-16-le", "surrogatepass")) // 2
    character = pdfium_c.FPDFText_GetCharIndexFromTextIndex(text_page, units)
    return _HYPHEN_AND_LINE_END if pdfium_c.FPDFText_IsHyphen(text_page, character) == 1 else "\0"
