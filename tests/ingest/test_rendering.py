"""Pages drawn with their highlights, checked on the drawn pixels and against PDFium's own reading of the rectangles."""

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from ingest.readers import ReadError
from ingest.rendering import render_page

FIRST = "Whales sing in the deep sea."
SECOND = "They breathe air at the surface."


@pytest.fixture
def pdf(tmp_path: Path) -> Path:
    """Two lines at known places on the second page: 100 points from the left, 700 and 500 from below."""
    path = tmp_path / "whales.pdf"
    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    canvas.showPage()
    canvas.setFont("Helvetica", 12)
    canvas.drawString(100, 700, FIRST)
    canvas.drawString(100, 500, SECOND)
    canvas.showPage()
    canvas.setPageRotation(90)
    canvas.drawString(100, 300, FIRST)
    canvas.showPage()
    canvas.save()
    return path


Pixels = npt.NDArray[np.uint8]


def picture(png: bytes) -> Pixels:
    """The picture's pixels, row by row."""
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def inside(pixels: Pixels, left: float, top: float, right: float, bottom: float) -> Pixels:
    return pixels[int(top) : int(bottom), int(left) : int(right)]


def test_a_span_is_highlighted_where_it_stands(pdf: Path) -> None:
    text = f"{FIRST}\n{SECOND}"
    page = render_page(pdf, 2, width=1000, text=text, spans=[(text.index("They"), len(text))])
    [[(left, top, right, bottom)]] = page.rectangles
    scale = 1000 / A4[0]
    assert left == pytest.approx(100 * scale, abs=4)
    assert top < (A4[1] - 500) * scale < bottom + 1
    assert bottom - top < 30
    drawn = picture(page.png)
    assert drawn.shape == (page.height, page.width, 3)
    assert page.width == 1000
    assert page.height == pytest.approx(1000 * A4[1] / A4[0], abs=1)
    red, green, blue = drawn[int(top) + 1, int(right) - 1]
    assert red > 240
    assert blue < 120 < green
    other_line = drawn[int((A4[1] - 704) * scale)]
    assert (other_line[:100] == 255).all()  # the other line stays white
    assert inside(drawn, left, top, right, bottom).min() < 60  # the letters stay dark


def test_without_spans_nothing_is_highlighted(pdf: Path) -> None:
    page = render_page(pdf, 2, width=500)
    assert page.rectangles == ()
    drawn = picture(page.png)
    assert (drawn[..., 0] == drawn[..., 2]).all()  # nothing but grey


def test_a_turned_page_has_its_rectangles_turned(pdf: Path) -> None:
    page = render_page(pdf, 3, width=1000, text=FIRST, spans=[(0, len(FIRST))])
    [[(left, top, right, bottom)]] = page.rectangles
    assert bottom - top > 3 * (right - left)
    highlighted = inside(picture(page.png), left, top, right, bottom)
    assert highlighted.min() < 60  # the letters are there
    assert highlighted[..., 2].max() < 130  # on yellow


def test_a_span_that_is_not_on_the_page_is_told(pdf: Path) -> None:
    assert render_page(pdf, 1, text="Something else entirely", spans=[(0, 20)]).rectangles == ((),)


def test_what_cannot_be_drawn_is_one_sentence(pdf: Path, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="has 3 pages, and page 4 was asked for"):
        render_page(pdf, 4)
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 and nothing more")
    with pytest.raises(ReadError, match=r"broken\.pdf cannot be drawn"):
        render_page(tmp_path / "broken.pdf", 1)
    with pytest.raises(FileNotFoundError):
        render_page(tmp_path / "absent.pdf", 1)
