import math
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes.collection import Collection
from indexes.filters import Filter
from indexes.fulltext import MOST_PAIRS
from indexes.query import Words, adjacent_pairs, identifier_parts, query_terms
from indexes.records import Document
from tests.indexes.support import document, filled

# Words that stemming leaves as they are, and that hold no parts.
WORDS = [a + b + c for a in "bdgkmp" for b in "ou" for c in "bdgkm"]


def bm25(texts: list[list[list[str]]], query: list[tuple[list[str], float]]) -> dict[int, float]:
    """Score documents (columns of words) by BM25 as Robertson and Zaragoza write it, with Lucene's idf.

    k1 = 3, b = 0.75, columns of one weight; a phrase counts as a term and stands within one column.
    """
    lengths = [sum(map(len, columns)) for columns in texts]
    average = sum(lengths) / len(texts)
    scores: dict[int, float] = defaultdict(float)
    for phrase, weight in query:
        n = len(phrase)
        counts = [sum(c[i : i + n] == phrase for c in text for i in range(len(c) - n + 1)) for text in texts]
        holding = sum(count > 0 for count in counts)
        idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        for number, (tokens, count) in enumerate(zip(lengths, counts, strict=True), start=1):
            if count:
                scores[number] += weight * idf * count * 4 / (count + 3 * (0.25 + 0.75 * tokens / average))
    return scores


def found(collection: Collection, query: str) -> list[int]:
    return [number for number, _ in collection.fulltext(query, 10)]


def test_scores_and_order_are_those_of_the_formula(tmp_path: Path) -> None:
    chance = random.Random(7)

    def some(least: int, most: int) -> list[str]:
        return chance.choices(WORDS, range(1, len(WORDS) + 1), k=chance.randint(least, most))

    texts = [[some(0, 8), some(5, 300)] for _ in range(60)]
    with Collection.open(tmp_path, create=True) as collection:
        with collection.write("test"), collection.transaction() as transaction:
            for number, (title, body) in enumerate(texts):
                transaction.put(document(str(number), " ".join(body), title=" ".join(title)), {})
        for _ in range(30):
            a, b, c, d, e = *chance.sample(WORDS[:-1], 4), WORDS[-1]  # the last is in most of the texts
            expected = bm25(texts, [([a], 1), ([b], 1), ([c, d], 1), ([e], 1), ([a, b], 0.4), ([e, a], 0.4)])
            hits = collection.fulltext(f'{a} {b} "{c}  {d}" {e} {a}', 1000)
            assert dict(hits) == pytest.approx(dict(expected), rel=1e-9)
            assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))
            assert collection.fulltext(f'{a} {b} "{c} {d}" {e} {a}', 7) == hits[:7]


def test_another_form_of_a_word_counts_a_quarter_and_never_more_than_the_word(tmp_path: Path) -> None:
    texts = [["certificate", "x"], ["certificates", "x"], ["certificates", "y"], ["z", "z"], ["certify", "z"]]
    with filled(tmp_path, [" ".join(text) for text in texts]) as collection:
        columns = [[text] for text in texts]
        exact, other = bm25(columns, [(["certificate"], 1)]), bm25(columns, [(["certificates"], 0.25)])
        assert dict(collection.fulltext("certificate", 5)) == pytest.approx({**exact, **other})
        # One document holds "certificate", so it alone would weigh more: as much as the word asked for, no more.
        share = math.log(1 + 3.5 / 2.5) / math.log(1 + 4.5 / 1.5)
        exact, other = bm25(columns, [(["certificates"], 1)]), bm25(columns, [(["certificate"], 0.25 * share)])
        assert dict(collection.fulltext("Certificates", 5)) == pytest.approx({**exact, **other})
        assert dict(collection.fulltext('"certificates"', 5)) == pytest.approx(exact)  # quoted: as it is written
        both = bm25(columns, [(["certificates"], 1), (["certificate"], 1)])
        assert dict(collection.fulltext("certificates, certificate", 5)) == pytest.approx(both)


def test_a_word_that_nearly_all_documents_hold_still_ranks(tmp_path: Path) -> None:
    with filled(tmp_path, ["network " + "filler " * 50, "network network network", "network filler", "none"]) as made:
        assert found(made, "network") == [2, 3, 1]
        assert all(score > 0.1 for _, score in made.fulltext("network", 3))


