"""Passages: exact offsets, whole sentences, never over a page's border."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.records import PAGE_SEPARATOR
from lmk_rag.passages import Passage, _Words, from_evidence, from_terms, occurrences, term_pattern

PAGES = [
    "Alpha is the first letter. Beta comes second. Gamma is third.",
    "Rivers run to the sea. The whale swims in it. Ships follow the whale.",
]
TEXT = PAGE_SEPARATOR.join(PAGES)


def check_offsets(passages: list[Passage], pages: list[str]) -> None:
    for passage in passages:
        assert pages[passage.page - 1][passage.start : passage.end] == passage.text
        assert passage.text.strip() == passage.text != ""
    for one, other in ((a, b) for a in passages for b in passages if a is not b and a.page == b.page):
        assert one.end <= other.start or other.end <= one.start


def span_of(words: str) -> tuple[int, int]:
    start = TEXT.index(words)
    return start, start + len(words)


def evidence(*pieces: tuple[str, float], terms: tuple[str, ...] = (), count: int = 3) -> list[Passage]:
    spans = np.array([span_of(words) for words, _ in pieces], dtype=np.int32)
    cosines = np.array([cosine for _, cosine in pieces], dtype=np.float32)
    return from_evidence(PAGES, spans, cosines, terms, count)


def test_a_span_grows_to_its_sentence() -> None:
    (passage,) = evidence(("comes sec", 0.8))
    assert (passage.page, passage.start, passage.end, passage.text) == (1, 27, 45, "Beta comes second.")
    assert passage.score == pytest.approx(0.8)


def test_a_span_over_two_sentences_gives_both() -> None:
    (passage,) = evidence(("second. Gamma", 0.8))
    assert passage.text == "Beta comes second. Gamma is third."


def test_a_span_over_two_pages_stays_on_the_one_that_holds_more() -> None:
    (passage,) = evidence((TEXT[55:75], 0.5))
    assert (passage.page, passage.text) == (2, "Rivers run to the sea.")


def test_best_first_and_none_twice() -> None:
    found = evidence(("first", 0.2), ("whale swims", 0.9), ("swims in", 0.8), ("Gamma", 0.4))
    assert [passage.text for passage in found] == [
        "The whale swims in it.",
        "Gamma is third.",
        "Alpha is the first letter.",
    ]
    assert [round(passage.score, 3) for passage in found] == [0.9, 0.4, 0.2]
    check_offsets(found, PAGES)


def test_the_querys_own_words_decide_between_spans_of_like_cosine() -> None:
    found = evidence(("Rivers run", 0.52), ("Ships follow the whale", 0.5), terms=("whale", "ships"), count=1)
    assert found[0].text == "Ships follow the whale."


def test_a_word_that_a_span_cuts_counts_in_the_passage() -> None:
    page = (
        "Rain fell on the plain in the spring. Snow fell in Marrakesh on one cold night. Rain fell in the hills again."
    )
    cut, end = page.index("rakesh"), page.index(" Rain fell in")
    spans = np.array([[0, 37], [38, cut], [cut, end], [end + 1, len(page)]], np.int32)
    cosines = np.array([0.30, 0.10, 0.10, 0.31], np.float32)
    (passage,) = from_evidence([page], spans, cosines, ("snow", "fell", "marrakesh"), 1)
    assert passage.text == "Snow fell in Marrakesh on one cold night."


def test_words_of_many_stretches_are_those_of_each() -> None:
    text = "The whale swims. A white whale sings to ships, and ships follow the whale to sea. No heron is there."
    words = _Words(text, ["whale", "ships", "heron", "fish"])
    borders = np.array([(a, b) for a in range(0, len(text), 7) for b in range(a + 1, len(text) + 9, 11)])
    # From the beginning of a word, where a stretch's text alone does not show what stands before it.
    borders = borders[[a == 0 or not text[a - 1].isalnum() for a, _ in borders]]
    expected = [words.share(text[a:b]) for a, b in borders]
    assert len(set(expected)) > 3
    assert words.shares(borders[:, 0], borders[:, 1]) == pytest.approx(expected)


def test_rare_words_count_more_than_common_ones() -> None:
    common = "The player took part. He had a part. It was part of it."
    page = f"{common} {common} A master of chess left the hall."
    spans = np.array([[0, len(common)], [page.index("A master"), len(page)]], np.int32)
    cosines = np.array([0.20, 0.18], np.float32)
    (passage,) = from_evidence([page], spans, cosines, ("chess", "part"), 1)
    assert passage.text == "A master of chess left the hall."
    # "part" stands 3 times: weight 1 / (1 + ln 3) = 0.4765 beside the 1 of "chess", in windows of their own.
    apart = f"A master of chess left. {'word ' * 200}{common}"
    best = from_terms([apart], ["chess", "part"], 2)
    assert [each.score for each in best] == pytest.approx([1 / 1.4765, 0.4765 / 1.4765], abs=1e-3)


def test_terms_alone_find_where_they_stand_together() -> None:
    found = from_terms(PAGES, ["whale", "ships"], 1)
    assert found[0].page == 2
    assert "Ships follow the whale." in found[0].text
    assert found[0].score == 1.0


def test_terms_that_are_nowhere_give_the_beginning() -> None:
    assert from_terms(PAGES, ["xylophone"], 3) == [Passage(1, 0, 26, "Alpha is the first letter.", 0.0)]
    assert from_terms([""], ["xylophone"], 3) == []


def test_terms_are_found_at_the_start_of_words_only() -> None:
    pattern = term_pattern(["sched setaffinity", "age"])
    assert pattern is not None
    assert [m.group() for m in pattern.finditer("page sched_setaffinity Ages (age)")] == [
        "sched_setaffinity",
        "Age",
        "age",
    ]
    assert term_pattern([]) is None


def test_a_page_without_a_sentence_border_gives_a_passage_of_readable_length() -> None:
    page = "word " * 2_000
    found = from_evidence([page], np.array([[5_001, 5_200]], np.int32), np.array([0.5], np.float32), (), 1)
    check_offsets(found, [page])
    assert 199 <= found[0].end - found[0].start <= 700
    assert not page[found[0].start - 1].isalnum()
    assert not page[found[0].end].isalnum()


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="abAB _.İß", max_size=40), st.lists(st.text(alphabet="ab ß", max_size=4), max_size=4))
def test_a_long_text_is_searched_by_the_same_pattern(text: str, terms: list[str]) -> None:
    pattern = term_pattern(terms)
    found = [(match.start(), match.group().casefold()) for match in pattern.finditer(text)] if pattern else []
    assert occurrences(text, terms) == found


texts = st.lists(st.text(alphabet="ab.!? \n\U0001f600é你", max_size=60), min_size=1, max_size=4)


@settings(max_examples=200, deadline=None)
@given(texts, st.data())
def test_offsets_are_exact_whatever_the_text(pages: list[str], data: st.DataObject) -> None:
    text = PAGE_SEPARATOR.join(pages)
    borders = (
        data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=9, unique=True).map(sorted))
        if len(text) > 8
        else [0, len(text)]
    )
    spans = np.array(list(pairwise(borders)), dtype=np.int32).reshape(-1, 2)
    cosines = np.linspace(-1, 1, len(spans), dtype=np.float32)
    check_offsets(from_evidence(pages, spans, cosines, ["a", "b a"], 3), pages)
    check_offsets(from_terms(pages, ["a", "b a"], 3), pages)


def test_a_ruled_line_is_no_passage() -> None:
    page = "+-+-+-+-+-+-+-+-+\n\nThe header has eight bits.\n\n=================\n"
    spans = np.array([[0, 17], [19, 45], [47, 64]], np.int32)
    found = from_evidence([page], spans, np.array([0.9, 0.5, 0.8], np.float32), (), 3)
    assert [passage.text for passage in found] == ["The header has eight bits."]
