"""Highlights: what the full-text index would match is marked, at its exact place."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.highlight import highlight
from indexes.query import query_terms, split_identifiers


def marked(text: str, query: str) -> list[str]:
    (found,) = highlight([text], query_terms(query))
    return [text[start:end] for start, end in found]


@pytest.mark.parametrize(
    ("text", "query", "words"),
    [
        ("The whale swims; whales sing.", "whales", ["whale", "whales"]),
        ("We search the sea for seals", "sea", ["sea"]),  # not the beginning of other words
        ("She was running, he ran", "run", ["running"]),
        ("Zürich, ZURICH, Zu\u0308rich", "zurich", ["Zürich", "ZURICH", "Zu\u0308rich"]),
        ("call sched_setaffinity(2)", "sched_setaffinity", ["sched_setaffinity"]),
        ("call sched_setaffinity(2)", "setaffinity", ["setaffinity"]),
        ("as RFC2119 and RFC 2119 say", "RFC 2119", ["RFC2119", "RFC", "2119"]),
        ("as RFC2119 says", "2119", ["2119"]),
        ("a ThreadPoolExecutor here", "executor", ["Executor"]),
        ("a ThreadPoolExecutor here", "threadpoolexecutor", ["ThreadPoolExecutor"]),
        ("to be or not to be", '"not to be"', ["not to be"]),
        ("be not to", '"not to be"', []),
        ("什么是线程池的例子", "线程池", ["线程池"]),
        ("nothing of it", "whale", []),
        ("a \ufdd0whale\ufdd1 \x00 \ud800 sea", "sea", ["sea"]),
        ("", "sea", []),
    ],
)
def test_what_the_index_matches_is_marked(text: str, query: str, words: list[str]) -> None:
    found = marked(text, query)
    # A phrase whose words are found one by one too may be marked whole or word by word.
    assert " ".join(found).split() == " ".join(words).split()


def test_each_text_has_marks_of_its_own() -> None:
    assert highlight(["sea", "sky", "a sea"], ["sea"]) == [((0, 3),), (), ((2, 5),)]
    assert highlight(["sea"], []) == [()]
    assert highlight([], ["sea"]) == []


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60), st.text(max_size=20))
def test_marks_are_inside_ascending_and_apart(text: str, query: str) -> None:
    (found,) = highlight([text], query_terms(query))
    borders = [border for mark in found for border in mark]
    assert borders == sorted(set(borders))
    assert all(0 <= border <= len(text) for border in borders)


@given(st.text(st.sampled_from("aB1é_ 你线\u0301Ab")))
def test_splitting_only_puts_spaces_in(text: str) -> None:
    apart, places = split_identifiers(text)
    assert len(apart) == len(places)
    assert [place for place in places if place >= 0] == list(range(len(text)))
    assert all(character == (" " if place < 0 else text[place]) for character, place in zip(apart, places, strict=True))


def test_identifiers_fall_apart_as_they_do_in_the_index() -> None:
    assert split_identifiers("See RFC2119, HTTPServer2")[0] == "See RFC 2119, HTTP Server 2"
