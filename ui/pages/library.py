"""The Library: files in, every document with its state, and the collection as figures and as a map."""

import streamlit as st

from ingest.uploads import keep
from lmk_rag.search import Searcher
from ui.components.collection_map import show_map
from ui.components.documents import show_documents
from ui.components.figures import show_figures
from ui.components.running import begin_ingest, show_job
from ui.components.session import attempt, choices, has_collection, jobs, path_named, searcher, through_app
from ui.components.viewer import place, show_in_dialog

KINDS = ["pdf", "txt", "md", "html", "htm", "docx", "epub", "odt", "rst", "gz"]


def _show_adding() -> None:
    """Show the two ways in: dropping files, and naming a folder of this machine."""
    running = jobs().current is not None and jobs().current.running  # type: ignore[union-attr]
    with st.expander("Add documents", icon=":material/library_add:", expanded=not has_collection()):
        files, folder = st.columns(2, gap="medium")
        with files, st.form("drop", clear_on_submit=True, border=False):
            dropped = st.file_uploader("Drop files", type=KINDS, accept_multiple_files=True, key="dropped")
            st.caption("They are copied into the collection's folder.")
            if st.form_submit_button("Index these files", icon=":material/upload_file:", disabled=running):
                _take(dropped or [])
        with folder, st.form("name", border=False):
            named = st.text_input("Or name a file or folder of this machine", key="folder", placeholder="~/papers")
            st.caption("Everything below it is read; what is there already and has not changed is passed over.")
            if st.form_submit_button("Index this folder", icon=":material/create_new_folder:", disabled=running):
                _read(named or "")


def _take(dropped: list[st.runtime.uploaded_file_manager.UploadedFile]) -> None:
    if not dropped:
        st.info("Drop some files first.", icon=":material/info:")
        return
    kept = []
    for file in dropped:
        with attempt():
            kept.append(keep(choices().collection, file.name, file.getvalue()))
    if kept:
        begin_ingest(kept)
        st.rerun()


def _read(named: str) -> None:
    if not named.strip():
        st.info("Name a file or a folder first.", icon=":material/info:")
        return
    with attempt():
        path = path_named(named)
        if not path.exists():
            raise ValueError(f"There is no {path}: name a file or folder of this machine by its whole path.")
        begin_ingest([path])
        st.rerun()


def _show_collection(found: Searcher) -> None:
    documents, figures, picture = st.tabs(
        ["Documents", "Collection", "Map"], key="tab", on_change="rerun", bind="query-params"
    )
    if documents.open:
        with documents:
            show_documents(found)
    if figures.open:
        with figures:
            show_figures(found)
    if picture.open:
        with picture:
            show_map(found)


def main() -> None:
    """Show the page."""
    show_job()
    _show_adding()
    if not has_collection():
        return
    with attempt():
        found = searcher()
        _show_collection(found)
        if place() is not None:
            show_in_dialog()


through_app()
main()