def test_words_that_follow_each_other_in_the_query_count_more_where_they_do_in_the_text(tmp_path: Path) -> None:
    texts = ["transfer path unit maximum", "path maximum transfer unit", *["filler one two three"] * 4]
    with filled(tmp_path, texts) as collection:
        assert found(collection, "maximum transfer unit of the path") == [2, 1]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    texts = [
        "call sched_setaffinity(2) as in RFC 2119 now",  # 1
        "see [RFC2119]; the ThreadPoolExecutor of IPv6",  # 2
        "Un été à Zürich, e\u0301te\u0301 encore",  # 3
        "running runners ran, connections",  # 4
        "什么是线程池的例子",  # 5
        "zero\x00byte and lone \ud800 here",  # 6
        "filler\fsecond page has zebra",  # 7
        *("filler" for _ in range(8)),
    ]
    with filled(tmp_path_factory.mktemp("fulltext"), texts) as made:
        yield made


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("sched_setaffinity", [1]),
        ("setaffinity", [1]),
        ("SCHED", [1]),
        ("RFC 2119", [1, 2]),
        ("RFC2119", [1, 2]),
        ("2119", [1, 2]),
        ('"rfc 2119"', [1, 2]),
        ("ThreadPoolExecutor", [2]),
        ("threadpoolexecutor", [2]),
        ("executor", [2]),
        ("ipv6", [2]),
        ("ete", [3]),
        ("Été", [3]),
        ("zurich", [3]),
        ("runner connection", [4]),
        ('"runner" "connection"', []),
        ("线程池", [5]),
        ("byte", [6]),
        ("zebra", [7]),
        ('"second page"', [7]),
        ('"page second"', []),
        ('"page second" zebra', [7]),
        ("the of zebra", [7]),
        ("nothing", []),
    ],
)
def test_words_parts_and_phrases(collection: Collection, query: str, ids: list[int]) -> None:
    assert sorted(found(collection, query)) == ids


def test_an_identifier_as_a_whole_comes_before_its_parts(tmp_path: Path) -> None:
    texts = ["setaffinity and sched", "sched_setaffinity here", *["one two three"] * 9]
    with filled(tmp_path, texts) as collection:
        assert found(collection, "sched_setaffinity")[0] == 2


def test_titles_are_searched(tmp_path: Path) -> None:
    with filled(tmp_path, ["xyz"] * 5) as collection:
        with collection.write("test"), collection.transaction() as transaction:
            transaction.put(document("t.txt", "body", title="A Heading"), {})
        assert found(collection, "heading") == [6]


@pytest.mark.parametrize(
    "query",
    ["", " ", '"', '""', '"""', "'", "*", "AND", "NOT x", "a NEAR b", "NEAR(a b, 2)", "^x", "title:x", "{title body}:x",
     "-x", "x*", "(", "())", "\x00", "a\x00b", "\ud800", "x" * 1_000_000, "a_" * 300_000, '"' + "w " * 300_000 + '"',
     "😀", "\u0301", "a AND OR NOT", "+ - ? \\ /", "%s {} ; --"],
)  # fmt: skip
def test_nasty_queries(collection: Collection, query: str) -> None:
    collection.fulltext(query, 5)
    collection.fulltext(query, 5, Filter.parse("pages>0"))


@given(st.text(st.one_of(st.characters(codec=None, categories=None), st.sampled_from('"*^():{}+-\x00 aORND'))))
@settings(max_examples=300, deadline=None)
def test_no_query_raises(collection: Collection, query: str) -> None:
    for number, score in collection.fulltext(query, 3):
        assert 1 <= number <= 15 and score > 0


def test_a_filter_does_not_repeat_the_query_for_every_document(collection: Collection) -> None:
    connection = collection._database.connection
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    assert collection.fulltext("filler", 3, Filter.parse("pages>0"))
    connection.set_trace_callback(None)
    (statement,) = (one for one in statements if "bm25" in one)
    plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}"))
    assert "SCAN fulltext VIRTUAL TABLE INDEX 0:M" in plan  # "0:=M" would look up one row at a time


def test_a_whole_document_as_query_finds_it(tmp_path: Path) -> None:
    chance = random.Random(3)
    texts = [" ".join(f"{chance.choice(WORDS)}{chance.choice(WORDS)}" for _ in range(2000)) for _ in range(8)]
    with filled(tmp_path, texts) as collection:
        for number, text in enumerate(texts, start=1):
            assert found(collection, text)[0] == number


def test_a_rare_word_in_a_long_query_is_not_lost(tmp_path: Path) -> None:
    common = [f"{a}{b}" for a in WORDS for b in WORDS[:20]]  # 1,200 words, each in most documents
    with filled(tmp_path, [" ".join(common)] * 5 + ["zebra"]) as collection:
        query = " ".join([*common, "zebra"])
        assert "zebra" in collection.parse(query).terms
        assert 6 in found(collection, query)


