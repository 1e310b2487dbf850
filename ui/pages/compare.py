"""Compare: one query by several poolings side by side, and the collection's own test."""

import streamlit as st

from indexes.errors import CollectionError
from lmk_rag.comparison import BM25, Column, compare
from lmk_rag.indexing import own_records, refuse_foreign
from lmk_rag.search import Searcher
from lmk_rag.wording import count
from ui.components.columns import show_columns
from ui.components.empty import no_collection, nothing_indexed, say
from ui.components.markup import tag, text
from ui.components.own_test import show_own_test
from ui.components.query import ask_query
from ui.components.running import begin_pooling, show_job
from ui.components.session import attempt, has_collection, jobs, key_of, searcher, through_app
from ui.components.viewer import place, show_in_dialog

HITS = 8
POOLINGS = ("lmk", "cls", "mean")
NAMES = {"lmk": "LMK", "cls": "CLS", "mean": "mean", BM25: "BM25"}


@st.cache_resource(show_spinner=False, max_entries=30)
def _compare(_searcher: Searcher, key: tuple[str, str, int], query: str, names: tuple[str, ...]) -> tuple[Column, ...]:
    return compare(_searcher, query, names, HITS)


def _indexed(found: Searcher) -> list[str]:
    return [record.pooling for record in own_records(found.collection)]


def _show_missing(found: Searcher) -> None:
    """Offer to index the poolings that the collection lacks, or has for a part of its documents."""
    try:
        refuse_foreign(found.collection)
    except CollectionError as error:
        st.html(tag("div", text(error), "lr-note"))
        return
    lacking = {}
    for pooling in POOLINGS:
        record = found.collection.encoder(pooling)
        missing = len(found.collection.missing(record.id)) if record else found.collection.count()
        if missing:
            lacking[pooling] = missing
    if not lacking:
        return
    current = jobs().current
    with st.container(border=True, key="lacking"):
        st.caption(
            "Each pooling is compared by vectors of its own. Making them reads every document once, "
            "for CLS the first window of each."
        )
        with st.container(horizontal=True):
            for pooling, missing in lacking.items():
                st.button(
                    f"Index {NAMES[pooling]} ({count(missing, 'document')})",
                    key=f"index-{pooling}",
                    icon=":material/bolt:",
                    disabled=current is not None and current.running,
                    on_click=begin_pooling,
                    args=(pooling,),
                )


def _show_comparison(found: Searcher, query: str, names: tuple[str, ...]) -> None:
    if not query:
        say(
            "The same query, by each pooling",
            "Type a query and press Enter. Each column ranks the documents by one vector a document, and nothing but "
            "the pooling differs; arrows say how a document moved against the first column.",
        )
        return
    with st.spinner("Comparing (the first query loads the models) …"):
        columns = _compare(found, key_of(found), query, names)
    show_columns(found, query, columns, NAMES)


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
        show_job()
        query = ask_query("compare")
        bm25 = st.toggle("BM25 as another column", key="bm25", bind="query-params")
        _show_missing(found)
        indexed = _indexed(found)
        ordered = [*(each for each in POOLINGS if each in indexed), *(each for each in indexed if each not in POOLINGS)]
        names = (*ordered, *([BM25] if bm25 or not ordered else []))
        _show_comparison(found, query, names)
        st.divider()
        show_own_test(found, (*ordered, BM25), NAMES)
        if place() is not None:
            show_in_dialog(query)


through_app()
main()
