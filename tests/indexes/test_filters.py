import fnmatch
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from indexes.collection import Collection
from indexes.errors import FilterError
from indexes.filters import Filter
from indexes.glob import to_sqlite
from indexes.records import Document

DOCUMENTS = [
    Document(external_id="/a/one.pdf", pages=("x",) * 12, title="One", kind="pdf", language="en",
             metadata={"year": 1999, "author": "Ann", "tags": ["x", "y"], "final": True, "a.b": 1}),
    Document(external_id="/a/b/two.txt", pages=("x",) * 3, title="Two", language="de",
             metadata={"year": 2010, "author": "Bob", "tags": [], "final": False, 'k"q': "v"}),
    Document(external_id="/c/[three].txt", pages=("x" * 50,), title="Trois été",
             metadata={"year": "2020", "score": 9.5, "source": "web", "none": None, "nested": {"year": 5}}),
    Document(external_id="4", pages=("x",), source="langchain", kind="html",
             metadata={"year": 2020.5, "tags": [7, "7x"]}),
]  # fmt: skip


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    with Collection.open(tmp_path_factory.mktemp("filters"), create=True) as made:
        with made.write("test"), made.transaction() as transaction:
            for put in DOCUMENTS:
                transaction.put(put, {})
        with made.write("test"), made.transaction() as transaction:
            made._database.change("UPDATE documents SET added = '2026-01-0' || id || 'T10:00:00Z'")
        yield made


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        ("type=pdf", [1]),
        ("type=PDF", [1]),
        (" type != pdf ", [2, 3, 4]),
        ("path=/a/one.pdf", [1]),
        ("path~/a/*", [1, 2]),
        ("path~*.txt", [2, 3]),
        ("path~/c/[[]three].*", [3]),
        ("path~/?/[!b]*", [1, 3]),
        ("title=Two", [2]),
        ("title~T*", [2, 3]),
        ("title=Trois été", [3]),
        ("pages>3", [1]),
        ("pages>=3", [1, 2]),
        ("pages<3", [3, 4]),
        ("pages<=3", [2, 3, 4]),
        ("pages=12", [1]),
        ("pages!=12", [2, 3, 4]),
        ("pages>2.5", [1, 2]),
        ("characters=50", [3]),
        ("id=2", [2]),
        ("language=en", [1]),
        ("language!=en", [2, 3, 4]),
        ("language=", [3, 4]),
        ("source=langchain", [4]),
        ("metadata.source=web", [3]),
        ("added>2026-01-02", [3, 4]),
        ("added>=2026-01-02", [2, 3, 4]),
        ("added<=2026-01-02", [1, 2]),
        ("added=2026-01-02", [2]),
        ("added=2026-01", [1, 2, 3, 4]),
        ("added>2026", []),
        ("added>2026-01-02T09:59", [2, 3, 4]),
        ("added>2026-01-02 10:00:00Z", [3, 4]),
        ("author=Ann", [1]),
        ("author!=Ann", [2, 3, 4]),
        ("author~?ob", [2]),
        ("author>Ann", [2]),
        ("year>2000", [2, 3, 4]),  # a text is compared as text
        ("year<2000", [1]),
        ("year=2020.5", [4]),
        ("score>9", [3]),
        ("score>10", []),  # as text, "9.5" would be more
        ("tags=x", [1]),
        ("tags=7", [4]),
        ("tags~7*", [4]),
        ("final=true", [1]),
        ("final=false", [2]),
        ("a.b=1", [1]),
        ('k"q=v', [2]),
        ("nobody=x", []),
        ("nobody!=x", [1, 2, 3, 4]),
        ("author=A=B", []),
        ("year>99999999999999999999999", []),
        ("title=x'; DROP TABLE documents; --", []),
        ("') OR 1=1 --=x", []),
    ],
)
def test_expressions(collection: Collection, expression: str, ids: list[int]) -> None:
    wanted = Filter.parse(expression)
    assert collection.allowed(wanted).tolist() == ids
    assert [found.id for found in collection.documents(wanted)] == ids
    assert collection.count(wanted) == len(ids)
    assert sorted(number for number, _ in collection.fulltext("x " + "x" * 50, 10, wanted)) == ids


