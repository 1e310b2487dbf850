"""Escaped HTML: what a document holds is shown letter for letter, marks and all."""

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from lmk_rag.wording import count
from tests.ui.pages import HOSTILE
from ui.components.markup import flowing, from_first_mark, marked, pieces, shortened, tag, text

MARKS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=6)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_text_comes_back_and_has_no_tags(value: str) -> None:
    assert unescape(text(value)) == value
    assert not re.search("[<>\"']", text(value))


@given(st.text("ab<&>\"' \n", max_size=50), MARKS)
def test_marks_lose_and_add_nothing(value: str, marks: list[tuple[int, int]]) -> None:
    cut = pieces(value, marks)
    assert "".join(piece for piece, _ in cut) == value
    wanted = {place for start, end in marks for place in range(start, min(end, len(value)))}
    at = 0
    for piece, is_marked in cut:
        assert piece
        assert {place in wanted for place in range(at, at + len(piece))} == {is_marked}
        at += len(piece)
    html = marked(value, marks)
    assert unescape(re.sub("</?mark>", "", html)) == value


def test_a_hostile_document_is_text() -> None:
    html = tag("div", marked(HOSTILE, [(0, 8)]), "lr-passage", HOSTILE)
    assert re.findall("<[^>]*>", html)[1:] == ["<mark>", "</mark>", "</div>"]
    assert html.startswith('<div class="lr-passage" title="&lt;script&gt;')


def test_what_cannot_be_shown_is_replaced() -> None:
    assert text("a\0b\ud800c") == "a\ufffdb\ufffdc"


def test_lines_flow_and_paragraphs_stay() -> None:
    assert flowing("one\ntwo\n\nthree\nfour") == "one two\n\nthree four"


def test_a_long_text_begins_shortly_before_its_first_mark() -> None:
    assert from_first_mark("rust eats iron", [(5, 9)]) == ("rust eats iron", [(5, 9)])
    assert from_first_mark("x" * 900, []) == ("x" * 900, [])
    for value in ("word " * 100 + "here and there", "x" * 500 + "here and there"):
        shown, marks = from_first_mark(value, [(500, 504), (509, 514)])
        assert [shown[start:end] for start, end in marks] == ["here", "there"]
        assert shown[0] == "…"
        assert value.endswith(shown[1:])
        assert 80 <= marks[0][0] <= 161
    assert from_first_mark("word " * 100 + "here", [(500, 504)])[0].startswith("…word ")


def test_shortened_ends_at_a_word() -> None:
    assert shortened("one two three", 20) == "one two three"
    assert shortened("one two three", 9) == "one two…"
    assert len(shortened("x" * 50, 9)) == 9


def test_count() -> None:
    assert [count(number, "page") for number in (0, 1, 1799)] == ["0 pages", "1 page", "1,799 pages"]
