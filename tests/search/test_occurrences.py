"""Occurrences: where the full-text index finds a term, at exact places; against its own tokenizer."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.highlight import highlight
from indexes.query import query_terms
from lmk_rag.occurrences import occurrences


def found(text: str, term: str) -> list[str]:
    (places,) = occurrences(text, [term])
    return [text[start:end] for start, end in places]


@pytest.mark.parametrize(
    ("text", "term", "words"),
    [
        ("Portable ports support a PORT, airports do not", "port", ["ports", "PORT"]),
        ("One port, and the portal", "ports", ["port"]),
        ("No study of studies was studied by students", "study", ["study", "studies", "studied"]),
        ("I hope, hoping for hops", "hope", ["hope", "hoping"]),
        ("capable of any capability, capital", "capability", ["capable", "capability"]),
        ("RFCs and CPUs, cpus", "rfc", ["RFCs"]),
        ("RFCs and CPUs, cpus; As, DNS", "cpu", ["CPUs"]),
        ("DNS and DNs", "dn", ["DNs"]),
        ("As a rule", "a", ["a"]),
        ("éport, Export, port", "port", ["port"]),
        ("naNanas", "nana", ["Nanas"]),
        ("dying of a die", "dying", ["dying", "die"]),
        ("Zürich, ZÜRICH, Zu\u0308rich!", "zurich", ["Zürich", "ZÜRICH", "Zu\u0308rich"]),
        ("Zürich, zurich", "zu\u0308rich", ["Zürich", "zurich"]),
        ("İstanbul and ISTANBUL", "istanbul", ["İstanbul", "ISTANBUL"]),
        ("ΣΊΣΥΦΟΣ σίσυφος", "σίσυφος", ["ΣΊΣΥΦΟΣ", "σίσυφος"]),
        ("Straße, STRASSE", "straße", ["Straße"]),
        ("RFC2119, RFC 2119, rfc2119bis, XRFC2119", "rfc2119", ["RFC2119", "rfc2119"]),
        ("RFC2119, RFC 2119, RFC-2119, RFC 21190", "rfc 2119", ["RFC2119", "RFC 2119", "RFC-2119"]),
        ("RFC2119, 2119, 002119, 21190", "2119", ["2119", "2119"]),
        ("a ThreadPool of ThreadPools, threadpools", "pool", ["Pool", "Pools"]),
        ("ThreadPoolExecutor, threadpool, thread pool", "threadpool", ["ThreadPool", "threadpool"]),
        ("ThreadPoolExecutor, thread-pools, thread a pool", "thread pool", ["ThreadPool", "thread-pools"]),
        ("see RFC2119 now", "see rfc2119", ["see RFC2119"]),
        ("see RFC2119 now", "see rfc 2119 now", ["see RFC2119 now"]),
        ("sched_setaffinity(2)", "sched setaffinity", ["sched_setaffinity"]),
        ("sched_setaffinity(2)", "setaffinity", ["setaffinity"]),
        ("東京都の京都", "京 都", ["京都", "京都"]),
        ("東京都の京都", "京都", ["京都", "京都"]),
        ("東京都", "京 東", []),
        ("to be, or not to be; be not", "to be", ["to be", "to be"]),
        ("the thread", "thread pool", []),
        ("a a a", "a a", ["a a", "a a"]),
        (f"{'port' * 20}s", "port" * 20, []),  # no word of a language
        ("text", "_", []),
        ("text", "", []),
        ("", "text", []),
    ],
)
def test_terms_are_found_as_the_index_finds_them(text: str, term: str, words: list[str]) -> None:
    assert found(text, term) == words


def test_each_term_has_places_of_its_own() -> None:
    assert occurrences("RFC2119", query_terms("RFC2119")) == [[(0, 7)], [(0, 7)], [(0, 3)], [(3, 7)]]
    assert occurrences("e\u0301te\u0301 E\u0301TE\u0301", ["été", "sea"]) == [[(0, 5), (6, 11)], []]
    assert occurrences("text", []) == []


def covered(text: str, terms: list[str]) -> set[int]:
    return {place for places in occurrences(text, terms) for start, end in places for place in range(start, end)}


def marked(texts: list[str], terms: list[str]) -> list[set[int]]:
    return [{place for mark in marks for place in range(*mark)} for marks in highlight(texts, terms)]


PIECES = """
    port ports portable PORT support study studies studied student Zürich zurich ZURICH RFC2119 rfc2119 RFC RFCs 2119
    ThreadPool ThreadPools pool Pools thread HTTPServer server IPv6 IPV6 ipv6 CPUs cpu sched_setaffinity setaffinity
    hope hoping capability capable 東京都 京都 京 都 線程池 ไทย Straße STRASSE İstanbul istanbul naïve Tiếng tieng
    Σίσυφος ΣΊΣΥΦΟΣ µm Ⅷ ² a A 11 1 한국어 हिन्दी été Été
""".split()  # noqa: SIM905 - a list would take a line a word
ASKED = [piece for piece in PIECES if piece not in ("RFCs", "CPUs")]  # in lower case these are no plurals any more
BETWEEN = [" "] * 6 + ["", "", "-", "_", ". ", "\n\n", " — ", "'", "\0", "\ud800"]


def test_what_is_found_is_what_the_index_marks() -> None:
    rng = random.Random(20)
    marks = 0
    for _ in range(300):
        texts = [
            "".join(rng.choice(PIECES) + rng.choice(BETWEEN) for _ in range(rng.randrange(1, 14))) for _ in range(10)
        ]
        words = [rng.choice(ASKED) for _ in range(rng.randrange(1, 4))]
        # In quotes, a word that falls apart is for the index only what it is whole.
        whole = len(words) > 1 and rng.random() < 0.3
        terms = query_terms(f'"{" ".join(words)}"' if whole else " ".join(words))
        expected = marked(texts, terms)
        marks += sum(map(len, expected))
        assert [covered(text, terms) for text in texts] == expected, terms
    assert marks > 3_000


def test_in_a_real_text_the_same_is_found_as_the_index_marks() -> None:
    text = (Path(__file__).parents[2] / "LICENSE").read_text(encoding="utf-8")
    texts = [text[at : at + 700] for at in range(0, len(text), 700)]
    for query in ["contribution", "licenses", "derivative works", '"patent license"', "do you use it", "modify", "2.0"]:
        terms = query_terms(query)
        expected = marked(texts, terms)
        assert any(expected), query
        assert [covered(piece, terms) for piece in texts] == expected, query


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("aB1é_ 你İßΣ\u0301-"), max_size=40), st.text(st.sampled_from("ab1é你 "), max_size=4))
def test_places_are_inside_and_ascending(text: str, term: str) -> None:
    (places,) = occurrences(text, [term])
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert all(one < other for (one, _), (other, _) in pairwise(places))


@given(st.text(max_size=30))
def test_a_text_holds_each_term_of_itself(text: str) -> None:
    if terms := query_terms(text):
        assert all(occurrences(text, terms[:1]))
