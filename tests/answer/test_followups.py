"""Follow-up questions without a model: what they are about, what they are judged by, and that no answer comes twice."""

from collections.abc import Callable

import pytest

from lmk_rag.answer import answer
from lmk_rag.answering.followup import topic_of
from lmk_rag.answering.terms import QuestionTerms
from lmk_rag.search import Searcher

Make = Callable[..., Searcher]
TEXTS = [
    "The sea is deep and blue. Whales sing in the sea at night. Nobody knows why they sing.",
    "Rust eats iron. It needs water and air. Paint keeps water away from iron.",
    "Stars shine at night. A lantern shines brighter than any of them.",
]
SUNG = [("Do whales sing?", "Whales sing in the sea at night. [1]")]


@pytest.mark.parametrize(
    ("question", "history", "topic"),
    [
        ("When do they do it?", [("What eats iron?", "x"), ("Do whales sing?", "x")], "whales sing"),
        ("And whales?", [("Do whales sing?", "x")], "sing"),  # no word twice
        ("How deep is the blue northern sea?", [("Do whales sing?", "x")], ""),  # it stands alone
        ("Do whales sing?", [], ""),
        (  # the question before was a follow-up itself
            "And in IPv6?",
            [("What is the largest UDP datagram?", "x"), ("And in RFC2119?", "y")],
            "largest UDP datagram RFC2119",
        ),
    ],
)
def test_a_follow_up_is_about_what_was_asked_before(question: str, history: list[tuple[str, str]], topic: str) -> None:
    assert topic_of(question, history) == topic


def test_a_follow_up_s_own_words_weigh_three_times_as_much_as_its_topic(make_searcher: Make) -> None:
    terms = QuestionTerms(make_searcher(TEXTS).collection, "And their night?", "whales sing")
    assert terms.terms == ["night", "whales", "sing"]
    assert terms.share("by night") == pytest.approx(3 / 4)
    assert terms.share("whales sing") == pytest.approx(1 / 4)
    assert terms.share("whales sing by night") == pytest.approx(1)
    pointing = QuestionTerms(make_searcher(TEXTS).collection, "Why is that?", "whales sing")
    assert pointing.share("whales sing") == pytest.approx(1)


def test_a_follow_up_is_answered_about_its_topic(make_searcher: Make) -> None:
    searcher = make_searcher(TEXTS)
    asked = [("What needs water?", "It needs water and air. [1]")]
    quotes = [each.quote for each in answer(searcher, "And iron?", history=asked).citations]
    assert "Paint keeps water away from iron." in quotes


def test_an_answer_is_not_repeated(make_searcher: Make) -> None:
    searcher = make_searcher(TEXTS)
    again = answer(searcher, "And when do they do that?", history=SUNG)
    assert "Whales sing in the sea at night." not in [each.quote for each in again.citations]
    signed = make_searcher(["sea.sing(tune)\n\nLet the whales sing a tune. The whales sing it at night."])
    said = [("What do whales sing?", "sea.sing(tune) Let the whales sing a tune. [1]")]
    assert [each.quote for each in answer(signed, "And when do whales sing?", history=said).citations] == [
        "The whales sing it at night."
    ]


def test_what_no_document_says_of_the_topic_is_not_found(make_searcher: Make) -> None:
    found = answer(make_searcher(TEXTS), "And copper?", history=SUNG)
    assert not found.found  # not the whales once more
    assert found.nearest


def test_a_short_question_may_begin_another_subject(make_searcher: Make) -> None:
    searcher = make_searcher(TEXTS)
    asked = [("What eats iron and needs water and air?", "Rust eats iron. [1]")]
    assert answer(searcher, "Lantern brighter?", history=asked, k=1).found
    assert not answer(searcher, "And lantern brighter?", history=asked, k=1).found  # it points back


def test_the_same_question_once_more_is_answered(make_searcher: Make) -> None:
    asked = "Do whales sing in the sea?"
    assert answer(make_searcher(TEXTS), asked, history=[(asked, "Whales sing in the sea at night. [1]")]).found
