"""Real files, made on the spot."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

MakePdf = Callable[..., Path]


def pdf_bytes(pages: Sequence[str], **about: str) -> bytes:
    """A PDF with these lines of text on its pages; an empty page has no text at all."""
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pageCompression=1, initialFontName="Helvetica", initialFontSize=11)
    for name, value in about.items():
        getattr(canvas, f"set{name.capitalize()}")(value)
    for page in pages:
        for row, line in enumerate(page.split("\n")):
            canvas.drawString(72, 770 - 14 * row, line)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


@pytest.fixture
def make_pdf(tmp_path: Path) -> MakePdf:
    """Writes a PDF with the given pages into the test's folder."""

    def make(*pages: str, name: str = "document.pdf", **about: str) -> Path:
        path = tmp_path / name
        path.write_bytes(pdf_bytes(pages, **about))
        return path

    return make
