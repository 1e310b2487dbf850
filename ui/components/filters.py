"""What narrows a search: kind of file, part of the path, number of pages. All of it stands in the address."""

from dataclasses import dataclass

import streamlit as st

from indexes.filters import Filter
from lmk_rag.search import Searcher
from ui.components.session import key_of


@dataclass(frozen=True, slots=True)
class Conditions:
    """What documents must be: of one of these kinds, with this in their path, of so many pages."""

    kinds: tuple[str, ...] = ()
    path: str = ""
    pages: int = 0


def show_filters(searcher: Searcher) -> Conditions:
    """Show what a search can be narrowed by, behind one button."""
    kinds = kinds_of(searcher)
    with st.popover("Filters", icon=":material/tune:"):
        chosen = st.pills("Type", kinds, selection_mode="multi", key="type", bind="query-params")
        path = st.text_input(
            "Path contains",
            key="path",
            bind="query-params",
            placeholder="2024, or reports/*/draft",
            help="A part of the path; * stands for anything. Capitals count.",
        )
        pages = st.number_input("Pages, at least", min_value=0, step=1, key="pages", bind="query-params")
    return Conditions(tuple(chosen or ()), (path or "").strip(), int(pages or 0))


def filter_of(conditions: Conditions) -> Filter:
    """Make the filter of what was chosen."""
    wanted: dict[str, object] = {}
    if conditions.kinds:
        wanted["type"] = list(conditions.kinds)
    if conditions.path:
        wanted["path"] = {"~": f"*{conditions.path}*"}
    if conditions.pages > 1:
        wanted["pages"] = {">=": conditions.pages}
    return Filter.from_dict(wanted)


def kinds_of(searcher: Searcher) -> list[str]:
    """List the kinds of documents that the collection holds."""
    return list(_kinds(searcher, key_of(searcher)))


@st.cache_resource(show_spinner=False, max_entries=4)
def _kinds(_searcher: Searcher, key: tuple[str, str, int]) -> tuple[str, ...]:
    return tuple(_searcher.collection.stats()["kinds"])
