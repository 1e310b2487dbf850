"""The search box of Search and of Compare: its query stands in the address, and goes along from page to page."""

from collections.abc import Callable, Sequence

import streamlit as st

from ui.components.markup import tag, text


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


def tell_unknown(name: str, known: Sequence[str]) -> None:
    """Say what a link asks for that is not there: Streamlit takes it out of the address without a word.

    Args:
        name: of the address's parameter, before its widget has been made.
        known: the values that it may have.
    """
    unknown = [each for each in st.query_params.get_all(name) if each not in known]
    if unknown:
        _left_out(f"{name} {', '.join(unknown)}, but there is only {', '.join(known)}")


def tell_no_number(name: str) -> None:
    """Say what a link asks for that is not a whole number from 0 on; before the parameter's widget has been made."""
    wrong = [each for each in st.query_params.get_all(name) if not each.isdecimal()]
    if wrong:
        _left_out(f"{name} {', '.join(wrong)}, which is no number of {name}")


def tell_no_document(name: str, *, found: bool) -> None:
    """Say what document a link asks for where it was not found."""
    asked = st.query_params.get(name)
    if asked and not found:
        _left_out(f"{name} {asked}, and no document of this collection has that number")


def _left_out(what: str) -> None:
    st.html(tag("div", text(f"The link asks for {what}: it was left out."), "lr-note"))


def _bring_along(page: str) -> None:
    """Go to the address with the query of the page that was left, unless this one's address has a query itself."""
    left = st.session_state.get("asked-on", page)
    st.session_state["asked-on"] = page
    query = st.session_state.get("q")  # as it stands in the box of the page that was left
    if query and left != page and "q" not in st.query_params:
        st.switch_page(f"pages/{page}.py", query_params={"q": query})
