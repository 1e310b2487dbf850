import dataclasses
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexes.collection import Collection
from indexes.errors import CollectionError, SchemaError
from indexes.records import Document, Failure, StoredEmbedding
from tests.indexes.support import DIMENSION, document, embedding, filled, lmk

ANY_TEXT = st.text(st.characters(codec=None, categories=None))


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    with filled(tmp_path / "c", ["one text", "two texts", "one text"]) as made:
        yield made


def same(left: StoredEmbedding, right: StoredEmbedding) -> bool:
    return all(
        np.array_equal(getattr(left, field.name), getattr(right, field.name))
        for field in dataclasses.fields(StoredEmbedding)
    )


@pytest.mark.parametrize(
    "page",
    [
        "",
        "plain",
        "nul \x00 inside\x00",
        "e\u0301 combining",
        "👩‍👩‍👧 emoji",
        "lone \ud800 surrogate \udfff",
        "\r\n\ufeff",
    ],
)
def test_any_text_comes_back_as_it_was(tmp_path: Path, page: str) -> None:
    put = Document(
        external_id=f"/a/{page}",
        pages=(page, "between", page),
        title=page,
        source="langchain",
        metadata={"key" + page: [page, None, 1.5, True, {"deep": page}]},
        sha256="ab",
        size=3,
        mtime_ns=2**62,
        language="en",
        warnings=(page, "b"),
    )
    with Collection.open(tmp_path, create=True) as collection:
        with collection.write("test"), collection.transaction() as transaction:
            number, state = transaction.put(put, {})
        assert state == "indexed"
    with Collection.open(tmp_path) as collection:
        stored = collection.find(put.external_id, "langchain")
        assert stored is not None and stored == collection.get(number)
        assert collection.page_texts(number) == list(put.pages)
        assert collection.text(number) == f"{page}\n\nbetween\n\n{page}"
        for name in ("title", "source", "metadata", "sha256", "size", "mtime_ns", "language", "warnings"):
            assert getattr(stored, name) == getattr(put, name), name
        assert stored.path == put.external_id
        assert stored.pages == 3
        assert stored.characters == len(put.text)
        assert stored.text_bytes == len(put.text.encode("utf-8", "surrogatepass"))
        assert stored.text_sha256 == put.text_sha256
        assert collection.verify() == []


@given(pages=st.lists(ANY_TEXT, max_size=4), title=ANY_TEXT, name=ANY_TEXT)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_put_replace_and_remove_any_text(collection: Collection, pages: list[str], title: str, name: str) -> None:
    before = collection.count()
    with collection.write("test"):
        for turn, state in (("first", "indexed"), ("second", "updated")):
            put = Document(external_id=name, pages=(*pages, turn), title=title, source="hypothesis")
            with collection.transaction() as transaction:
                number, found = transaction.put(put, {})
            assert found == state
            assert collection.page_texts(number) == [*pages, turn]
        with collection.transaction() as transaction:
            assert transaction.remove(number)
            assert not transaction.remove(number)
    assert collection.count() == before
    assert collection.find(name, "hypothesis") is None
    assert collection.verify() == []  # the full-text index has lost exactly what it was given


def test_embeddings_come_back_equal(collection: Collection) -> None:
    found = collection.embeddings(1, [3, 1, 99])
    assert sorted(found) == [1, 3]
    assert same(found[1], embedding(1)) and same(found[3], embedding(3))
    assert found[1].vector.dtype == np.float32 and found[1].evidence.dtype == np.int8
    assert found[1].scales.dtype == np.float32 and found[1].spans.dtype == np.int32


def test_the_evidence_ratio_is_kept(collection: Collection) -> None:
    assert collection.evidence_ratio is None
    for ratio in (0.8, 3):
        with collection.write("test"), collection.transaction() as transaction:
            transaction.set_evidence_ratio(ratio)
        assert collection.evidence_ratio == ratio
    for ratio in (0, -1, float("nan"), float("inf")):
        with (
            collection.write("test"),
            pytest.raises(CollectionError, match="must be above 0"),
            collection.transaction() as transaction,
        ):
            transaction.set_evidence_ratio(ratio)
    assert collection.evidence_ratio == 3


def test_several_documents_at_once(collection: Collection) -> None:
    with collection.write("test"), collection.transaction() as transaction:
        ids = [transaction.put(document(f"{number}.txt"), {})[0] for number in range(3)]
    assert collection.get_all([ids[2], ids[0], 999]) == {number: collection.get(number) for number in (ids[0], ids[2])}
    assert collection.get_all([]) == {}


