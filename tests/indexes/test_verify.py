import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from indexes.collection import Collection
from indexes.errors import CollectionError, LockedError
from indexes.verify import Problem
from tests.indexes.support import filled, lmk, unit


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    with filled(tmp_path / "c", [f"text {i}" for i in range(1, 11)]) as made:
        with made.write("test"):
            made.persist_caches()
        yield made


def harm(collection: Collection, *statements: str) -> None:
    """Change the tables behind the program's back."""
    with closing(sqlite3.connect(collection.path / "collection.sqlite")) as raw, raw:
        for statement in statements:
            raw.execute(statement)


def blob(*values: float) -> str:
    return "x'" + np.array(values, np.float32).tobytes().hex() + "'"


DAMAGE = {
    "a full text that lost a row": ("DELETE FROM fulltext_docsize WHERE id = 4", "full-text index", True),
    "a full text with a row too many": (
        "INSERT INTO fulltext (rowid, title, body, parts) VALUES (99, '', 'ghost', '')",
        "texts differ: 1",
        True,
    ),
    "a damaged full text": ("UPDATE fulltext_data SET block = x'00' WHERE id > 10", "full-text index is damaged", True),
    "an orphan page": ("INSERT INTO pages VALUES (77, 1, 1, 'x')", "Rows of pages that belong to no document: 1", True),
    "an orphan vector": (
        f"INSERT INTO vectors VALUES (1, 77, 1, 1, 0, {blob(1, *[0] * 15)})",
        "Rows of vectors that belong to no document: 1",
        True,
    ),
    "a vector of no encoder": (
        f"INSERT INTO vectors VALUES (9, 7, 1, 1, 0, {blob(1, *[0] * 15)})",
        "Rows of vectors that belong to no encoder: 1",
        True,
    ),
    "orphan evidence": (
        "DELETE FROM vectors WHERE document_id = 3",
        "Rows of evidence that belong to no vector: 1",
        True,
    ),
    "an orphan tombstone": (
        "INSERT INTO tombstones VALUES (9, 1, 1)",
        "Rows of tombstones that belong to no encoder: 1",
        True,
    ),
    "a short vector": ("UPDATE vectors SET vector = x'0000' WHERE document_id = 3", "document 3 is damaged", True),
    "a vector of another dimension": (
        f"UPDATE vectors SET vector = {blob(1, 0)} WHERE document_id = 3",
        "shape",
        True,
    ),
    "a vector that is not finite": (
        f"UPDATE vectors SET vector = {blob(*[float('nan')] * 16)} WHERE document_id = 3",
        "norm nan",
        True,
    ),
    "a long vector": (f"UPDATE vectors SET vector = {blob(*[1] * 16)} WHERE document_id = 3", "norm 4", True),
    "evidence that is gone": ("DELETE FROM evidence WHERE document_id = 3", "its evidence is gone", True),
    "evidence of another length": ("UPDATE evidence SET vectors = x'00' WHERE document_id = 3", "document 3", True),
    "fewer scales": (f"UPDATE evidence SET scales = {blob(1)} WHERE document_id = 3", "2 evidence vectors", True),
    "a span outside the text": (
        "UPDATE evidence SET spans = CAST(x'00000000ff000000' || substr(spans, 9) AS BLOB) WHERE document_id = 3",
        "outside the text's 6 characters",
        True,
    ),
    "a lost page": ("DELETE FROM pages WHERE document_id = 3", "pages is 0 in place of 1", False),
    "another text": ("UPDATE pages SET text = 'other' WHERE document_id = 3", "not what was stored", False),
    "a text that is not UTF-8": (
        "UPDATE pages SET text = CAST(x'ff41' AS TEXT) WHERE document_id = 3",
        "cannot be read",
        False,
    ),
    "a vector that changed without a generation": (
        f"UPDATE vectors SET vector = {blob(1, *[0] * 15)} WHERE document_id = 3",
        "vectors-1.faiss holds other vectors",
        True,
    ),
}


def test_a_sound_collection_has_no_problems(collection: Collection) -> None:
    assert collection.verify() == []
    assert collection.verify(repair=True) == []
    assert collection.generation == 1  # nothing was written


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found_and_what_can_be_repaired_is(collection: Collection, name: str) -> None:
    statement, message, repairable = DAMAGE[name]
    harm(collection, statement)
    problems = collection.verify()
    assert message in problems[0].what
    assert problems[0] == Problem(problems[0].what, repairable)
    # A vector that comes or goes behind the program's back is missed in the index too.
    assert all("vectors-1.faiss holds other vectors" in other.what for other in problems[1:])
    assert collection.verify(repair=True) == [replace(problem, repaired=repairable) for problem in problems]
    if repairable:
        assert collection.verify() == []
        with Collection.open(collection.path) as again:
            assert again.verify() == []
            missing = again.missing(1)
            assert missing in ([], [3])
            assert len(again.index(lmk(again))) == 10 - len(missing)
            assert len(again.index(lmk(again)).search(unit(0), 20)) == 10 - len(missing)
            assert [number for number, _ in again.fulltext('"text 7"', 5)] == [7]
            assert len(again.fulltext("text", 50)) == 10
            assert again.count() == 10


def test_several_problems_are_repaired_at_once(collection: Collection) -> None:
    names = ("a damaged full text", "an orphan page", "a long vector", "another text")
    harm(collection, *(DAMAGE[name][0] for name in names))
    (collection.path / "vectors-1.faiss").write_bytes(b"damaged")
    assert len(collection.verify()) == 4  # the index file is looked at once the vectors are sound
    problems = collection.verify(repair=True)
    assert sorted(problem.repaired for problem in problems) == [False, True, True, True]
    left = collection.verify()
    assert len(left) == 1 and "Document 3 (/docs/3.txt)" in left[0].what


def test_a_damaged_index_file_is_made_anew(collection: Collection) -> None:
    file = collection.path / "vectors-1.faiss"
    file.write_bytes(file.read_bytes()[:-1])
    assert ["vectors-1.faiss is damaged" in problem.what for problem in collection.verify()] == [True]
    assert file.exists()
    collection.verify(repair=True)
    assert collection.verify() == []
    assert file.exists()


def test_a_missing_index_file_is_no_problem(collection: Collection) -> None:
    (collection.path / "vectors-1.faiss").unlink()
    assert collection.verify() == []


def test_damaged_pages_of_the_database_are_reported_in_one_sentence(collection: Collection) -> None:
    file = collection.path / "collection.sqlite"
    with closing(sqlite3.connect(file)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = raw.execute("PRAGMA page_size").fetchone()
        places = raw.execute("SELECT rootpage FROM sqlite_master WHERE name IN ('pages', 'evidence')").fetchall()
    collection.close()
    data = bytearray(file.read_bytes())
    for (place,) in places:
        data[(place - 1) * size : (place - 1) * size + 200] = b"\x5a" * 200
    file.write_bytes(bytes(data))
    with Collection.open(collection.path) as damaged:
        problems = damaged.verify()
        assert problems and not any(problem.repairable for problem in problems)
        with pytest.raises(CollectionError, match="is damaged") as caught:
            for number in range(1, 11):
                damaged.text(number)
                damaged.embedding(1, number)
        assert "\n" not in str(caught.value)


def test_repair_needs_the_lock(collection: Collection) -> None:
    with Collection.open(collection.path) as other, other.write("ingest"):
        with pytest.raises(LockedError):
            collection.verify(repair=True)
        assert collection.verify() == []
        assert other.verify(repair=True) == []  # the writer itself may
