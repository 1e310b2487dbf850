"""What each pooling found, side by side: ranks, scores, how documents moved, and their strips."""

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from lmk_rag.comparison import BM25, Column, Placed
from lmk_rag.search import Searcher
from ui.components.hits import folded, scored
from ui.components.markup import tag, text
from ui.components.strip import WITHOUT_EVIDENCE, Scale, Strip, scale_of, show_lacking_strip, show_strip, strip_of
from ui.components.viewer import open_place


def show_columns(searcher: Searcher, query: str, columns: tuple[Column, ...], names: Mapping[str, str]) -> None:
    """Show the columns; each one's strips have a scale of their own, since cosines of two poolings do not compare."""
    for place, (column, side) in enumerate(zip(columns, st.columns(len(columns), gap="small"), strict=True)):
        with side:
            st.subheader(names.get(column.name, column.name), anchor=False)
            _show_column(searcher, query, column, names, is_first=place == 0)


def _show_column(searcher: Searcher, query: str, column: Column, names: Mapping[str, str], *, is_first: bool) -> None:
    for note in column.notes:
        st.html(tag("div", text(note), "lr-note"))
    if not column.placed:
        st.caption("Nothing was found.")
        return
    strips = [
        () if column.name == BM25 else strip_of(searcher, each.hit.id, query, column.name) for each in column.placed
    ]
    scale = scale_of(strips)
    for placed, strip in zip(column.placed, strips, strict=True):
        _show_placed(column, placed, strip, scale, names, is_first)


def _show_placed(
    column: Column, placed: Placed, strip: Strip, scale: Scale, names: Mapping[str, str], is_first: bool
) -> None:
    hit = placed.hit
    with st.container(border=True, key=f"placed-{column.name}-{hit.id}", gap="small"):
        move = "" if is_first else _move(placed)
        missing = ", ".join(names.get(each, each) for each in placed.missing)
        st.html(
            move
            + tag("div", tag("span", f"{hit.rank}", "lr-rank") + text(hit.title or Path(hit.path).name), "lr-title")
            + tag("div", scored(column.score_kind, hit.score), "lr-meta", hit.path)
            + (tag("div", text(f"not in {missing}"), "lr-meta lr-new") if missing else "")
        )
        if column.name == BM25:
            st.html(tag("div", "BM25 has no vectors", "lr-no-strip", "It counts words alone: no bar can be drawn."))
        elif column.name in WITHOUT_EVIDENCE:
            show_lacking_strip(names.get(column.name, column.name))
        if strip:
            show_strip(
                strip,
                scale,
                f"strip-{column.name}-{hit.id}",
                lambda page, start, end: open_place(hit.id, page, start, end, column.name),
                one_page=hit.pages == 1,
            )
        if hit.folded:
            st.html(folded(hit.folded))
        pooling = None if column.name == BM25 else column.name
        passage = hit.passages[0] if hit.passages and column.name not in WITHOUT_EVIDENCE else None
        at = (passage.page, passage.start, passage.end) if passage else (1, 0, 0)
        st.button(
            "Open",
            key=f"compare-open-{column.name}-{hit.id}",
            type="tertiary",
            on_click=open_place,
            args=(hit.id, *at, pooling),
        )


def _move(placed: Placed) -> str:
    """Say how a document moved against the first column, as HTML."""
    moved = placed.moved
    if moved is None:
        return tag("span", "new", "lr-move lr-new", "Not in the first column")
    if moved == 0:
        return tag("span", "=", "lr-move lr-same", "The same rank as in the first column")
    arrow, classes = ("▲", "lr-move lr-up") if moved > 0 else ("▼", "lr-move lr-down")
    return tag("span", f"{arrow} {abs(moved)}", classes, f"Rank {placed.before} in the first column")
