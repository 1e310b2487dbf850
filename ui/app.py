"""The app: five pages over one collection.

Text that comes from a document never becomes markup: it goes through `st.text` and `st.code`, which show it letter for
letter, through `ui.components.markup`, which escapes it, or through a component that sets it as text.
"""

from pathlib import Path

import streamlit as st

from ui.components.frontend import show_commands_when_gone, show_keys

_HERE = Path(__file__).parent / "components"
_STYLE, _ICON = _HERE / "style.css", _HERE / "icon.png"


def main() -> None:
    """Show the page that the address names."""
    st.set_page_config(page_title="lmk-rag", page_icon=str(_ICON), layout="wide")
    pages = [
        st.Page("pages/search.py", title="Search", icon=":material/search:", default=True),
        st.Page("pages/ask.py", title="Ask", icon=":material/forum:"),
        st.Page("pages/compare.py", title="Compare", icon=":material/compare_arrows:"),
        st.Page("pages/library.py", title="Library", icon=":material/folder_open:"),
        st.Page("pages/settings.py", title="Settings", icon=":material/settings:"),
    ]
    page = st.navigation(pages, position="top")
    st.html(_STYLE)
    show_keys()
    show_commands_when_gone()
    page.run()


main()
