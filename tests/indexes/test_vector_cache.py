import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from indexes import vector_cache
from indexes.collection import Collection
from indexes.errors import CollectionError, FingerprintError
from indexes.faiss_index import FaissIndex, auto_factory
from tests.indexes.support import DIMENSION, document, embedding, filled, lmk, unit

FILE = "vectors-1.faiss"


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Small matrices in many threads are slow on a machine that does other things too."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(before)


def truth(collection: Collection) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Read ids and vectors by the plainest way there is."""
    with sqlite3.connect(collection.path / "collection.sqlite") as raw:
        found = raw.execute("SELECT document_id, vector FROM vectors ORDER BY document_id").fetchall()
    raw.close()
    vectors = np.array([np.frombuffer(blob, np.float32) for _, blob in found], np.float32)
    return np.array([i for i, _ in found], np.int64), vectors


def brute(
    ids: NDArray[np.int64], vectors: NDArray[np.float32], query: NDArray[np.float32], k: int, allowed: Any = None
) -> tuple[list[int], list[float]]:
    scores = vectors.astype(np.float64) @ query.astype(np.float64)
    if allowed is not None:
        kept = np.isin(ids, allowed)
        ids, scores = ids[kept], scores[kept]
    order = np.argsort(-scores)[:k]
    return ids[order].tolist(), scores[order].tolist()


def agrees(collection: Collection, seed: int = 999, k: int = 5) -> None:
    """Assert that the index gives what a plain computation over the truth gives."""
    encoder = lmk(collection)
    query = unit(seed, encoder.dimension)
    hits = collection.index(encoder).search(query, k)
    held, vectors = truth(collection)
    ids, scores = brute(held, vectors, query, k) if len(held) else ([], [])
    assert [score for _, score in hits] == pytest.approx(scores, abs=1e-6)
    assert [number for number, _ in hits] == ids


def best(hits: list[tuple[int, float]]) -> tuple[int, Any]:
    return hits[0]


def save(collection: Collection) -> Path:
    with collection.write("test"):
        collection.persist_caches()
    return collection.path / FILE


def add(collection: Collection, *numbers: int) -> None:
    with collection.write("test"), collection.transaction() as transaction:
        for number in numbers:
            transaction.put(document(f"{number}.txt", f"text {number}"), {1: embedding(number + 1000)})


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    with filled(tmp_path / "c", [f"text {i}" for i in range(1, 31)]) as made:
        yield made


@pytest.fixture
def rebuilds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note every rebuild."""
    noted: list[str] = []
    original = vector_cache.VectorCache._rebuild

    def rebuild(self: vector_cache.VectorCache, factory: str) -> None:
        noted.append(factory)
        original(self, factory)

    monkeypatch.setattr(vector_cache.VectorCache, "_rebuild", rebuild)
    return noted


def reopened(collection: Collection) -> Collection:
    collection.close()
    return Collection.open(collection.path)


def test_a_saved_index_is_taken_as_it_is(collection: Collection, rebuilds: list[str]) -> None:
    save(collection)
    rebuilds.clear()
    with reopened(collection) as again:
        agrees(again)
        assert len(again.index(lmk(again))) == 30
        before = (again.path / FILE).stat().st_mtime_ns
        save(again)  # nothing changed: nothing is written
        assert (again.path / FILE).stat().st_mtime_ns == before
    assert rebuilds == []
    assert not list(collection.path.glob("*.tmp"))


def test_a_file_that_is_behind_takes_the_difference(collection: Collection, rebuilds: list[str]) -> None:
    save(collection)
    add(collection, 5, 31, 32)
    with collection.write("test"), collection.transaction() as transaction:
        transaction.remove(7)
        transaction.put(document("8.txt", "no vector now"), {})
    rebuilds.clear()
    before = (collection.path / FILE).read_bytes()
    with reopened(collection) as again:
        agrees(again)
        agrees(again, seed=1005)  # the changed document's own vector
        assert len(again.index(lmk(again))) == 30
        assert again.verify() == []
    assert rebuilds == []
    assert (collection.path / FILE).read_bytes() == before  # a reader writes nothing


