import fnmatch
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
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
        ("added=2026-01-02T10Z", [2]),
        ("added=2026-01-02T12:00+02:00", [2]),
        ("added=2026-01-02T04:30:00-0530", [2]),
        ("added=2026-01-02T10:00:00.999999Z", [2]),
        ("added>2026-01-02T00:00:00.5+14:00", [2, 3, 4]),
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
        ({"type": ["PDF", "Html"]}, [1, 4]),
        ({"language": ["de", None]}, [2, 3, 4]),
        ({"title": ("Two", "Trois été")}, [2, 3]),
        ({"id": {2, "3", 4.0, 2**70, float("inf")}}, [2, 3, 4]),
        ({"pages": [3, 12.5]}, [2]),
        ({"added": ["2026-01-02", date(2026, 1, 4), "2026-01-01T10:00"]}, [1, 2, 4]),
        ({"added": []}, []),
        ({"author": ["Ann", "Bob", None]}, [1, 2, 3, 4]),
        ({"author": [None]}, [3, 4]),
        ({"author": []}, []),
        ({"author": {"!=": "Ann"}}, [2, 3, 4]),
        ({"year": ["2020", 2010, 2020.5]}, [2, 3, 4]),  # "2020" is 2020 too, that no document has as a number
        ({"year": [2020, float("nan"), float("inf"), 10**400]}, []),
        ({"tags": ["y", 7]}, [1, 4]),
        ({"tags": ["7"]}, [4]),
        ({"final": [True, "x"]}, [1]),
        ({"final": [True, False]}, [1, 2]),
        ({"final": "true"}, [1]),
        ({"final": 1}, []),
        ({'k"q': ["v", 'w"', "\ud800", "\0"]}, [2]),
        ({"added": datetime(2026, 1, 2, 10)}, [2]),
        ({"added": datetime(2026, 1, 2, 10, tzinfo=UTC)}, [2]),
        ({"added": datetime(2026, 1, 2, 10, 0, 0, 999_999)}, [2]),
        ({"added": datetime(2026, 1, 2, 12, 0, 0, 5, tzinfo=timezone(timedelta(hours=2)))}, [2]),
        ({"added": {">": datetime(2026, 1, 3, 0, 30, tzinfo=timezone(timedelta(hours=14, seconds=1)))}}, [3, 4]),
        ({"metadata.$odd": None}, [1, 2, 3, 4]),
    ],
)
def test_mappings(collection: Collection, mapping: dict[str, Any], ids: list[int]) -> None:
    assert collection.allowed(Filter.from_dict(mapping)).tolist() == ids


@pytest.mark.parametrize(
    ("field", "values", "ids"),
    [
        ("id", list(range(2, 100_002)), [2, 3, 4]),
        ("title", [f"Title {number}" for number in range(100_000)] + ["Two"], [2]),
        ("added", [str(day) for day in np.arange("1800-01-01", "2026-01-03", dtype="datetime64[D]")], [1, 2]),
        ("author", [f"Author {number}" for number in range(100_000)] + ["Bob"], [2]),
        ("year", list(range(100_000)), [1, 2]),
        ("tags", [*range(99_999), "x"], [1, 4]),
    ],
)
def test_a_list_may_be_of_any_length(collection: Collection, field: str, values: list[Any], ids: list[int]) -> None:
    wanted = Filter.from_dict({field: values})
    assert collection.allowed(wanted).tolist() == ids
    assert [found.id for found in collection.documents(wanted)] == ids
    assert sorted(number for number, _ in collection.fulltext("x " + "x" * 50, 10, wanted)) == ids


@given(st.lists(st.one_of(st.text(max_size=5), st.integers(), st.floats(), st.booleans(), st.none()), max_size=6))
@settings(max_examples=150, deadline=None)
@example(["Bob", 1999, None])
@example([2020.5, "9.5"])
@example(["\ud800\0'\"", True])
def test_a_list_is_any_of_its_values(collection: Collection, values: list[Any]) -> None:
    for field in ("author", "year", "score", "final", "title"):
        each = [set(collection.allowed(Filter.from_dict({field: value})).tolist()) for value in values]
        assert set(collection.allowed(Filter.from_dict({field: values})).tolist()) == set().union(*each)