def test_the_terms_of_a_query_can_be_asked_for_beforehand(collection: Collection) -> None:
    words = collection.parse('RFC2119 "second page" of zebra stripes')
    assert words.terms == ("rfc2119", "rfc 2119", "rfc", "2119", "second page", "zebra", "stripes")
    assert words.loose == ("rfc2119", "rfc", "2119", "zebra", "stripes")
    assert words.pairs == ("zebra stripes",)
    assert collection.fulltext(words, 5) == collection.fulltext('RFC2119 "second page" of zebra stripes', 5)
    assert collection.fulltext(Words(()), 5) == []
    long = " ".join(f"{a}{b}" for a in WORDS for b in WORDS[:9]) + " zebra"
    assert collection.parse(long) == Words(("zebra",), ("zebra",))  # the others are nowhere


def test_documents_that_hold_a_term(collection: Collection) -> None:
    assert collection.holding(["filler", "rfc 2119", "setaffinity", "nothing"]) == [9, 2, 1, 0]
    assert collection.holding(["filler", "zebra", "rfc"], 7) == [1, 1, 0]
    assert collection.holding([]) == []


def test_k(collection: Collection) -> None:
    assert len(collection.fulltext("filler", 3)) == 3
    assert collection.fulltext("filler", 0) == []
    assert found(collection, "filler") == [*range(8, 16), 7]  # the longest last


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("The quick, brown FOX!", ["quick", "brown", "fox"]),
        ("fox fox Fox", ["fox"]),
        ("to be or not to be", ["to", "be", "or", "not"]),
        ('what is a "Binary  search-tree" the', ["binary search tree"]),
        ('"to be"', ["to be"]),
        ("sched_setaffinity", ["sched setaffinity", "sched", "setaffinity"]),
        ("RFC2119", ["rfc2119", "rfc 2119", "rfc", "2119"]),
        ("HTTPServer PDFs", ["httpserver", "http server", "http", "server", "pdfs"]),
        ("don't Turing's", ["turing s", "turing"]),
        ("vitamin C", ["vitamin", "c"]),
        ('un"balanced quote', ["un", "balanced", "quote"]),
        ("线程池", ["线程池", "线 程", "程 池"]),
        ("...", []),
    ],
)
def test_terms(query: str, terms: list[str]) -> None:
    assert query_terms(query) == terms


@pytest.mark.parametrize(
    ("query", "pairs"),
    [
        ("The maximum transfer unit of a Link", ["maximum transfer", "transfer unit"]),
        ('a "quoted phrase" stands apart', ["stands apart"]),
        ("sched_setaffinity, vitamin C", ["sched setaffinity", "setaffinity vitamin", "vitamin c"]),
        ("fox", []),
        ("", []),
    ],
)
def test_pairs(query: str, pairs: list[str]) -> None:
    assert list(adjacent_pairs(query)) == pairs


def test_a_query_of_few_words_in_all_orders_finds_what_it_is(tmp_path: Path) -> None:
    # A whole document can have more neighbourhoods than SQLite joins searches: 36 words have over a thousand here.
    chance = random.Random(3)
    texts = [" ".join(chance.choices(WORDS[start : start + 36], k=4000)) for start in (0, 12, 24)]
    with filled(tmp_path, texts) as collection:
        assert len(adjacent_pairs(texts[1])) > 1000
        assert [found(collection, text)[0] for text in texts] == [1, 2, 3]


def test_the_commonest_neighbourhoods_of_a_long_query_count(tmp_path: Path) -> None:
    often, seldom = "bob dod", [f"{a} {b}" for a in WORDS[:20] for b in WORDS[20:35]]
    query = " the ".join([*seldom, often, often])
    with filled(tmp_path, [" the ".join([*seldom, often])]) as collection:
        pairs = collection.parse(query).pairs
    assert len(pairs) == MOST_PAIRS
    assert pairs[0] == often


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("See RFC2119 and ThreadPool.", "RFC 2119 Thread Pool"),
        ("plain Words in_snake 3.11 PDFs", ""),
        ("x_y2 3GPP HTTPServer", "y 2 3 GPP HTTP Server"),
        ("a线b", "a 线 b"),
        ("1234GPP x9y", "1234 GPP x 9 y"),
        ("", ""),
    ],
)
def test_parts(text: str, parts: str) -> None:
    assert identifier_parts(text) == parts


def test_documents_of_any_text_can_be_indexed_and_found(tmp_path: Path) -> None:
    with Collection.open(tmp_path, create=True) as collection:
        with collection.write("test"), collection.transaction() as transaction:
            for text in (
                "a1" * 200_000,
                "x" * 1_000_000,
                "Aa" * 200_000,
                "\x00" * 100,
                "A1 " * 9,
            ):
                transaction.put(Document(external_id=text[:9] + str(len(text)), pages=(text,)), {})
        assert collection.verify() == []
