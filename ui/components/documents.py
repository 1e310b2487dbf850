"""Every document and every failed file of the collection, as a table with what can be done to them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from indexes.listing import token_counts
from ingest.uploads import is_kept
from lmk_rag.search import Searcher
from lmk_rag.upkeep import mark_changed, remove
from lmk_rag.wording import count
from ui.components.markup import showable, tag, text
from ui.components.running import begin_ingest
from ui.components.session import attempt, choices, key_of
from ui.components.viewer import open_place

_COLUMNS = {
    "file": st.column_config.TextColumn("File", width=170),
    "title": st.column_config.TextColumn("Title", width=220),
    "folder": st.column_config.TextColumn("Folder", width=120),
    "state": st.column_config.TextColumn("State", width=90),
    "reason": st.column_config.TextColumn("Remarks", width=260),
    "type": st.column_config.TextColumn("Type", width=65),
    "pages": st.column_config.NumberColumn("Pages", width=65, format="localized"),
    "tokens": st.column_config.NumberColumn("Tokens", width=75, format="localized"),
}
_TOLD = 5
"""Selected rows whose whole path and remarks are told."""
_HEIGHT, _ROW = 430, 35
"""Pixels of the table, at most, and of one of its rows."""
STATES = ("indexed", "remarks", "incomplete", "failed")


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Rows that are selected: documents by id, failed files by path; and the path and remarks of all of them."""

    documents: list[int]
    failed: list[str]
    told: list[tuple[str, str]]


def show_documents(searcher: Searcher) -> None:
    """Show the table, what narrows it, and the buttons for the rows that are selected."""
    table, root = _table(searcher, key_of(searcher))
    if table.empty:
        st.caption("No document has been indexed yet.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        words = st.text_input(
            "Filter",
            key="listed",
            placeholder="Part of a name, title, path or remark",
            icon=":material/filter_list:",
            label_visibility="collapsed",
            bind="query-params",
        )
        states = [each for each in STATES if (table["state"] == each).any()]
        state = None
        if len(states) > 1:
            state = st.pills("State", states, key="state", bind="query-params", label_visibility="collapsed")
    shown = table
    if words and words.strip():
        shown = shown[shown["looked through"].str.contains(words.strip(), case=False, regex=False)]
    if state:
        shown = shown[shown["state"] == state]
    below = f"Folders are those below {root}. " if root else ""
    rows = f"{count(len(shown), 'row')} of {len(table):,}. {below}Select rows to open, index again or remove them."
    st.html(tag("div", text(rows), "lr-meta"))
    event = st.dataframe(
        shown[list(_COLUMNS)],
        hide_index=True,
        height=min(_HEIGHT, _ROW * (len(shown) + 1) + 3),
        column_config=_COLUMNS,
        placeholder="",
        on_select="rerun",
        selection_mode="multi-row",
        key=f"documents-{key_of(searcher)[2]}-{words}-{state}",  # a selection is of these rows
    )
    picked = shown.iloc[selected_rows(event)]
    documents = picked[picked["state"] != "failed"]
    failed = picked[picked["state"] == "failed"]
    told = list(zip(picked["path"], picked["reason"], strict=True))
    _show_actions(searcher, _Chosen(documents["id"].tolist(), failed["path"].tolist(), told))


def selected_rows(event: Mapping[str, Any]) -> list[int]:
    """Give the places of the rows that are selected."""
    return list(event["selection"]["rows"])


