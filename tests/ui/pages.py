"""What the page tests look at."""

from typing import Any

from streamlit.testing.v1 import AppTest

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
