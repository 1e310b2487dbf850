import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from indexes.collection import Collection
from indexes.errors import CollectionError
from tests.indexes.support import document, filled


def as_schema_1(folder: Path) -> None:
    """Put the file back to the first schema: stems in the full-text index, no vocabulary."""
    with closing(sqlite3.connect(folder / "collection.sqlite")) as raw, raw:
        raw.execute("DROP TABLE vocabulary")
        raw.execute("DROP TABLE fulltext")
        raw.execute(
            "CREATE VIRTUAL TABLE fulltext USING fts5(title, body, parts, content = '', "
            "tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        raw.execute(
            "INSERT INTO fulltext (rowid, title, body, parts) "
            "SELECT document_id, '', group_concat(text, char(12)), '' FROM pages GROUP BY document_id"
        )
        raw.execute("PRAGMA user_version = 1")


def test_a_collection_of_the_first_schema_gets_its_words_as_they_are_written(tmp_path: Path) -> None:
    texts = ["the runner", "running\fon RFC2119", "filler"]
    with filled(tmp_path, texts) as fresh:
        expected = {query: fresh.fulltext(query, 3) for query in ("runner", "running", '"run"', "2119")}
    as_schema_1(tmp_path)
    with Collection.open(tmp_path) as collection:
        assert {query: collection.fulltext(query, 3) for query in expected} == expected
        assert collection.verify() == []
        with collection.write("test"), collection.transaction() as transaction:  # what was added can be taken out
            transaction.put(document("4", "running again"), {})
            transaction.remove(2)
        assert [number for number, _ in collection.fulltext("running", 3)] == [4]
        assert collection.verify() == []
    with Collection.open(tmp_path) as again:
        assert again.count() == 3


def test_a_step_that_fails_leaves_the_first_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path, ["one", "two"]).close()
    as_schema_1(tmp_path)
    monkeypatch.setattr("indexes.schema.CREATE_VOCABULARY", "CREATE NONSENSE")
    with pytest.raises(CollectionError):
        Collection.open(tmp_path)
    with closing(sqlite3.connect(tmp_path / "collection.sqlite")) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (1,)
        assert raw.execute("SELECT count(*) FROM fulltext WHERE fulltext MATCH 'two'").fetchone() == (1,)
