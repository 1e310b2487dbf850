"""The collection in figures: counts, sizes, models."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from lmk_rag.console import size
from lmk_rag.search import Searcher
from lmk_rag.wording import count
from ui.components.markup import tag, text
from ui.components.running import begin_anew
from ui.components.session import choices, key_of


def show_figures(searcher: Searcher) -> None:
    """Show counts, sizes and the models that made the vectors."""
    about = _about(searcher, key_of(searcher))
    stats, sizes = about["stats"], about["sizes"]
    st.html(tag("div", text(searcher.collection.path), "lr-path"))
    figures = {
        "Documents": f"{stats['documents']:,}",
        "Pages": f"{stats['pages']:,}",
        "Failed files": f"{stats['failures']:,}",
        "Text": size(sizes["text"]),
        "Database": size(sizes["database"]),
    }
    with st.container(horizontal=True, gap="medium"):
        for name, value in figures.items():
            st.metric(name, value, width="content")
    if not about["encoders"]:
        st.info("No document has been embedded yet.", icon=":material/info:")
        return
    st.dataframe(
        pd.DataFrame(about["encoders"]),
        hide_index=True,
        column_config={"documents": st.column_config.NumberColumn(format="localized")},
    )
    if st.button(
        "Embed everything anew",
        icon=":material/autorenew:",
        key="embed-anew",
        help="When the model that made the vectors has changed. Searches use the old vectors until it is done.",
    ):
        _confirm_anew(stats["documents"], [each["pooling"] for each in about["encoders"]])
    st.html(tag("div", text(f"It uses the model that Settings name: {choices().model}."), "lr-meta"))
    st.caption(
        "Each pooling is an encoder of its own: its vectors, and, but for CLS, the evidence that says where a document "
        "matches."
    )


@st.dialog("Embed everything anew?")
def _confirm_anew(documents: int, poolings: Sequence[str]) -> None:
    times = f"{len(poolings)} times, for {', '.join(poolings)}" if len(poolings) > 1 else f"for {poolings[0]}"
    work = (
        f"{count(documents, 'document')} will be read by the model {choices().model}, {times}. That takes about as "
        "long as indexing them did. Searches use the old vectors until it is done."
    )
    st.html(tag("div", text(work), "lr-note"))
    if st.button("Embed anew", type="primary", key="confirm-anew", icon=":material/autorenew:"):
        begin_anew()
        st.rerun()


@st.cache_resource(show_spinner=False, max_entries=2)
def _about(_searcher: Searcher, key: tuple[str, str, int]) -> dict[str, Any]:
    collection = _searcher.collection
    stats, sizes = collection.stats(), collection.sizes()
    encoders = []
    for record in collection.encoders():
        stored, counted = sizes["encoders"][record.pooling], stats["encoders"][record.id]
        encoders.append(
            {
                "pooling": record.pooling,
                "model": record.fingerprint.get("model", "a foreign model"),
                "dimension": record.dimension,
                "granularity": record.fingerprint.get("granularity"),
                "window": record.fingerprint.get("window"),
                "documents": counted["documents"],
                "vectors": size(stored["vectors"]),
                "evidence": size(stored["evidence"] + stored["scales"] + stored["spans"]),
                "bytes a byte of text": stored["ratio"],
            }
        )
    return {"stats": stats, "sizes": sizes, "encoders": encoders}