@st.cache_resource(show_spinner=False, max_entries=2)
def _table(_searcher: Searcher, key: tuple[str, str, int]) -> tuple[pd.DataFrame, str]:
    """Read what is known of all documents and failed files, once a generation; and the folder that they stand below."""
    collection = _searcher.collection
    with collection.snapshot():
        records = collection.encoders()
        tokens = {record.pooling: token_counts(collection, record.id) for record in records}
        rows: list[dict[str, Any]] = []
        for document in collection.documents():
            lacking = [pooling for pooling, counts in tokens.items() if document.id not in counts]
            remarks = [*document.warnings, *(f"no {pooling} vector yet" for pooling in lacking)]
            rows.append(
                {
                    "id": document.id,
                    "state": "incomplete" if lacking else "remarks" if remarks else "indexed",
                    "title": document.title,
                    "type": document.kind,
                    "pages": document.pages,
                    "tokens": max((sum(counts.get(document.id, (0, 0))) for counts in tokens.values()), default=None),
                    "reason": "; ".join(remarks),
                    "path": document.path,
                }
            )
        known = {row["path"] for row in rows}
        rows += [
            {
                "id": 0,
                "state": "failed",
                "title": "",
                "type": "",
                "reason": _reason(each.reason, each.path in known),
                "path": each.path,
            }
            for each in collection.failures()
        ]
    paths = [Path(row["path"]) for row in rows]
    root = _root(paths)
    for row, path in zip(rows, paths, strict=True):
        row |= {"file": path.name, "folder": _below(root, path)}
        row["looked through"] = "\n".join((row["title"], row["path"], row["reason"]))
        row |= {name: showable(value) for name, value in row.items() if isinstance(value, str) and name != "path"}
    table = pd.DataFrame(rows, columns=["id", "path", "looked through", *_COLUMNS], dtype=object)
    words = ("looked through", "file", "title", "folder", "state", "type", "reason")
    numbers = {"pages": "Int64", "tokens": "Int64"}
    # A path stays as it is, an object: it may hold what no string of Arrow's can.
    return table.astype({**numbers, **dict.fromkeys(words, "str")}), str(root or "")


def _root(paths: Sequence[Path]) -> Path | None:
    """Give the folder that all files stand below, where there is one that says something."""
    folders = [path.parent for path in paths if path.is_absolute()]
    common = Path(os.path.commonpath(folders)) if folders else Path("/")
    return common if common != common.parent else None


def _below(root: Path | None, path: Path) -> str:
    """Give the folder of a file, from the root on where it stands there."""
    return str(path.parent.relative_to(root) if root and path.is_relative_to(root) else path.parent)


def _reason(reason: str, kept: bool) -> str:
    return f"{reason} (its last good text is kept)" if kept else reason


def _show_actions(searcher: Searcher, chosen: _Chosen) -> None:
    total = len(chosen.documents) + len(chosen.failed)
    if total:
        told = "".join(
            tag("div", text(path), "lr-path") + (tag("div", text(reason), "lr-reason") if reason else "")
            for path, reason in chosen.told[:_TOLD]
        )
        st.html(told + (tag("div", f"and {total - _TOLD:,} more", "lr-meta") if total > _TOLD else ""))
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Open",
            icon=":material/article:",
            key="open-selected",
            disabled=len(chosen.documents) != 1 or bool(chosen.failed),
            on_click=open_place,
            args=tuple(chosen.documents[:1]),
        )
        if st.button("Index again", icon=":material/refresh:", key="reindex-selected", disabled=not total):
            _index_again(searcher, chosen)
        if st.button("Remove", icon=":material/delete:", key="remove-selected", disabled=not total):
            _confirm_removal(searcher, chosen)


def _index_again(searcher: Searcher, chosen: _Chosen) -> None:
    with attempt():
        paths = mark_changed(searcher.collection, chosen.documents)
        paths += [Path(each) for each in chosen.failed]
        if not paths:
            raise ValueError("The files of these documents are gone: their text is kept as it is.")
        begin_ingest(paths, retry_failed=True)
        st.rerun()


@st.dialog("Remove from the collection?")
def _confirm_removal(searcher: Searcher, chosen: _Chosen) -> None:
    total = len(chosen.documents) + len(chosen.failed)
    st.write(f"{count(total, 'row')} will be removed. Your own files stay where they are.")
    if st.button("Remove", type="primary", key="confirm-removal", icon=":material/delete:"):
        with attempt():
            documents = [searcher.collection.get(each) for each in chosen.documents]
            remove(searcher.collection, chosen.documents, chosen.failed)
            paths = [Path(each.path) for each in documents if each] + [Path(each) for each in chosen.failed]
            for path in paths:
                if is_kept(choices().collection, path):
                    path.unlink(missing_ok=True)  # our own copy of a file that was dropped here
            st.rerun()
