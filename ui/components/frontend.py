"""Components with a script of their own; a script gets data as JSON and sets text of documents as text only."""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from ui.components.markup import pieces

_HERE = Path(__file__).parent


def component(name: str, html: str = "") -> Any:  # noqa: ANN401 - Streamlit's own type takes no callbacks by keyword
    """Give the function that mounts a component.

    It is registered at each use: a registration belongs to the server that runs, and the same one again is no change.

    Args:
        name: of its files `NAME.js` and `NAME.css` in this folder.
        html: what is in it at first, a constant.
    """
    return st.components.v2.component(f"lmk_rag_{name}", html=html, css=_file(f"{name}.css"), js=_file(f"{name}.js"))


@cache
def _file(name: str) -> str | None:
    path = _HERE / name
    return path.read_text(encoding="utf-8") if path.exists() else None


def show_keys() -> None:
    """Let `/` focus the search box, from anywhere but another input."""
    component("keys")(key="keys", height=1)


def show_commands_when_gone() -> None:
    """Let the dialog that Streamlit shows when its server has ended name the commands that start this app."""
    component("gone")(key="gone", height=1)


def bring_into_sight(place: str, share: float | None) -> None:
    """Scroll to what was opened, when it is another place than before.

    Args:
        place: names it.
        share: how far down the drawn page the highlighted lines begin, 0 to 1; None where there are none.
    """
    component("bring")(key="bring", data={"place": place, "share": share}, height=1)


def show_from_top(shown: str) -> None:
    """Scroll to the top of the page, when it shows something else than before.

    Args:
        shown: names it.
    """
    component("top")(key="top", data={"shown": shown}, height=1)


def show_reader(text: str, marks: list[tuple[int, int]], key: str) -> None:
    """Show a page's text, scrolled to the first of its marks.

    The browser counts in other units than Python, so it is given pieces of text, not offsets.

    Args:
        text: of the page, or a part of it.
        marks: code points [start, end) of ``text``, ascending and apart.
        key: of the element.
    """
    component("reader", '<div class="page" tabindex="0"></div>')(key=key, data={"pieces": pieces(text, marks)})