def test_a_document_removed_and_its_vector_put_again(collection: Collection, rebuilds: list[str]) -> None:
    save(collection)
    with collection.write("test"):
        with collection.transaction() as transaction:
            transaction.put(document("8.txt", "other"), {})
        agrees(collection)
        with collection.transaction() as transaction:
            transaction.put_embedding(8, 1, embedding(77))
    rebuilds.clear()
    with reopened(collection) as again:
        agrees(again, seed=77)
    assert rebuilds == []


def test_far_behind_is_rebuilt(collection: Collection, rebuilds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_cache, "_FEW_CHANGES", 0)
    save(collection)
    add(collection, *range(1, 21))
    rebuilds.clear()
    with reopened(collection) as again:
        agrees(again)
    assert rebuilds == ["Flat"]


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-10])


def flip(file: Path, position: int) -> None:
    data = bytearray(file.read_bytes())
    data[position] ^= 1
    file.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "damage",
    [
        truncate,
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(b"lmk-rag index 1\n"),
        lambda file: file.write_bytes(b"lmk-rag index 1\n[]\nrest"),
        lambda file: flip(file, 0),
        lambda file: flip(file, 40),  # in the header
        lambda file: flip(file, -1),
        lambda file: flip(file, file.stat().st_size // 2),
        lambda file: file.unlink(),
    ],
)
def test_a_damaged_file_is_rebuilt(collection: Collection, rebuilds: list[str], damage: Any) -> None:
    file = save(collection)
    damage(file)
    rebuilds.clear()
    with reopened(collection) as again:
        agrees(again)
        save(again)
    assert rebuilds == ["Flat"]
    with reopened(collection) as again:
        agrees(again)
    assert rebuilds == ["Flat"]


def test_every_flipped_bit_of_the_header_is_noticed(collection: Collection, rebuilds: list[str]) -> None:
    file = save(collection)
    good = file.read_bytes()
    header = good.index(b"\n", good.index(b"\n") + 1)
    for position in range(0, header, 7):
        file.write_bytes(good)
        flip(file, position)
        rebuilds.clear()
        with Collection.open(collection.path) as again:
            agrees(again)
        assert rebuilds == ["Flat"], position


def test_a_file_of_another_history_is_rebuilt(collection: Collection, rebuilds: list[str]) -> None:
    """A backup is restored, and goes on to the same generation with other documents."""
    add(collection, 31)
    collection.close()
    backup = {file.name: file.read_bytes() for file in collection.path.iterdir()}
    with Collection.open(collection.path) as first:
        add(first, 32)
        save(first)
    index = (collection.path / FILE).read_bytes()
    for file in collection.path.iterdir():
        file.unlink()
    for name, data in backup.items():
        (collection.path / name).write_bytes(data)
    (collection.path / FILE).write_bytes(index)
    rebuilds.clear()
    with Collection.open(collection.path) as second:
        agrees(second)  # the file is ahead of the truth
        assert rebuilds == ["Flat"]
        problems = second.verify()
        assert [p.repairable for p in problems] == [True] and "another history" in problems[0].what
    with Collection.open(collection.path) as third:
        add(third, 33)  # the same number as the file's, with another token
        assert "another history" in third.verify()[0].what
        agrees(third, seed=1033)
        assert rebuilds == ["Flat"] * 2


def test_a_history_replaced_under_an_open_collection_is_noticed(collection: Collection, rebuilds: list[str]) -> None:
    agrees(collection)
    rebuilds.clear()
    with sqlite3.connect(collection.path / "collection.sqlite") as raw:
        raw.execute("UPDATE generations SET token = 'other' WHERE number = (SELECT max(number) FROM generations)")
        raw.execute("DELETE FROM vectors WHERE document_id > 10")
    raw.close()
    agrees(collection)
    assert rebuilds == ["Flat"]


def test_a_file_of_another_encoder_is_rebuilt(collection: Collection, rebuilds: list[str]) -> None:
    save(collection)
    with sqlite3.connect(collection.path / "collection.sqlite") as raw:
        raw.execute("UPDATE encoders SET fingerprint = ?", (json.dumps({"base": "another"}),))
    raw.close()
    rebuilds.clear()
    with reopened(collection) as again:
        agrees(again)
    assert rebuilds == ["Flat"]


