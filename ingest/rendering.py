"""A page of a PDF as a picture, with the passages of its text highlighted."""

import io
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium_c
from PIL import Image, ImageChops, ImageDraw

from ingest.alignment import find_ranges
from ingest.readers import ReadError
from ingest.readers.pdf_pdfium import LOCK as PDFIUM_LOCK

_YELLOW = (255, 226, 92)
_MARGIN = 1.5
"""Pixels that a rectangle reaches beyond its line."""
_LARGEST = 4000
"""Pixels on a side, at most: a poster's page is drawn smaller."""

Rectangle = tuple[float, float, float, float]
"""Left, top, right and bottom in pixels of the picture."""


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page as a picture.

    Attributes:
        png: the picture's file.
        width: in pixels.
        height: in pixels.
        rectangles: what is highlighted, for each span that was asked for, line by line; empty where the span was not
            found on the page.
    """

    png: bytes
    width: int
    height: int
    rectangles: tuple[tuple[Rectangle, ...], ...]


def render_page(
    path: str | Path, number: int, *, width: int = 1100, text: str = "", spans: Sequence[tuple[int, int]] = ()
) -> RenderedPage:
    """Draw a page of a PDF.

    Args:
        path: the file.
        number: of the page, from 1.
        width: of the picture, in pixels.
        text: the page's text as the collection has it.
        spans: code points [start, end) of ``text`` that are to be highlighted.

    Raises:
        ReadError: the file cannot be opened, or has no such page.
        OSError: the file is gone or may not be read.
    """
    with Path(path).open("rb") as stream:
        data = stream.read()  # a file that changes while it is drawn must not crash the engine
    with PDFIUM_LOCK:
        try:
            with closing(pypdfium2.PdfDocument(data)) as document:
                if not 1 <= number <= len(document):
                    raise ReadError(f"{path} has {len(document)} pages, and page {number} was asked for")
                with closing(document[number - 1]) as page:
                    return _draw(page, width, text, spans)
        except pypdfium2.PdfiumError as error:
            raise ReadError(f"{path} cannot be drawn: {error}") from error


def _draw(page: pypdfium2.PdfPage, width: int, text: str, spans: Sequence[tuple[int, int]]) -> RenderedPage:
    page_width, page_height = page.get_size()
    scale = min(width / page_width, _LARGEST / page_height)
    with closing(page.render(scale=scale)) as bitmap:
        picture = bitmap.to_pil().convert("RGB")
        to_pixels = bitmap.get_posconv(page)
        with closing(page.get_textpage()) as text_page:
            characters = _characters(text_page) if spans else []
            found = tuple(_rectangles(text_page, characters, text, span, to_pixels) for span in spans)
    picture = _highlight(picture, [each for rectangles in found for each in rectangles])
    out = io.BytesIO()
    picture.save(out, "PNG", compress_level=1)
    return RenderedPage(out.getvalue(), picture.width, picture.height, found)


def _characters(text_page: pypdfium2.PdfTextPage) -> list[str]:
    """Give PDFium's characters one by one, since its text leaves some of them out; a lone surrogate is empty."""
    codes = [pdfium_c.FPDFText_GetUnicode(text_page, index) for index in range(text_page.count_chars())]
    return ["" if 0xD800 <= code < 0xE000 or code > 0x10FFFF else chr(code) for code in codes]


def _rectangles(
    text_page: pypdfium2.PdfTextPage,
    characters: Sequence[str],
    text: str,
    span: tuple[int, int],
    to_pixels: pypdfium2.PdfPosConv,
) -> tuple[Rectangle, ...]:
    found = []
    for first, last in find_ranges(text, characters, *span):
        for index in range(text_page.count_rects(first, last - first)):
            left, bottom, right, top = text_page.get_rect(index)
            (x0, y0), (x1, y1) = to_pixels.to_bitmap(left, top), to_pixels.to_bitmap(right, bottom)
            found.append((min(x0, x1) - _MARGIN, min(y0, y1) - _MARGIN, max(x0, x1) + _MARGIN, max(y0, y1) + _MARGIN))
    return tuple(found)


def _highlight(picture: Image.Image, rectangles: Sequence[Rectangle]) -> Image.Image:
    """Lay a highlighter's colour over a picture: white turns yellow, black stays black."""
    if not rectangles:
        return picture
    layer = Image.new("RGB", picture.size, "white")
    draw = ImageDraw.Draw(layer)
    for rectangle in rectangles:
        draw.rectangle(rectangle, fill=_YELLOW)
    return ImageChops.multiply(picture, layer)
