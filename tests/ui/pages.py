"""What the page tests look at."""

from typing import Any

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

HOSTILE = "<script>alert(1)</script> $x$ [a](javascript:x) **bold** :red[red] :smile: <img src=x onerror=alert(1)>"


def shown_html(app: AppTest) -> str:
    """All HTML that the page shows, without its style sheet."""
    return "\n".join(element.value for element in app.html if not element.value.startswith("<style"))


def markdown(app: AppTest) -> str:
    """Everything that Streamlit reads as Markdown: its texts, and the labels and helps of its widgets."""
    texts: list[Any] = [*app.markdown, *app.caption, *app.title, *app.header, *app.subheader]
    texts += [*app.info, *app.error, *app.warning, *app.success, *app.metric]
    widgets: list[Any] = [*app.button, *app.text_input, *app.selectbox, *app.toggle, *app.expander, *app.tabs]
    said = [str(each.value) for each in texts] + [f"{each.label}\n{getattr(each, 'help', '')}" for each in widgets]
    return "\n".join(said)


def components(app: AppTest) -> str:
    """The data of the components with a script of their own."""
    return "\n".join(f"{element.proto.component_name} {element.proto.json}" for element in app.get("bidi_component"))


def boxes(app: AppTest, start: str) -> dict[str, str]:
    """The boxes whose keys begin so, each with the HTML that stands in it."""
    found: dict[str, str] = {}
    waiting: list[Block] = [app.main]
    while waiting:
        block = waiting.pop()
        _, there, rest = getattr(block.proto, "id", "").rpartition(start)
        if there:
            found[start + rest] = "".join(getattr(each, "value", "") for each in block.get("html"))
        waiting += [child for child in block.children.values() if isinstance(child, Block)]
    return found
