"""HTML made of our own tags and escaped text: the only way in which text of documents gets into the page's HTML."""

import re
from collections.abc import Iterable, Sequence
from html import escape

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ROOM, _BEFORE = 250, 80
"""Characters of a passage that a card surely shows, and those that stand before a mark further down."""
_LINE_END = re.compile(r"(?<!\n)\n(?!\n)")


def text(value: object) -> str:
    """Give any text as HTML that shows it letter for letter; what cannot be shown is U+FFFD."""
    return escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(value)))


def showable(value: str) -> str:
    """Give text for Streamlit's own elements, which take no lone surrogates (a file's name may hold some)."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", value)


def tag(name: str, content: str, classes: str = "", title: str = "") -> str:
    """Put HTML into a tag.

    Args:
        name: of the tag.
        content: HTML that this module made.
        classes: CSS classes, a constant.
        title: plain text that a pointer over it shows.
    """
    attributes = (f' class="{classes}"' if classes else "") + (f' title="{text(title)}"' if title else "")
    return f"<{name}{attributes}>{content}</{name}>"


def pieces(value: str, marks: Iterable[tuple[int, int]]) -> list[tuple[str, bool]]:
    """Cut a text at its marks.

    Args:
        value: any text.
        marks: code points [start, end) of ``value``; those that overlap are joined.

    Returns:
        The text's pieces in order, none of them empty, each with whether it is marked.
    """
    cut: list[tuple[str, bool]] = []
    at = 0
    for start, end in sorted(marks):
        first, last = max(start, at), min(end, len(value))
        if first < last:
            cut += [(value[at:first], False), (value[first:last], True)]
            at = last
    return [piece for piece in [*cut, (value[at:], False)] if piece[0]]


def marked(value: str, marks: Iterable[tuple[int, int]]) -> str:
    """Give text as HTML with the pieces of it marked that :func:`pieces` makes."""
    return "".join(tag("mark", text(piece)) if is_marked else text(piece) for piece, is_marked in pieces(value, marks))


def from_first_mark(value: str, marks: Sequence[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """Begin a long text shortly before its first mark, where that stands further down than a card has room for."""
    first = min((start for start, _ in marks), default=0)
    if first < _ROOM:
        return value, list(marks)
    begin = max(value.rfind(" ", 0, first - _BEFORE) + 1, first - 2 * _BEFORE)
    return "…" + value[begin:], [(start - begin + 1, end - begin + 1) for start, end in marks]


def flowing(value: str) -> str:
    """Join the lines of each paragraph by blanks; the text stays as long as it is, so that offsets hold."""
    return _LINE_END.sub(" ", value)


def shortened(value: str, length: int) -> str:
    """Cut a text that is longer, at a blank where there is one near the end."""
    value = " ".join(value.split())
    if len(value) <= length:
        return value
    cut = value[: length - 1]
    return (cut[: cut.rfind(" ")] if cut.rfind(" ") > length // 2 else cut) + "…"
