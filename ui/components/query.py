"""The search box of Search and of Compare: its query stands in the address, and goes along from page to page."""

from collections.abc import Callable

import streamlit as st


def ask_query(page: str, on_change: Callable[[], None] | None = None) -> str:
    """Show the box and give what stands in it.

    Args:
        page: whose box it is, by the name of its file.
        on_change: called when something else was typed.
    """
    _bring_along(page)
    query = st.text_input(
        "Query",
        key="q",
        bind="query-params",
        placeholder="A question, or a few words",
        icon=":material/search:",
        label_visibility="collapsed",
        on_change=on_change,
    )
    return (query or "").strip()


def _bring_along(page: str) -> None:
    """Go to the address with the query of the page that was left, unless this one's address has a query itself."""
    left = st.session_state.get("asked-on", page)
    st.session_state["asked-on"] = page
    query = st.session_state.get("q")  # as it stands in the box of the page that was left
    if query and left != page and "q" not in st.query_params:
        st.switch_page(f"pages/{page}.py", query_params={"q": query})