def test_what_a_killed_writer_leaves_does_no_harm(collection: Collection) -> None:
    save(collection)
    add(collection, 31)
    (collection.path / (FILE + ".tmp")).write_bytes(b"half of a fi")
    with reopened(collection) as again:
        agrees(again)
        save(again)
        assert again.verify() == []
    assert not list(collection.path.glob("*.tmp"))


def test_a_crash_before_the_rename_leaves_the_old_file(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    file = save(collection)
    before = file.read_bytes()
    add(collection, 31)

    def crash(_: int) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="no space"):
        save(collection)
    assert file.read_bytes() == before


def test_a_rollback_leaves_no_trace_in_the_index(collection: Collection) -> None:
    agrees(collection)
    with collection.write("test"):
        with pytest.raises(ZeroDivisionError), collection.transaction() as transaction:
            transaction.remove(1)
            with pytest.raises(CollectionError, match="inside a transaction"):
                collection.index(lmk(collection))
            raise ZeroDivisionError
        agrees(collection)
        with collection.transaction() as transaction:
            transaction.remove(2)
    agrees(collection)


def test_an_empty_collection(tmp_path: Path) -> None:
    with filled(tmp_path, []) as collection:
        agrees(collection)
        save(collection)
        with reopened(collection) as again:
            agrees(again)
            add(again, 1)
            agrees(again)


def test_the_index_of_a_dropped_encoder_goes(collection: Collection) -> None:
    file = save(collection)
    with collection.write("test"):
        with collection.transaction() as transaction:
            new = transaction.add_encoder("lmk", {"base": "new"}, 4, active=False)
            transaction.put_embedding(3, new.id, embedding(3, dimension=4))
            transaction.activate(new.id)
        collection.persist_caches()
    assert not file.exists()
    assert best(collection.index(lmk(collection)).search(unit(3, 4), 9)) == (3, pytest.approx(1))


def test_another_dimension_is_an_error_that_names_both(collection: Collection) -> None:
    with pytest.raises(FingerprintError, match=r"\(8,\).*dimension 16"):
        collection.index(lmk(collection)).search(unit(1, 8), 3)
    with pytest.raises(FingerprintError, match=r"\(8,\).*dimension 16"):
        FaissIndex(DIMENSION).search(unit(1, 8), 3)