def test_ids_of_numpy_are_taken_too(collection: Collection) -> None:
    number = np.int64(2)
    assert collection.get(number) == collection.get(2) is not None  # type: ignore[arg-type]
    assert collection.text(number) == "two texts"  # type: ignore[arg-type]
    assert collection.embedding(1, number) is not None  # type: ignore[arg-type]


def test_an_embedding_without_evidence(collection: Collection) -> None:
    with collection.write("test"), collection.transaction() as transaction:
        transaction.put_embedding(2, 1, embedding(9, n=0))
    found = collection.embedding(1, 2)
    assert found is not None and same(found, embedding(9, n=0))
    assert found.evidence.shape == (0, DIMENSION) and found.spans.shape == (0, 2)


def test_replacing_keeps_the_id_and_drops_everything_old(collection: Collection) -> None:
    old = collection.get(2)
    with collection.write("test"), collection.transaction() as transaction:
        assert transaction.put(document("2.txt", "quite other words\fmore"), {}) == (2, "updated")
        generation = transaction.generation
    new = collection.get(2)
    assert old is not None and new is not None
    assert (new.generation, new.added) == (generation, old.added)
    assert collection.page_texts(2) == ["quite other words", "more"]
    assert collection.embedding(1, 2) is None
    assert collection.missing(1) == [2]
    assert collection.fulltext("texts", 10) != [] and collection.fulltext("two", 10) == []
    assert [number for number, _ in collection.fulltext("quite", 10)] == [2]
    assert collection.vectors(lmk(collection)).tombstones_since(generation - 1).tolist() == [2]


def test_ids_of_removed_documents_are_not_given_again(collection: Collection) -> None:
    with collection.write("test"), collection.transaction() as transaction:
        transaction.remove(3)
        assert transaction.put(document("new.txt"), {})[0] == 4


def test_every_row_carries_the_generation_that_wrote_it(collection: Collection) -> None:
    first = collection.generation
    with collection.write("test"), collection.transaction() as transaction:
        transaction.put(document("4.txt"), {1: embedding(4)})
        transaction.remove(1)
        transaction.fail(Failure(path="/x", reason="no text", sha256=None, size=1, mtime_ns=2, at="now"))
    assert collection.generation == first + 1
    with sqlite3.connect(collection.path / "collection.sqlite") as raw:
        for table in ("documents", "pages", "vectors", "evidence", "tombstones", "failures"):
            assert raw.execute(f"SELECT max(generation) FROM {table}").fetchone() == (first + 1,), table
        tokens = [row[0] for row in raw.execute("SELECT token FROM generations")]
    raw.close()
    assert len(set(tokens)) == len(tokens) == first + 2


def test_a_transaction_that_raises_leaves_nothing(collection: Collection) -> None:
    generation = collection.generation
    with collection.write("test"), pytest.raises(ZeroDivisionError), collection.transaction() as transaction:
        transaction.put(document("4.txt", "fourth"), {1: embedding(4)})
        transaction.remove(1)
        raise ZeroDivisionError
    assert (collection.generation, collection.count()) == (generation, 3)
    assert collection.fulltext("fourth", 5) == []
    assert collection.verify() == []


def test_writing_needs_the_lock(collection: Collection) -> None:
    with pytest.raises(CollectionError, match="only inside write"), collection.transaction():
        pass
    with pytest.raises(CollectionError, match="only inside write"):
        collection.persist_caches()


def test_touch_changes_the_file_alone(collection: Collection) -> None:
    before = collection.get(1)
    with collection.write("test"), collection.transaction() as transaction:
        transaction.touch(1, size=10, mtime_ns=20, sha256="cd")
        generation = transaction.generation
    assert before is not None
    assert collection.get(1) == dataclasses.replace(before, size=10, mtime_ns=20, sha256="cd", generation=generation)
    assert collection.missing(1) == []


def test_the_same_text_at_two_paths_has_one_embedding_to_take(collection: Collection) -> None:
    found = collection.embedding_of_text(1, document("x", "one text").text_sha256)
    assert found is not None and (same(found, embedding(1)) or same(found, embedding(3)))
    assert collection.embedding_of_text(1, document("x", "unknown").text_sha256) is None
    assert collection.embedding_of_text(2, document("x", "one text").text_sha256) is None


