"""A tree of HTML elements to text: one line a block, as it would be read."""

import re

from lxml.etree import _Element

# fmt: off
_BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header",
    "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "ol", "option", "p", "pre", "search", "section",
    "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
))
_PARTED = frozenset((
    "blockquote", "dl", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "pre", "section", "table", "ul",
))
# fmt: on
_CELLS = frozenset(("td", "th"))
_VERBATIM = frozenset(("pre", "textarea", "listing", "xmp"))
_SPACES = re.compile(r"[ \t\n\r\f]+")


class Blocks:
    """Collects text; white space collapses as a browser shows it, and blocks begin on lines of their own."""

    def __init__(self) -> None:
        """Begin empty."""
        self._parts: list[str] = []
        self._breaks = 0
        self._space = False
        self._cell = False

    def text(self, value: str, *, verbatim: bool = False) -> None:
        """Add running text, or text whose white space counts."""
        if not verbatim:
            value = _SPACES.sub(" ", value)
            if value.startswith(" "):
                self._space = True
                value = value[1:]
        if not value:
            return
        ends_in_space = not verbatim and value.endswith(" ")
        self._gap()
        self._parts.append(value[:-1] if ends_in_space else value)
        self._space = ends_in_space

    def line(self, lines: int = 1) -> None:
        """End the line; two lines leave a blank one. Repeated ends are one."""
        self._breaks = max(self._breaks, lines)
        self._space = self._cell = False

    def cell(self) -> None:
        """Begin a table cell: apart from the one before by a tab."""
        self._cell = True

    def _gap(self) -> None:
        if self._parts:
            if self._breaks:
                last = self._parts[-1]
                self._parts.append("\n" * (self._breaks - (len(last) - len(last.rstrip("\n")))))
            elif self._cell:
                self._parts.append("\t")
            elif self._space:
                self._parts.append(" ")
        self._breaks = 0
        self._space = self._cell = False

    def result(self) -> str:
        """Give all that was added."""
        return "".join(self._parts)


def text_of(root: _Element, skipped: frozenset[_Element] = frozenset()) -> str:
    """Give the text under an lxml element, the `skipped` elements and what is below them left out."""
    blocks = Blocks()
    # Depth is the file's choice, so no recursion: (element, whether it is being left, whether white space counts).
    stack = [(root, False, False)]
    while stack:
        element, leaving, verbatim = stack.pop()
        name = tag_of(element)
        if leaving:
            _leave(blocks, name)
            if element is not root and element.tail:
                blocks.text(element.tail, verbatim=verbatim)
            continue
        stack.append((element, True, verbatim))
        if name is None or element in skipped:
            continue
        inside = verbatim or name in _VERBATIM
        _enter(blocks, name)
        if element.text:
            text = element.text.removeprefix("\n") if name in _VERBATIM else element.text
            blocks.text(text, verbatim=inside)
        stack.extend((child, False, inside) for child in reversed(element))
    return blocks.result()


def tag_of(element: _Element) -> str | None:
    """Give an element's local name in lower case; None for comments and the like."""
    tag = element.tag
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else None


def _enter(blocks: Blocks, name: str) -> None:
    if name in _CELLS:
        blocks.cell()
    elif name == "br":
        blocks.line()
    elif name in _BLOCKS:
        blocks.line(2 if name in _PARTED else 1)


def _leave(blocks: Blocks, name: str | None) -> None:
    if name in _BLOCKS:
        blocks.line(2 if name in _PARTED else 1)