def test_without_faiss_the_error_names_the_command(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(CollectionError, match=r'pip install "lmk-rag\[cpu\]"'):
        collection.index(lmk(collection))
    assert collection.fulltext("text", 1)


def test_scores_are_clipped_and_equal_ones_come_by_id(tmp_path: Path) -> None:
    with filled(tmp_path, ["xyz"] * 6) as collection:
        with collection.write("test"), collection.transaction() as transaction:
            for number in (5, 2, 4):
                vector = (unit(3) * np.float32(1.001)).astype(np.float32)
                transaction.put_embedding(number, 1, embedding(1, vector=vector))
        hits = collection.index(lmk(collection)).search(unit(3), 4)
    assert hits == [(2, 1.0), (4, 1.0), (5, 1.0), (3, pytest.approx(1))]


@pytest.mark.parametrize("factory", ["Flat", "HNSW4", "SQ8", "PQ4x4", "IVF2,Flat"])
def test_the_index_alone_gives_only_what_is_allowed(factory: str) -> None:
    index = FaissIndex(DIMENSION, factory)
    ids = np.arange(100, 1000, 3)
    vectors = np.array([unit(int(i)) for i in ids])
    if index.training_size:
        index.train(vectors)
    index.add(ids, vectors)
    index.remove(np.array([100, 106, 5]))
    assert len(index) == 298
    found, scores = index.search(unit(100), 1000, np.array([100, 103, 109, 4]))
    assert sorted(found) == [103, 109]
    assert scores[0] >= scores[1]
    assert len(index.search(unit(100), 1000)[0]) == 298
    again = FaissIndex.from_bytes(DIMENSION, factory, index.to_bytes())
    assert len(again) == 298
    assert again.search(unit(7), 5)[0].tolist() == index.search(unit(7), 5)[0].tolist()
    for damaged in (b"", index.to_bytes()[:50], index.to_bytes()[8:]):
        with pytest.raises(CollectionError):
            FaissIndex.from_bytes(DIMENSION, factory, damaged)
    with pytest.raises(CollectionError):
        FaissIndex.from_bytes(8, factory, index.to_bytes())


def test_k_and_allowed(collection: Collection) -> None:
    index = collection.index(lmk(collection))
    assert index.search(unit(1), 0) == []
    assert len(index.search(unit(1), 1000)) == 30
    assert index.search(unit(1), 5, np.empty(0, np.int64)) == []
    assert index.search(unit(1), 5, np.array([777])) == []
    assert [number for number, _ in index.search(unit(9), 5, np.array([777, 9, 9, -4]))] == [9]


FACTORIES = ["auto", "Flat", "HNSW4", "IVF2,Flat", "SQ8", "PQ4x4", "IVF2,RaBitQ", "RR16,IVF2,SQ8"]


@pytest.mark.parametrize("factory", FACTORIES)
def test_every_kind_keeps_up_with_changes(tmp_path: Path, factory: str) -> None:
    """More documents than any of the kinds wants to learn from, then changes, a save and a reload."""
    with filled(tmp_path, []) as collection:
        vectors = bulk(collection, 10_100)
        with collection.write("test"):
            with collection.transaction() as transaction:
                transaction.set_index(factory)
            collection.persist_caches()
            assert collection.index(lmk(collection)).factory == ("Flat" if factory == "auto" else factory)
            with collection.transaction() as transaction:
                for number in (1, 2, 3, 9000):
                    transaction.put_embedding(number, 1, embedding(number + 500, n=0))
                for number in (4, 5, 6):
                    transaction.remove_embedding(number, 1)
            for opened in (collection, Collection.open(tmp_path)):
                index = opened.index(lmk(opened))
                assert len(index) == 10_097
                for number in (1, 2, 3, 9000):
                    assert best(index.search(unit(number + 500), 1)) == (number, pytest.approx(1))
                    assert index.search(vectors[number - 1], 1)[0][0] != number  # the old vector is gone
                for number in (4, 5, 6):
                    assert number not in [found for found, _ in index.search(vectors[number - 1], 20)]
                assert len(index.search(unit(0), 500)) == 500
            opened.close()
            collection.persist_caches()
            assert collection.verify() == []
        with Collection.open(tmp_path) as again:
            assert best(again.index(lmk(again)).search(unit(502), 1)) == (2, pytest.approx(1))


def bulk(collection: Collection, count: int) -> NDArray[np.float32]:
    """Write documents with vectors straight into the tables: quick, and all that an index reads."""
    vectors = np.random.default_rng(5).normal(size=(count, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    kinds = ["pdf" if number % 5000 == 17 else "text" for number in range(1, count + 1)]
    with sqlite3.connect(collection.path / "collection.sqlite") as raw:
        raw.executemany(
            "INSERT INTO documents VALUES (?, 'file', 'f' || ?, '', ?, 0, 0, 0, '{}', NULL, "
            "'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', 0, 0, NULL, '[]', '', '', 1)",
            ((number, number, kind) for number, kind in enumerate(kinds, start=1)),
        )
        raw.execute("INSERT INTO fulltext (rowid, title, body, parts) SELECT id, '', '', '' FROM documents")
        raw.executemany(
            "INSERT INTO vectors VALUES (1, ?, 1, 1, 0, ?)",
            ((number, vector.tobytes()) for number, vector in enumerate(vectors, start=1)),
        )
        raw.execute("INSERT INTO evidence SELECT 1, id, 1, x'', x'', x'' FROM documents")
    raw.close()
    return vectors


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collection]:
    with filled(tmp_path_factory.mktemp("large"), []) as collection:
        bulk(collection, 100_000)
        yield collection


@pytest.mark.parametrize("factory", ["Flat", "IVF64,Flat", "HNSW4"])
def test_twenty_allowed_of_a_hundred_thousand(large: Collection, factory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from indexes.filters import Filter

    with large.write("test"), large.transaction() as transaction:
        transaction.set_index(factory)
    index = large.index(lmk(large))
    assert index.factory == factory
    allowed = large.allowed(Filter.parse("type=pdf"))
    assert len(allowed) == 20
    ids, vectors = truth(large)
    for small, wanted in ((5000, (20, 50, 7)), (0, (19, 15))):  # without the shortcut for few allowed too
        monkeypatch.setattr(vector_cache, "_SMALL", small)
        for seed in range(3):
            for k in wanted:
                hits = index.search(unit(seed), k, allowed)
                expected, scores = brute(ids, vectors, unit(seed), k, allowed)
                assert [number for number, _ in hits] == expected
                assert [score for _, score in hits] == pytest.approx(scores, abs=1e-6)


def test_half_allowed_gives_k_hits_near_the_best(large: Collection) -> None:
    """The last index of the test before, an approximate one."""
    allowed = np.arange(1, 100_001, 2)
    ids, vectors = truth(large)
    for seed in range(5):
        hits = [number for number, _ in large.index(lmk(large)).search(unit(seed), 10, allowed)]
        expected, _ = brute(ids, vectors, unit(seed), 10, allowed)
        assert len(hits) == 10 and all(number % 2 for number in hits)
        assert len(set(hits) & set(expected)) >= 7


def test_the_kind_by_size() -> None:
    assert auto_factory(0) == auto_factory(100_000) == "Flat"
    assert auto_factory(100_001) == "IVF1024,Flat"
    assert auto_factory(1_000_000) == "IVF4096,Flat"


def test_a_reader_builds_flat_and_the_writer_what_the_size_calls_for(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_cache, "auto_factory", lambda count: "HNSW8" if count > 25 else "Flat")
    assert collection.index(lmk(collection)).factory == "Flat"
    save(collection)
    with reopened(collection) as again:
        assert again.index(lmk(again)).factory == "HNSW8"
        agrees(again)


def test_too_little_to_learn_from_stays_flat(collection: Collection) -> None:
    with collection.write("test"), collection.transaction() as transaction:
        transaction.set_index("IVF4,Flat")
    assert collection.index(lmk(collection)).factory == "Flat"
    agrees(collection)


def test_an_unknown_kind_is_refused(collection: Collection) -> None:
    with collection.write("test"), collection.transaction() as transaction:
        for factory in ("Flut", "", "IVF4,PQ5", "LSH"):
            with pytest.raises(CollectionError, match="FAISS cannot keep vectors of dimension 16") as caught:
                transaction.set_index(factory)
            assert "\n" not in str(caught.value)
    assert collection.index_factory == "auto"


STEP = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 12)),
    st.tuples(st.just("bare"), st.integers(1, 12)),
    st.tuples(st.just("remove"), st.integers(1, 12)),
    st.tuples(st.sampled_from(["save", "reopen", "rollback", "look"]), st.just(0)),
)


@pytest.mark.parametrize("factory", ["auto", "HNSW8"])
@given(steps=st.lists(STEP, max_size=25))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_sequence_of_changes_ends_where_a_rebuild_would(
    tmp_path_factory: pytest.TempPathFactory, factory: str, steps: list[tuple[str, int]]
) -> None:
    collection = filled(tmp_path_factory.mktemp("steps"), [])
    with collection.write("test"), collection.transaction() as transaction:
        transaction.set_index(factory)
    for seed, (step, number) in enumerate(steps):
        if step == "reopen":
            collection = reopened(collection)
        elif step == "look":
            agrees(collection, k=12)
        elif step == "save":
            save(collection)
        else:
            name = f"{number}.txt"
            with collection.write("test"):
                try:
                    with collection.transaction() as transaction:
                        found = collection.find(f"/docs/{name}")
                        if step in ("put", "rollback"):
                            transaction.put(document(name), {1: embedding(seed)})
                        elif step == "bare":
                            transaction.put(document(name), {})
                        elif found is not None:
                            transaction.remove(found.id)
                        if step == "rollback":
                            raise ZeroDivisionError
                except ZeroDivisionError:
                    pass
    agrees(collection, k=12)
    assert collection.verify() == []
    collection.close()
