"""The open document: a page as a picture or as text, with the place highlighted that was asked for."""

from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from indexes.records import StoredDocument
from ingest.readers import ReadError
from ingest.rendering import RenderedPage, render_page
from ingest.walk import fingerprint
from lmk_rag.passages import Passage
from lmk_rag.search import Searcher
from lmk_rag.wording import count
from ui.components.address import set_address
from ui.components.frontend import bring_into_sight, show_reader
from ui.components.markup import flowing, marked, shortened, tag, text
from ui.components.session import attempt, key_of, searcher
from ui.components.strip import WITHOUT_EVIDENCE, far_into, scale_of, show_lacking_strip, show_strip, strip_of

_FOUND = 6
_AROUND = 60_000
"""Characters of a long text that are shown on each side of what is marked."""


@dataclass(frozen=True, slots=True)
class Place:
    """What is open: a document, one of its pages, a piece of that page's text, and whose evidence is shown above it."""

    document: int
    page: int = 1
    start: int = 0
    end: int = 0
    pooling: str | None = None


def place() -> Place | None:
    """Read what is open from the address."""
    try:
        document = int(st.query_params.get("doc", ""))
        page = max(int(st.query_params.get("page", 1)), 1)
        start, _, end = st.query_params.get("at", "").partition("-")
        return Place(document, page, *((int(start), int(end)) if end else (0, 0)), st.query_params.get("by"))
    except ValueError:  # an address that was written by hand
        return None


def open_place(document: int, page: int = 1, start: int = 0, end: int = 0, pooling: str | None = None) -> None:
    """Open a document, in the address, so that a link to it opens the same; with a pooling, by its evidence."""
    at = f"{start}-{end}" if end > start else None
    set_address(doc=str(document), page=str(page), at=at, by=pooling)


def close_place(**others: str | None) -> None:
    """Close what is open, and set other parameters of the address in the same step."""
    set_address(doc=None, page=None, at=None, by=None, **others)


def show_viewer(query: str = "", pooling: str | None = None, closable: bool = True) -> None:
    """Show what is open; nothing where nothing is.

    Args:
        query: whose strip stands above the page.
        pooling: whose evidence that strip shows.
        closable: with a button that closes it; not in a dialog, which has its own.
    """
    with st.container(key="viewer"):
        _show(query, pooling, closable)


@st.dialog("Document", width="large", on_dismiss=close_place)
def show_in_dialog(query: str = "", pooling: str | None = None) -> None:
    """Show what is open over the page."""
    show_viewer(query, pooling, closable=False)


@st.fragment
def _show(query: str, pooling: str | None, closable: bool) -> None:
    opened = place()
    if opened is None:
        return
    with attempt():
        found = searcher()
        document = found.collection.get(opened.document)
        if document is None:
            st.info("That document is not in the collection any more.", icon=":material/info:")
            if st.button("Close"):
                close_place()
                st.rerun()
            return
        opened = replace(opened, page=min(opened.page, max(document.pages, 1)))
        known = {record.pooling for record in found.collection.encoders()}
        shown = opened.pooling if opened.pooling in known else pooling
        _show_head(document, closable)
        if query.strip() and shown in WITHOUT_EVIDENCE:
            show_lacking_strip(shown)
        elif query.strip():
            cells = strip_of(found, document.id, query, shown)
            if cells:
                show_strip(
                    cells,
                    scale_of([cells]),
                    f"strip-open-{document.id}",
                    lambda page, start, end: open_place(document.id, page, start, end, opened.pooling),
                    opened.page,
                    document.pages == 1,
                )
        if document.pages > 1:
            _show_turning(document, opened)
        share = _show_page(found, document, opened)
        bring_into_sight(f"{opened}", share)
        _show_finding(found, document, query)


def _show_head(document: StoredDocument, closable: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="top", wrap=False):
        name = document.title or Path(document.path).name
        st.html(tag("div", text(name), "lr-title") + tag("div", text(document.path), "lr-path"))
        if closable and st.button("Close", key="close-viewer", icon=":material/close:", type="tertiary"):
            close_place()
            st.rerun()


