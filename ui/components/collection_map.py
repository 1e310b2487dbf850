"""A map of the collection: each document a point, near those that its vector is like."""

from collections.abc import Callable
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from lmk_rag.projection import project
from lmk_rag.search import Searcher
from ui.components.markup import shortened, showable
from ui.components.session import key_of
from ui.components.viewer import open_place

_MOST = 5000
"""Points that a browser draws without a pause; of more documents an even sample is shown."""
_FEWEST = 3


def show_map(searcher: Searcher) -> None:
    """Show the documents' vectors in two dimensions, coloured by type; a click opens a document."""
    poolings = [record.pooling for record in searcher.collection.encoders()]
    if not poolings:
        st.info("No document has been embedded yet.", icon=":material/info:")
        return
    chosen = poolings[0]
    if len(poolings) > 1:
        chosen = (
            st.segmented_control("Vectors of", poolings, default=chosen, required=True, key="map-pooling") or chosen
        )
    points = _points(searcher, key_of(searcher), chosen)
    if len(points) < _FEWEST:
        st.info("A map needs at least three documents.", icon=":material/info:")
        return
    picked = alt.selection_point(name="picked", fields=["id"])
    opened = st.session_state.setdefault("map-opened", 0)
    chart = (
        alt.Chart(points)
        .mark_circle(size=46, opacity=0.65)
        .encode(
            x=alt.X("x", axis=None),
            y=alt.Y("y", axis=None),
            color=alt.Color("type", title=None, legend=alt.Legend(orient="top")),
            tooltip=["title", "type", "pages"],
        )
        .add_params(picked)
        .properties(height=460)
    )
    key = f"map-{chosen}-{opened}"  # a new one after each click, so that the same point can be clicked again
    st.altair_chart(chart, key=key, on_select=_open_picked(key), alt="Map of the documents")
    st.caption("Documents that lie close are alike. The map shows the two directions in which they differ most.")


def _open_picked(key: str) -> Callable[[], None]:
    """Give what opens the document whose point was clicked."""

    def opened() -> None:
        for point in st.session_state[key]["selection"].get("picked", []):
            open_place(int(point["id"]))
            st.session_state["map-opened"] += 1

    return opened


@st.cache_resource(show_spinner=False, max_entries=6)
def _points(_searcher: Searcher, key: tuple[str, str, int], pooling: str) -> pd.DataFrame:
    collection = _searcher.collection
    with collection.snapshot():
        record = collection.encoder(pooling)
        read = list(collection.vectors(record).since(-1)) if record else []
        documents = {each.id: each for each in collection.documents()}
    if not read:
        return pd.DataFrame(columns=["id", "x", "y", "title", "type", "pages"])
    ids = np.concatenate([batch[0] for batch in read])
    places = project(np.concatenate([batch[1] for batch in read]))
    rows = [
        {
            "id": int(number),
            "x": float(x),
            "y": float(y),
            "title": showable(shortened(documents[number].title or Path(documents[number].path).name, 90)),
            "type": documents[number].kind,
            "pages": documents[number].pages,
        }
        for number, (x, y) in zip(ids.tolist(), places, strict=True)
        if number in documents
    ]
    return pd.DataFrame(rows[:: -(-len(rows) // _MOST)])
