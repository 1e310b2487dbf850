"""Passages: exact offsets, whole sentences, never over a page's border."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.query import query_terms
from indexes.records import PAGE_SEPARATOR
from lmk_rag.passages import Passage, _Words, from_evidence, from_terms

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


def test_stretches_hold_the_words_that_stand_whole_in_them() -> None:
    text = "The whale swims. A white whale sings to ships, and ships follow the whale to sea. No heron is there."
    words = _Words(text, ["whale", "ships", "white whale", "fish"])
    borders = np.array([(a, b) for a in range(len(text)) for b in range(a, len(text) + 9)])
    # By hand: the whale three times, ships twice, once a white one, and no fish, which counts like one.
    weights = {"whale": 1 / (1 + math.log(3)), "ships": 1 / (1 + math.log(2)), "white whale": 1.0}
    expected = [
        sum(weight for term, weight in weights.items() if term in text[a:b]) / (sum(weights.values()) + 1)
        for a, b in borders
    ]
    assert words.shares(borders[:, 0], borders[:, 1]) == pytest.approx(expected)


def test_a_place_that_terms_share_comes_once() -> None:
    words = _Words("as RFC2119 says", query_terms("RFC2119"))
    assert list(zip(words.starts.tolist(), words.ends.tolist(), strict=True)) == [(3, 6), (3, 10), (6, 10)]


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


FILLING = "Rain fell on the plain for the whole of that week. "


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("Zurich", "The train to Zürich leaves at noon."),
        ("Zürich", "The train to Zu\u0308rich leaves at noon."),
        ("pool", "It makes a ThreadPool of eight."),
        ("ThreadPool", "It makes a ThreadPool of eight."),
        ("2119", "Its words are those of RFC2119 as ever."),
        ("RFC7777", "It follows RFC7777 to the letter."),
        ("IPV6", "Both speak IPV6 now."),
        ("sched_setaffinity", "Call sched_setaffinity(2) for that."),
        ("study", "Several studies tell of it."),
        ("port", "All ports are closed."),
        ("京都", "東京都は大きい。"),
    ],
)
def test_what_the_index_finds_is_shown_whole(query: str, sentence: str) -> None:
    page = f"Portable portions of portals and students. {FILLING * 20}{sentence} {FILLING * 20}"
    terms = query_terms(query)
    (passage,) = from_terms([page], terms, 1)
    assert sentence in passage.text
    assert passage.score == 1.0
    check_offsets([passage], [page])
    # A span of evidence that holds it goes before another with the same cosine.
    spans = np.array([[0, 42], [page.index(sentence), page.index(sentence) + len(sentence)]], np.int32)
    (passage,) = from_evidence([page], spans, np.array([0.5, 0.5], np.float32), terms, 1)
    assert sentence in passage.text


def test_the_beginning_of_another_word_is_no_term() -> None:
    page = f"Portable portions of portals. {FILLING * 20}"
    assert [(each.start, each.score) for each in from_terms([page], ["port"], 1)] == [(0, 0.0)]


def test_other_forms_count_for_their_term() -> None:
    # "port" stands four times, in two forms, "wall" once.
    page = f"Ports, a port, two ports and one more port. {FILLING * 20}A wall."
    best = from_terms([page], ["port", "wall"], 2)
    weight = 1 / (1 + math.log(4))
    assert [each.score for each in best] == pytest.approx([1 / (1 + weight), weight / (1 + weight)])


def test_of_equal_shares_the_one_with_more_places_goes_first() -> None:
    page = f"One whale. {FILLING * 20}A whale saw a whale and a whale. {FILLING * 20}"
    assert from_terms([page], ["whale"], 1)[0].text.startswith("A whale saw")


def test_a_term_that_stands_wide_is_found() -> None:
    page = f"It is a thread {'- ' * 400}pool."
    (passage,) = from_terms([page], ["thread pool"], 1)
    assert passage.score == 1.0
    check_offsets([passage], [page])


def test_a_page_without_a_sentence_border_gives_a_passage_of_readable_length() -> None:
    page = "word " * 2_000
    found = from_evidence([page], np.array([[5_001, 5_200]], np.int32), np.array([0.5], np.float32), (), 1)
    check_offsets(found, [page])
    assert 199 <= found[0].end - found[0].start <= 700
    assert not page[found[0].start - 1].isalnum()
    assert not page[found[0].end].isalnum()


TERMS = ["a", "b a", "e", "i 1", "你"]
texts = st.lists(st.text(alphabet="abA1.!? \n\U0001f600éİ\u0301你", max_size=60), min_size=1, max_size=4)


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
    check_offsets(from_evidence(pages, spans, cosines, TERMS, 3), pages)
    check_offsets(from_terms(pages, TERMS, 3), pages)


def test_a_ruled_line_is_no_passage() -> None:
    page = "+-+-+-+-+-+-+-+-+\n\nThe header has eight bits.\n\n=================\n"
    spans = np.array([[0, 17], [19, 45], [47, 64]], np.int32)
    found = from_evidence([page], spans, np.array([0.9, 0.5, 0.8], np.float32), (), 3)
    assert [passage.text for passage in found] == ["The header has eight bits."]
