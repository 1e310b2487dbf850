"""The evidence strip: a document as one thin bar of similarity, which opens the place that is clicked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from indexes.records import StoredDocument
from lmk_rag.results import StripCell
from lmk_rag.search import Searcher
from ui.components.frontend import component
from ui.components.markup import shortened, tag, text
from ui.components.session import key_of

_MOST_CELLS = 160
"""What a bar of some hundred pixels can show."""
_TEXT = 180
_CONTRAST = 2.0
"""Above 1, the middle of the scale is paler: what stands out is seen at a glance."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of the bar: a stretch of one page, and how it begins."""

    page: int
    start: int
    end: int
    score: float
    size: int
    text: str


WITHOUT_EVIDENCE = frozenset({"cls", "lasttoken", "max"})
"""The poolings of which a document has its vector alone."""
Strip = tuple[Cell, ...]
Scale = tuple[float, float]


def strip_of(searcher: Searcher, document: int, query: str, pooling: str | None) -> Strip:
    """Give the cells of a document's bar; none where the pooling keeps no evidence."""
    return _strip_of(searcher, key_of(searcher), document, query, pooling)


@st.cache_resource(show_spinner=False, max_entries=500)
def _strip_of(_searcher: Searcher, key: tuple[str, str, int], document: int, query: str, pooling: str | None) -> Strip:
    cells = _searcher.strip(document, query, pooling)
    if not cells:
        return ()
    pages = _searcher.collection.page_texts(document)
    size = -(-len(cells) // _MOST_CELLS)
    groups = [cells[at : at + size] for at in range(0, len(cells), size)]
    return tuple(_joined(group, pages) for group in groups)


def _joined(group: Sequence[StripCell], pages: Sequence[str]) -> Cell:
    """Let the best of several neighbours stand for them all."""
    best = max(group, key=lambda cell: cell.score)
    words = shortened(pages[best.page - 1][best.start : best.end], _TEXT)
    return Cell(best.page, best.start, best.end, best.score, sum(cell.end - cell.start for cell in group), words)


_ALIKE = 0.02
"""Cosines that differ by less are told by their height, not by their difference."""


def scale_of(strips: Sequence[Strip]) -> Scale:
    """Give the scores that are cold and hot, the same for bars that stand together, so that they compare.

    The lowest tenth is all cold: one stretch that has nothing to do with the query must not make the rest look warm.
    """
    scores = sorted(cell.score for strip in strips for cell in strip)
    if not scores:
        return 0.0, 1.0
    low, high = scores[len(scores) // 10], scores[-1]
    return (low, high) if high - low > _ALIKE else (min(0.0, low), high)  # where all are alike, all are as warm


_LONG = 10_000
"""Characters from which on a hundredth of a text has room for several passages."""


def far_into(start: int, characters: int) -> str:
    """Say how far into a text of so many characters a place is."""
    return f"{100 * start / max(characters, 1):.{characters > _LONG:d}f} %"


def where(document: StoredDocument | None, page: int, start: int) -> str:
    """Name a place of a document: its page, or where there is but one, how far into the text it is.

    Args:
        document: None where it has been removed.
        page: from 1 on.
        start: code points into the page's text.
    """
    if document is None or document.pages > 1:
        return f"p. {page}"
    return far_into(start, document.characters)


def show_lacking_strip(pooling: str) -> None:
    """Say, where the bar would be, that a pooling keeps nothing that it could be drawn from."""
    told = "Its vector alone is kept, so that nothing tells where in the document it matches."
    st.html(tag("div", text(f"{pooling} keeps no evidence"), "lr-no-strip", told))


def show_strip(
    strip: Strip,
    scale: Scale,
    key: str,
    on_open: Callable[[int, int, int], None],
    page: int | None = None,
    one_page: bool = False,
) -> None:
    """Show a bar.

    Args:
        strip: its cells.
        scale: the scores that are cold and hot.
        key: of the element.
        on_open: called with page, start and end of the piece that was clicked.
        page: the one that is open beside it.
        one_page: the document has one page only, whose number says nothing: how far into it a piece is, does.
    """
    low, high = scale
    length = max((cell.end for cell in strip), default=0)
    cells = [
        {
            "where": far_into(cell.start, length) if one_page else f"Page {cell.page}",
            "score": round(cell.score, 3),
            "heat": round(max((cell.score - low) / max(high - low, 1e-6), 0.0) ** _CONTRAST, 3),
            "size": max(cell.size, 1),
            "text": cell.text,
            "here": cell.page == page and not one_page,
            "target": [cell.page, cell.start, cell.end],
        }
        for cell in strip
    ]

    def opened() -> None:
        target = st.session_state[key].opened
        if target:
            on_open(*target)

    component("strip", '<div class="bar" role="slider" tabindex="0"></div><div class="hint" hidden></div>')(
        key=key,
        data={"label": "Where the document matches, from first to last page", "cells": cells},
        on_opened_change=opened,
    )
