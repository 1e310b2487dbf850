"""Documents that were found, as cards."""

from pathlib import Path

import streamlit as st

from lmk_rag.passages import Passage
from lmk_rag.results import FoldedHit, Hit, Results
from lmk_rag.search import Searcher
from ui.components.markup import flowing, from_first_mark, marked, tag, text
from ui.components.strip import (
    WITHOUT_EVIDENCE,
    Scale,
    Strip,
    scale_of,
    show_lacking_strip,
    show_strip,
    strip_of,
    where,
)
from ui.components.viewer import close_place, described, open_place

_SCORES = {
    "fusion": ("score", "Words and meaning together, beside the other documents that came near: 0 is an average one."),
    "cosine": ("cosine", "How alike the meaning is: 1 is the same, 0 has nothing in common."),
    "bm25": ("BM25", "The weight of the words that were found: 0 is none."),
}
"""What a score is called and what it says, by its kind."""


def show_hits(searcher: Searcher, results: Results, *, narrowed: bool = False) -> None:
    """Show the hits in order, or a sentence where there are none, after what the search itself has to say.

    Args:
        searcher: that found them.
        results: what it found.
        narrowed: filters let through only some of the documents.
    """
    for note in results.notes:
        st.html(tag("div", text(note), "lr-note"))
    if not results.hits:
        hint = "Under Filters, fewer conditions let more documents through." if narrowed else ""
        st.info(f"Nothing was found. Try other words, or fewer of them. {hint}", icon=":material/search_off:")
        return
    strips = [
        strip_of(searcher, hit.id, results.query, results.pooling) if results.pooling else () for hit in results.hits
    ]
    scale = scale_of(strips)
    for hit, strip in zip(results.hits, strips, strict=True):
        _show_hit(searcher, hit, results, strip, scale)


def _show_hit(searcher: Searcher, hit: Hit, results: Results, strip: Strip, scale: Scale) -> None:
    with st.container(border=True, key=f"hit-{hit.id}"):
        name = hit.title or Path(hit.path).name
        st.html(
            tag("div", tag("span", f"{hit.rank}", "lr-rank") + text(name), "lr-title")
            + tag("div", f"{described(hit.kind, hit.pages)} · {scored(results.score_kind, hit.score)}", "lr-meta")
            + tag("div", text(hit.path), "lr-path")
        )
        if results.pooling in WITHOUT_EVIDENCE:
            show_lacking_strip(results.pooling)
        if strip:
            show_strip(
                strip,
                scale,
                f"strip-{hit.id}",
                lambda page, start, end: open_place(hit.id, page, start, end),
                one_page=hit.pages == 1,
            )
        document = searcher.collection.get(hit.id)
        for number, passage in enumerate(hit.passages):
            _show_passage(hit, passage, number, where(document, passage.page, passage.start))
        if hit.folded:
            st.html(folded(hit.folded))
        with st.container(horizontal=True, gap="small"):
            first = hit.passages[0] if hit.passages else None
            at = (first.page, first.start, first.end) if first else ()
            st.button(
                "Open page" if hit.pages > 1 else "Open",
                key=f"open-{hit.id}",
                icon=":material/article:",
                on_click=open_place,
                args=(hit.id, *at),
            )
            st.button(
                "More like this",
                key=f"like-{hit.id}",
                icon=":material/join_inner:",
                type="tertiary",
                on_click=_more_like,
                args=(hit.id,),
            )


def _show_passage(hit: Hit, passage: Passage, number: int, label: str) -> None:
    with st.container(horizontal=True, vertical_alignment="top", wrap=False, gap="small"):
        st.button(
            label,
            key=f"passage-{hit.id}-{number}",
            type="tertiary",
            on_click=open_place,
            args=(hit.id, passage.page, passage.start, passage.end),
        )
        st.html(tag("div", marked(*from_first_mark(flowing(passage.text), passage.marks)), "lr-passage"))


def scored(kind: str, score: float) -> str:
    """Give a score with its name, as HTML; a pointer over it says what it means."""
    name, told = _SCORES[kind]
    return tag("span", f"{name} {score:.3f}", "", told)


def folded(copies: tuple[FoldedHit, ...]) -> str:
    """Name the near copies of a document, as HTML."""
    named = "; ".join(f"{Path(each.path).name} ({each.similarity:.0%} the same)" for each in copies)
    return tag("div", text(f"Also found, nearly the same: {named}"), "lr-folded", "\n".join(c.path for c in copies))


def _more_like(document: int) -> None:
    close_place(like=str(document))
