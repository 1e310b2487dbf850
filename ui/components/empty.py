"""What a page says while there is nothing to show: what to do first."""

import streamlit as st

from lmk_rag.search import Searcher
from lmk_rag.wording import count
from ui.components.markup import tag, text
from ui.components.session import choices


def say(heading: str, words: str) -> None:
    """Say what a page is for, in its middle."""
    st.html(tag("div", tag("h3", text(heading)) + tag("p", text(words)), "lr-empty"))


def _to_library() -> None:
    with st.container(horizontal=True, horizontal_alignment="center"):
        if st.button("Add documents", icon=":material/library_add:", type="primary"):
            st.switch_page("pages/library.py")


def no_collection() -> None:
    """Say that there is no collection yet, and how to make one, on the page or by a command."""
    say(
        "There is no collection here yet",
        "Drop a few files or name a folder in the Library, and search them here. Or make the collection by the "
        "command below, then reload this page.",
    )
    _to_library()
    st.code(f'lmk-rag ingest FOLDER --collection "{choices().collection}"', language=None, wrap_lines=True)


def nothing_indexed() -> None:
    """Say that the collection is empty."""
    say("This collection is empty", "Drop a few files or name a folder in the Library first.")
    _to_library()


def welcome(searcher: Searcher) -> None:
    """Say what can be asked, before anything is."""
    documents = count(searcher.collection.count(), "document")
    say(
        f"Search {documents}",
        "Type a question or a few words and press Enter. Each hit shows where in the document the evidence stands: "
        "click a place on its strip to open that page.",
    )