def test_failures(collection: Collection) -> None:
    failure = Failure(path="/docs/bad \udcff.pdf", reason="needs a password", sha256="ab", size=1, mtime_ns=2, at="t")
    again = dataclasses.replace(failure, reason="no text", path="/docs/4.txt")
    with collection.write("test"):
        with collection.transaction() as transaction:
            transaction.fail(failure)
            transaction.fail(dataclasses.replace(again, reason="first"))
            transaction.fail(again)
        assert collection.failures() == [again, failure]
        assert collection.failure(failure.path) == failure
        with collection.transaction() as transaction:
            transaction.put(document("4.txt"), {})  # it can be read now
            transaction.forget_failure(failure.path)
    assert collection.failures() == []
    assert collection.failure(failure.path) is None


def test_documents_stream_in_order_across_batches(tmp_path: Path) -> None:
    with filled(tmp_path, (f"text {i}" for i in range(1203))) as collection:
        assert [found.id for found in collection.documents()] == list(range(1, 1204))
        assert collection.count() == 1203
        # A removal while the documents stream does no harm.
        seen = []
        with collection.write("test"):
            for found in collection.documents():
                seen.append(found.id)
                if found.id == 10:
                    with collection.transaction() as transaction:
                        transaction.remove(900)
        assert seen == [i for i in range(1, 1204) if i != 900]


# Encoders


def test_a_pooling_has_one_active_encoder(collection: Collection) -> None:
    with collection.write("test"), collection.transaction() as transaction:
        assert transaction.add_encoder("lmk", {"base": "tiny"}, DIMENSION).id == 1  # the same: taken as it is
        mean = transaction.add_encoder("mean", {"base": "tiny"}, DIMENSION)
        with pytest.raises(CollectionError, match=r"has a lmk encoder already .*'tiny'.*\"other\""):
            transaction.add_encoder("lmk", {"base": "other"}, DIMENSION)
    assert [(e.pooling, e.active) for e in collection.encoders()] == [("lmk", True), ("mean", True)]
    assert collection.encoder("mean") == mean
    assert collection.encoder("cls") is None
    assert collection.missing(mean.id) == [1, 2, 3]


def test_a_new_encoder_takes_the_place_of_the_old_one(collection: Collection) -> None:
    with collection.write("test"):
        with collection.transaction() as transaction:
            new = transaction.add_encoder("lmk", {"base": "other"}, 4, active=False)
            assert transaction.add_encoder("lmk", {"base": "other"}, 4, active=False) == new  # a reindex goes on
            transaction.put_embedding(1, new.id, embedding(5, dimension=4))
        assert [e.id for e in collection.encoders()] == [1]
        assert [e.id for e in collection.encoders(active_only=False)] == [1, new.id]
        assert collection.missing(new.id) == [2, 3]
        with collection.transaction() as transaction:
            transaction.activate(new.id)
    assert collection.encoders(active_only=False) == [dataclasses.replace(new, active=True)]
    assert collection.embedding(1, 1) is None
    found = collection.embedding(new.id, 1)
    assert found is not None and same(found, embedding(5, dimension=4))
    assert collection.verify() == []


def changed(**fields: Any) -> StoredEmbedding:
    return dataclasses.replace(embedding(1), **fields)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (embedding(1, dimension=8), r"shape \(8,\).*dimension is 16"),
        (changed(vector=np.full(DIMENSION, np.nan, np.float32)), "norm nan"),
        (changed(vector=np.zeros(DIMENSION, np.float32)), "norm 0"),
        (changed(vector=2 * embedding(1).vector), "norm 2"),
        (changed(evidence=np.zeros((2, 5), np.int8)), r"shape \(2, 5\)"),
        (changed(scales=np.ones(3, np.float32)), "scales of shape"),
        (changed(scales=np.array([1, np.inf], np.float32)), "scale"),
        (changed(spans=np.array([[0, 3], [2, 10]], np.int32)), "9 characters"),
        (changed(spans=np.array([[3, 2], [0, 1]], np.int32)), "9 characters"),
        (changed(spans=np.array([[-1, 2], [0, 1]], np.int32)), "9 characters"),
    ],
)
def test_an_embedding_that_does_not_fit_is_refused(
    collection: Collection, wrong: StoredEmbedding, message: str
) -> None:
    with (
        collection.write("test"),
        collection.transaction() as transaction,
        pytest.raises(CollectionError, match=message),
    ):
        transaction.put(document("new.txt"), {1: wrong})