def _show_turning(document: StoredDocument, opened: Place) -> None:
    def turn(by: int) -> None:
        open_place(document.id, min(max(opened.page + by, 1), document.pages), pooling=opened.pooling)

    with st.container(horizontal=True, horizontal_alignment="center", vertical_alignment="center", wrap=False):
        st.button(
            "Previous",
            key="previous-page",
            icon=":material/chevron_left:",
            disabled=opened.page <= 1,
            on_click=turn,
            args=(-1,),
        )
        st.html(tag("div", text(f"Page {opened.page:,} of {document.pages:,}"), "lr-meta"), width="content")
        st.button(
            "Next",
            key="next-page",
            icon=":material/chevron_right:",
            icon_position="right",
            disabled=opened.page >= document.pages,
            on_click=turn,
            args=(1,),
        )


def _show_page(found: Searcher, document: StoredDocument, opened: Place) -> float | None:
    """Show the page; return how far down its picture the highlighted lines begin, where there are any."""
    pages = found.collection.page_texts(document.id)
    words = pages[opened.page - 1] if opened.page <= len(pages) else ""
    span = (opened.start, min(opened.end, len(words)))
    spans = [span] if span[1] > span[0] else []
    if document.kind == "pdf" and document.source == "file":
        try:
            drawn = _drawn(document.path, fingerprint(Path(document.path)), opened.page, words, tuple(spans))
        except (ReadError, OSError) as error:
            reason = error.reason if isinstance(error, ReadError) else "the file cannot be opened any more"
            _note(f"The page cannot be drawn ({reason}): this is the text that was indexed.")
        else:
            if (document.size, document.mtime_ns) != fingerprint(Path(document.path)):
                _note("The file has changed since it was indexed: index it again in the Library.")
            if spans and not any(drawn.rectangles):
                _note("The place was not found on the drawn page.")
            # As it was drawn: "auto" would make a JPEG of it, anew in each run.
            st.image(drawn.png, width="stretch", output_format="PNG", alt=f"Page {opened.page}")
            tops = [rectangle[1] for rectangles in drawn.rectangles for rectangle in rectangles]
            return min(tops) / drawn.height if tops else None
    begin = max(span[0] - _AROUND, 0)
    part = words[begin : begin + 2 * _AROUND]
    if len(part) < len(words):
        _note(f"A part of the page's {len(words):,} characters, around the place that was opened.")
    if not part.strip():
        _note("This page has no text.")
    show_reader(part, [(start - begin, end - begin) for start, end in spans], f"reader-{document.id}-{opened.page}")
    return None


def _note(words: str) -> None:
    st.html(tag("div", text(words), "lr-note"))


@st.cache_resource(show_spinner=False, max_entries=40)
def _drawn(
    path: str, state: tuple[int, int], number: int, words: str, spans: tuple[tuple[int, int], ...]
) -> RenderedPage:
    return render_page(path, number, text=words, spans=spans)


def _show_finding(found: Searcher, document: StoredDocument, query: str) -> None:
    asked = st.text_input(
        "Find in this document",
        value=query,
        key=f"find-{document.id}-{query}",
        icon=":material/search:",
        placeholder="Words, or a question",
    )
    if not asked or not asked.strip():
        return
    for number, passage in enumerate(_found(found, key_of(found), document.id, asked)):
        _show_found(document, passage, number)


def _show_found(document: StoredDocument, passage: Passage, number: int) -> None:
    with st.container(horizontal=True, vertical_alignment="top", wrap=False, gap="small"):
        where = f"Page {passage.page}" if document.pages > 1 else far_into(passage.start, document.characters)
        st.button(
            where,
            key=f"found-{document.id}-{number}",
            type="tertiary",
            on_click=open_place,
            args=(document.id, passage.page, passage.start, passage.end),
        )
        st.html(tag("div", marked(flowing(passage.text), passage.marks), "lr-passage", shortened(passage.text, 80)))


@st.cache_resource(show_spinner=False, max_entries=100)
def _found(_searcher: Searcher, key: tuple[str, str, int], document: int, query: str) -> tuple[Passage, ...]:
    return _searcher.find(document, query, _FOUND)


def described(kind: str, pages: int) -> str:
    """Say what a document is, as HTML: its kind and its number of pages."""
    return tag("span", text(kind), "lr-kind") + text(count(pages, "page"))
