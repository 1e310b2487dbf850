"""A search page over one collection.

Everything that comes from a document goes through `st.text` or `st.code`, which show it letter for letter: a
document must not be able to put markup, formulas or links into the page.
"""

import os
from pathlib import Path

import streamlit as st

from indexes.errors import CollectionError
from lmk_rag.encoding.base_model import ModelError
from lmk_rag.search import Hit, Results, Searcher

HITS = 10


def collection_folder() -> Path:
    """The collection that the page shows: LMK_RAG_COLLECTION, else `lmk-collection` in the current folder."""
    return Path(os.environ.get("LMK_RAG_COLLECTION") or "lmk-collection").expanduser().absolute()


@st.cache_resource(show_spinner=False, max_entries=1)
def open_searcher(folder: str) -> Searcher:
    """The collection and, once it has been needed, its encoder: one for all visitors, not one a visit."""
    return Searcher.open(Path(folder))


def complain(error: Exception) -> None:
    """Shows an error's own sentence; it may quote a document or a path, so it is no Markdown."""
    st.error("That did not work.", icon="⚠️")
    st.text(str(error) or type(error).__name__)


def show_hit(hit: Hit) -> None:
    """One document: what it is, where it lies, and the passages that answer the query."""
    with st.container(border=True):
        st.text(f"{hit.rank}. {hit.title or Path(hit.path).name}")
        st.caption(f"score {hit.score:.3f}")
        st.code(hit.path, language=None, wrap_lines=True)
        for passage in hit.passages:
            st.caption(f"page {passage.page}, score {passage.score:.3f}")
            st.text(passage.text)


def show_results(results: Results) -> None:
    """The hits in order, or a sentence where there are none, after what the search itself has to say."""
    for note in results.notes:
        st.text(note)
    if not results.hits:
        st.info("Nothing was found. Try other words, or fewer of them.")
    for hit in results.hits:
        show_hit(hit)


def main() -> None:
    """The page."""
    st.set_page_config(page_title="lmk-rag", page_icon="🔎")
    st.title("lmk-rag")
    folder = collection_folder()
    st.text(f"Collection: {folder}")
    if not folder.exists():
        st.info("There is no collection here yet. Make one with the command below, then reload this page.")
        st.code(f'lmk-rag ingest FOLDER --collection "{folder}"', language=None, wrap_lines=True)
        return

    # Bound to the URL, so that a search can be bookmarked and sent to somebody.
    query = st.text_input("Search", key="q", bind="query-params", placeholder="A question, or a few words")
    if not query or not query.strip():
        st.caption("Type a question or a few words and press Enter.")
        return
    try:
        searcher = open_searcher(str(folder))
        with st.spinner("Searching (the first search loads the encoder) …"):
            results = searcher.search(query, k=HITS, mode="hybrid")
    except (CollectionError, ModelError, OSError) as error:
        complain(error)
        return
    show_results(results)


main()