def test_unknown_documents_and_encoders_are_refused(collection: Collection) -> None:
    with collection.write("test"), collection.transaction() as transaction:
        with pytest.raises(CollectionError, match="no encoder 7"):
            transaction.put_embedding(1, 7, embedding(1))
        with pytest.raises(CollectionError, match="no document 70"):
            transaction.put_embedding(70, 1, embedding(1))
    assert collection.get(70) is None
    assert collection.page_texts(70) == []


def test_metadata_that_json_cannot_hold_is_refused(collection: Collection) -> None:
    for value in (float("nan"), object()):
        put = Document(external_id="/x", pages=("x",), metadata={"a": value})
        with (
            collection.write("test"),
            collection.transaction() as transaction,
            pytest.raises(CollectionError, match="metadata of '/x' cannot be stored as JSON"),
        ):
            transaction.put(put, {})


# Opening


def test_a_missing_collection_says_how_to_make_one(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(CollectionError) as caught:
            Collection.open(path)
        assert str(caught.value) == (
            f"There is no collection at {path}: make one with `lmk-rag ingest PATH --collection {path}`"
        )
    assert list(tmp_path.iterdir()) == []


def test_opening_again_does_not_begin_again(collection: Collection) -> None:
    with Collection.open(collection.path, create=True) as again:
        assert again.count() == 3
        assert again.generation == collection.generation
        assert again.created == collection.created


def test_a_newer_schema_is_refused_with_both_numbers(collection: Collection) -> None:
    collection.close()
    with sqlite3.connect(collection.path / "collection.sqlite") as raw:
        raw.execute("PRAGMA user_version = 7")
    raw.close()
    with pytest.raises(SchemaError, match=r"has schema 7 .* up to 2: upgrade lmk-rag"):
        Collection.open(collection.path)


@pytest.mark.parametrize("create", [True, False])
def test_other_files_are_refused_and_left_as_they_are(tmp_path: Path, create: bool) -> None:
    file = tmp_path / "collection.sqlite"
    file.write_bytes(b"This is not a database, however long it is. " * 200)
    with pytest.raises(CollectionError, match="is not an SQLite database"):
        Collection.open(tmp_path, create=create)
    file.unlink()
    with sqlite3.connect(file) as raw:
        raw.execute("CREATE TABLE theirs (a)")
    raw.close()
    before = file.read_bytes()
    with pytest.raises(CollectionError, match="not a collection of lmk-rag"):
        Collection.open(tmp_path, create=create)
    assert file.read_bytes() == before
    with pytest.raises(CollectionError, match="is a file, and a collection is a folder"):
        Collection.open(file, create=create)


def test_an_empty_database_file_is_no_collection(tmp_path: Path) -> None:
    (tmp_path / "collection.sqlite").touch()
    with pytest.raises(CollectionError, match="not a collection"):
        Collection.open(tmp_path)


def test_a_closed_collection_says_so(collection: Collection) -> None:
    collection.close()
    with pytest.raises(CollectionError, match="has been closed"):
        collection.count()


def test_sizes_and_counts(collection: Collection) -> None:
    assert collection.sizes()["text"] == len("one text") * 2 + len("two texts")
    lmk_sizes = collection.sizes()["encoders"]["lmk"]
    assert (lmk_sizes["vectors"], lmk_sizes["evidence"]) == (3 * 4 * DIMENSION, 3 * 2 * DIMENSION)
    assert (lmk_sizes["scales"], lmk_sizes["spans"]) == (3 * 2 * 4, 3 * 2 * 8)
    assert lmk_sizes["ratio"] == round((192 + 96 + 24 + 48) / 25, 4)
    assert lmk_sizes["index"] == 0
    with collection.write("test"):
        collection.persist_caches()
    file = collection.path / "vectors-1.faiss"
    assert collection.sizes()["encoders"]["lmk"]["index"] == file.stat().st_size
    assert collection.sizes()["database"] >= (collection.path / "collection.sqlite").stat().st_size
    stats = collection.stats()
    assert (stats["documents"], stats["pages"], stats["characters"]) == (3, 3, 25)
    assert (stats["kinds"], stats["sources"]) == ({"text": 3}, {"file": 3})
    assert stats["encoders"] == {
        1: {"pooling": "lmk", "active": True, "documents": 3, "tokens": 8 + 9 + 10, "truncated": 3, "evidence": 6}
    }
    assert json.loads(json.dumps(stats))["failures"] == 0


@pytest.mark.parametrize("number", [0, -1, 2**63, 10**30, -(10**30)])
def test_an_id_that_no_document_can_have_is_not_there(collection: Collection, number: int) -> None:
    assert collection.get(number) is None
