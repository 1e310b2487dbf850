"""Search: a question or a few words, and the documents that answer, each with where in it they stand."""

import streamlit as st

from indexes.filters import Filter
from lmk_rag.results import MODES, Results
from lmk_rag.search import Searcher
from ui.components.empty import no_collection, nothing_indexed, welcome
from ui.components.filters import filter_of, show_filters
from ui.components.hits import show_hits
from ui.components.markup import tag, text
from ui.components.session import attempt, has_collection, key_of, searcher
from ui.components.viewer import place, show_viewer

HITS = 10


@st.cache_resource(show_spinner=False, max_entries=60)
def _search(
    _searcher: Searcher, key: tuple[str, str, int], query: str, mode: str, conditions: Filter, like: int | None
) -> Results:
    if like is not None:
        return _searcher.more_like(like, HITS, filter=conditions or None)
    return _searcher.search(query, HITS, mode, filter=conditions or None)


def _show_controls(found: Searcher) -> tuple[str, str, Filter]:
    """Show the search box and what narrows the search; both stand in the address."""
    query = st.text_input(
        "Search",
        key="q",
        bind="query-params",
        placeholder="A question, or a few words",
        icon=":material/search:",
        label_visibility="collapsed",
        on_change=_forget_like,
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        mode = st.segmented_control(
            "Mode",
            MODES,
            default=MODES[0],
            required=True,
            key="mode",
            bind="query-params",
            label_visibility="collapsed",
            help="hybrid: by meaning and by words; dense: by meaning, the vectors; bm25: by words.",
        )
        conditions = show_filters(found)
    return (query or "").strip(), mode or MODES[0], filter_of(conditions)


def _forget_like() -> None:
    st.query_params.pop("like", None)


def _liked(found: Searcher) -> int | None:
    """Tell which document others are wanted like, by the address."""
    asked = st.query_params.get("like", "")
    if not asked.isdecimal():
        return None
    document = found.collection.get(int(asked))
    if document is None:
        return None
    with st.container(horizontal=True, vertical_alignment="center", wrap=False):
        st.html(tag("div", text(f"Documents like: {document.title or document.path}"), "lr-title"))
        st.button("Back to the search", icon=":material/arrow_back:", type="tertiary", on_click=_forget_like)
    return document.id


def _show_results(found: Searcher, query: str, mode: str, conditions: Filter) -> Results | None:
    results = None
    with attempt():
        like = _liked(found)
        if query or like is not None:
            with st.spinner("Searching (the first search loads the model) …"):
                results = _search(found, key_of(found), query, mode, conditions, like)
            show_hits(found, results)
        else:
            welcome(found)
    return results


def main() -> None:
    """Show the page."""
    if not has_collection():
        no_collection()
        return
    with attempt():
        found = searcher()
        if not found.collection.count():
            nothing_indexed()
            return
        query, mode, conditions = _show_controls(found)
        if place() is None:
            _show_results(found, query, mode, conditions)
            return
        left, right = st.columns([1, 1], gap="medium")
        with left:
            results = _show_results(found, query, mode, conditions)
        with right:
            show_viewer(query, results.pooling if results else None)


main()