@pytest.mark.parametrize(
    ("mapping", "ids"),
    [
        ({}, [1, 2, 3, 4]),
        ({"type": "pdf"}, [1]),
        ({"type": ["pdf", "html"]}, [1, 4]),
        ({"type": []}, []),
        ({"pages": {">": 1, "<": 12}}, [2]),
        ({"pages": {"$gte": 3}, "author": "Bob"}, [2]),
        ({"year": {"$in": [1999, 2010]}}, [1, 2]),
        ({"year": {"$ne": 1999}}, [2, 3, 4]),
        ({"author": None}, [3, 4]),
        ({"author": {"!=": None}}, [1, 2]),
        ({"none": None}, [1, 2, 3, 4]),
        ({"final": True}, [1]),
        ({"year": "2020"}, [3]),
        ({"year": 2020}, []),
        ({"language": None}, [3, 4]),
    ],
)
def test_mappings(collection: Collection, mapping: dict[str, Any], ids: list[int]) -> None:
    assert collection.allowed(Filter.from_dict(mapping)).tolist() == ids


def test_joined_by_and(collection: Collection) -> None:
    assert collection.allowed(Filter.all(["path~*.txt", Filter.parse("pages=3")])).tolist() == [2]
    assert collection.allowed(Filter.all([])).tolist() == [1, 2, 3, 4]
    assert not Filter.all([]) and Filter.parse("id=1")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "'' is not FIELD OPERATOR VALUE: write for example"),
        ("pdf", "'pdf' is not FIELD OPERATOR VALUE"),
        ("=pdf", "is not FIELD OPERATOR VALUE"),
        ("pages>ten", "'ten', which is not a number: write for example 'pages>10'"),
        ("pages>nan", "not a number"),
        ("pages~1*", "asks for a pattern where there is no text"),
        ("added>yesterday", "'yesterday', which is not an ISO date: write for example 'added>2026-01-01'"),
    ],
)
def test_a_bad_expression_is_one_sentence_with_an_example(expression: str, message: str) -> None:
    with pytest.raises(FilterError) as caught:
        Filter.parse(expression)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "mapping", [{"pages": {"about": 3}}, {"pages": {">": [1, 2]}}, {"id": {"in": 3}}, {"id": True}]
)
def test_a_bad_mapping(mapping: dict[str, Any]) -> None:
    with pytest.raises(FilterError):
        Filter.from_dict(mapping)


@given(st.text(), st.text())
@settings(max_examples=150, deadline=None)
def test_nothing_a_user_writes_breaks_the_sql(collection: Collection, field: str, value: str) -> None:
    try:
        wanted = Filter.parse(f"{field}={value}")
    except FilterError:
        return
    collection.allowed(wanted)


PATTERN = st.text(st.sampled_from("ab*?[]!^"), max_size=8)


@given(PATTERN, st.text(st.sampled_from("ab[]!^-"), max_size=4))
@settings(max_examples=800, deadline=None)
@example("[a-c]", "b")
@example("[!a-c]", "b")
@example("[c-a]", "b")
@example("[!c-a]", "b")
@example("[a-]", "-")
@example("[-a]", "-")
@example("[!-a]", "-")
@example("[^-]", "^")
@example("[^-]", "-")
@example("[]a-c^-]", "^")
@example("[]a-c^-]", "-")
@example("[]a-c^-]", "]")
@example("[é-ü]", "ö")
def test_patterns_mean_what_fnmatch_means(pattern: str, text: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        (found,) = connection.execute("SELECT ? GLOB ?", (text, to_sqlite(pattern))).fetchone()
    assert bool(found) == fnmatch.fnmatchcase(text, pattern), to_sqlite(pattern)
