"""Search: a question or a few words, and the documents that answer, each with where in it they stand."""

import streamlit as st

from indexes.filters import Filter
from indexes.records import StoredDocument
from lmk_rag.results import MODES, Results
from lmk_rag.search import Searcher
from ui.components.empty import no_collection, nothing_indexed, welcome
from ui.components.filters import filter_of, kinds_of, show_filters
from ui.components.frontend import show_from_top
from ui.components.hits import show_hits
from ui.components.markup import tag, text
from ui.components.query import ask_query, tell_no_document, tell_no_number, tell_unknown
from ui.components.session import attempt, has_collection, key_of, searcher, through_app
from ui.components.viewer import place, show_viewer

HITS = 10


@st.cache_resource(show_spinner=False, max_entries=60)
def _search(
    _searcher: Searcher, key: tuple[str, str, int], query: str, mode: str, conditions: Filter, like: int | None
) -> Results:
    if like is not None:
        return _searcher.more_like(like, HITS, filter=conditions or None)
    return _searcher.search(query, HITS, mode, filter=conditions or None)


def _show_controls(found: Searcher, *, modes: bool) -> tuple[str, str, Filter]:
    """Show the search box, the modes where they matter, and what narrows the search; all stand in the address."""
    query = ask_query("search", _forget_like)
    tell_unknown("mode", MODES)
    tell_unknown("type", kinds_of(found))
    tell_no_number("pages")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        mode = _show_modes() if modes else MODES[0]
        conditions = show_filters(found)
    return query, mode, filter_of(conditions)


def _show_modes() -> str:
    chosen = st.segmented_control(
        "Mode",
        MODES,
        default=MODES[0],
        required=True,
        key="mode",
        bind="query-params",
        label_visibility="collapsed",
        help="hybrid: by meaning and by words; dense: by meaning, the vectors; bm25: by words.",
    )
    return chosen or MODES[0]


def _forget_like() -> None:
    st.query_params.pop("like", None)


def _liked(found: Searcher) -> StoredDocument | None:
    """Tell which document others are wanted like, by the address."""
    asked = st.query_params.get("like", "")
    return found.collection.get(int(asked)) if asked.isdecimal() else None


def _show_liked(document: StoredDocument) -> None:
    show_from_top(f"like {document.id}")
    with st.container(horizontal=True, vertical_alignment="center", wrap=False):
        st.html(tag("div", text(f"Documents like: {document.title or document.path}"), "lr-title"))
        st.button("Back to the search", icon=":material/arrow_back:", type="tertiary", on_click=_forget_like)


def _show_results(
    found: Searcher, query: str, mode: str, conditions: Filter, like: StoredDocument | None
) -> Results | None:
    results = None
    with attempt():
        if like is not None:
            _show_liked(like)
        if query or like is not None:
            with st.spinner("Searching (the first search loads the model) …"):
                results = _search(found, key_of(found), query, mode, conditions, like.id if like else None)
            show_hits(found, results, narrowed=bool(conditions))
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
        like = _liked(found)
        tell_no_document("like", found=like is not None)
        tell_no_document("doc", found=place() is not None)
        query, mode, conditions = _show_controls(found, modes=like is None)
        if place() is None:
            _show_results(found, query, mode, conditions, like)
            return
        left, right = st.columns([1, 1], gap="medium")
        with left:
            results = _show_results(found, query, mode, conditions, like)
        with right:
            show_viewer(query, results.pooling if results else None)


through_app()
main()