def test_thousands_of_conditions(collection: Collection) -> None:
    connection = collection._database.connection
    most = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32766)  # as SQLite is built unless told otherwise
    try:
        not_so = Filter.all(["id!=3", *(f"year!={number}" for number in range(3000, 7999))])
        assert collection.allowed(not_so).tolist() == [1, 2, 4]
        assert sorted(number for number, _ in collection.fulltext("x " + "x" * 50, 10, not_so)) == [1, 2, 4]
        assert collection.allowed(Filter.from_dict({f"key {number}": None for number in range(5000)})).size == 4
        assert collection.allowed(Filter.all([*["pages>=3"] * 4999, "id=2"])).tolist() == [2]
    finally:
        connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, most)


def test_more_conditions_are_refused_with_the_limit() -> None:
    with pytest.raises(FilterError, match=r"has 5,001 conditions, and 5,000 is the most: give .* as a list") as caught:
        Filter.all([f"id!={number}" for number in range(5001)])
    assert "\n" not in str(caught.value)


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
        ("added>2026-13-45", "'2026-13-45', and there is no such date or time: write for example 'added>2026-01-01'"),
        ("added=2026-11-30T25:99", "'2026-11-30T25:99', and there is no such date or time"),
        ("added<2026-02-29", "no such date"),
        ("added<0000", "no such date"),
        ("updated<0001-01-01T00:00+01:00", "no such date"),
        ("updated<2026-01-01T00:00+25:00", "no such date"),
        ("added>2026-11-1012", "not an ISO date"),
        ("added>2026-11+02:00", "not an ISO date"),
        ("added>\N{FULLWIDTH DIGIT TWO}026", "not an ISO date"),
        ("$and=3", "'$and' where a field belongs"),
    ],
)
def test_a_bad_expression_is_one_sentence_with_an_example(expression: str, message: str) -> None:
    with pytest.raises(FilterError) as caught:
        Filter.parse(expression)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"pages": {"about": 3}}, "'pages' has the operator 'about': use one of ="),
        ({"pages": {">": [1, 2]}}, "has (1, 2) for '>': a list goes with 'in'"),
        ({"id": {"=": list(range(100_000))}}, "…"),
        ({"id": {"in": 3}}, "has 3 for 'in'"),
        ({"id": True}, "True, which is not a number"),
        ({"id": [1, "two"]}, "'two', which is not a number"),
        ({"id": range(3)}, "has range(0, 3) for '='"),
        ({"added": ["2026-01-01", "2026-13-45"]}, "'2026-13-45', and there is no such date or time"),
        ({"$and": [{"type": "pdf"}]}, "'$and' where a field belongs: its conditions must all hold"),
        ({"$or": [{"type": "pdf"}]}, "= != ~ > >= < <= in $eq $ne $gt $gte $lt $lte $in"),
        ({1: 2}, "the key 1, which is not a text"),
        ({"type": {}}, "'type' is an empty mapping, which asks for nothing: leave it out"),
        ({"author": {">": None}}, "has None for '>': None, True and False go with =, !=, in alone"),
        ({"author": {"~": None}}, "has None for '~'"),
        ({"title": {"<=": None}}, "has None for '<='"),
        ({"final": {">": False}}, "has False for '>'"),
        ({"author": [["Ann"]]}, "one text, number or date"),
        ({"author": {"=": {"name": "Ann"}}}, "has {'name': 'Ann'} for '='"),
        ({"author": b"Ann"}, "has b'Ann' for '='"),
    ],
)
def test_a_bad_mapping_is_one_sentence(mapping: dict[Any, Any], message: str) -> None:
    with pytest.raises(FilterError) as caught:
        Filter.from_dict(mapping)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


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
