import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from indexes.collection import Collection
from indexes.errors import CollectionError, LockedError
from indexes.shared_lock import SharedLock
from tests.indexes.support import document, embedding, filled, lmk, unit

WRITER = """
import sys
from indexes.collection import Collection
from indexes.records import Document
with Collection.open(sys.argv[1]) as collection, collection.write("ingest"), collection.transaction() as transaction:
    transaction.put(Document(external_id="/half", pages=("half done",)), {})
    transaction.remove(2)
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    with filled(tmp_path / "c", [f"text {i}" for i in range(1, 11)]) as made:
        yield made


@contextmanager
def another_writer(path: Path) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def in_thread(function: Callable[[], object]) -> object:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


# The writer's lock


def test_a_second_process_is_told_who_writes(collection: Collection) -> None:
    with another_writer(collection.path) as process:
        with pytest.raises(LockedError) as caught, collection.write("remove"):
            pass
        note = json.loads((collection.path / "writer.json").read_text())
        assert note["pid"] == process.pid
        assert str(caught.value) == (
            f"The collection at {collection.path} is being written by process {process.pid} "
            f"(ingest, since {note['since']}): wait for it to finish or stop it"
        )
        assert collection.count() == 10  # reading goes on
        collection.index(lmk(collection))


def test_a_writer_that_was_killed_leaves_the_lock_free(collection: Collection) -> None:
    with another_writer(collection.path) as process:
        process.kill()
        process.wait()
        assert (collection.path / "writer.json").exists()
        assert collection.count() == 10  # of its transaction nothing is left
        assert collection.verify() == []
        with collection.write("remove"), collection.transaction() as transaction:
            transaction.remove(1)
    assert collection.count() == 9
    assert not (collection.path / "writer.json").exists()


def test_a_second_writer_in_the_same_process_is_refused(collection: Collection) -> None:
    def write() -> None:
        with collection.write("second"):
            pass

    with collection.write("first"):
        attempts: list[Callable[[], object]] = [write, lambda: in_thread(write)]
        for attempt in attempts:
            with pytest.raises(LockedError, match=r"\(first, since 20"):
                attempt()
        assert collection.writing
        assert not in_thread(lambda: collection.writing)
        with Collection.open(collection.path) as other, pytest.raises(LockedError), other.write("third"):
            pass
    write()


def test_the_lock_is_free_after_an_error(collection: Collection) -> None:
    with pytest.raises(ZeroDivisionError), collection.write("first"):
        raise ZeroDivisionError
    with collection.write("second"):
        assert collection.writing
    assert not collection.writing


def test_a_note_that_cannot_be_read_does_not_matter(collection: Collection) -> None:
    note = collection.path / "writer.json"
    for text in ("", "[]", '{"pid": "x"}'):
        note.write_text(text)
        with collection.write("first"):
            note.write_text(text)
            with pytest.raises(LockedError, match="written by another process: wait"), collection.write("second"):
                pass


def test_transactions_belong_to_the_thread_that_holds_the_lock(collection: Collection) -> None:
    def write() -> None:
        with collection.transaction():
            pass

    with collection.write("first"), pytest.raises(CollectionError, match="only inside write"):
        in_thread(write)


# Reading beside a writer


def test_a_reader_sees_a_batch_whole_or_not_at_all(collection: Collection) -> None:
    def look() -> tuple[int, int, int]:
        return (
            collection.count(),
            len(collection.fulltext("fresh", 100)),
            len(collection.index(lmk(collection))),
        )

    with collection.write("test"):
        with collection.transaction() as transaction:
            for number in range(11, 21):
                transaction.put(document(f"{number}.txt", "fresh"), {1: embedding(number)})
                assert in_thread(look) == (10, 0, 10)
        assert in_thread(look) == (20, 10, 20)


def test_a_snapshot_holds_one_state(collection: Collection) -> None:
    def change() -> None:
        with collection.write("test"), collection.transaction() as transaction:
            transaction.remove(1)
            transaction.put(document("11.txt", "fresh"), {1: embedding(11)})

    with collection.snapshot():
        generation = collection.generation
        in_thread(change)
        in_thread(lambda: collection.index(lmk(collection)))  # brings the shared index ahead of this snapshot
        with collection.snapshot():
            assert collection.generation == generation
        assert (collection.generation, collection.count()) == (generation, 10)
        assert collection.text(1) == "text 1"
        assert collection.fulltext("fresh", 5) == []
        assert collection.index(lmk(collection)).generation == generation + 1
    assert (collection.generation, collection.get(1)) == (generation + 1, None)


def test_an_index_first_used_in_an_old_snapshot_catches_up_later(collection: Collection) -> None:
    def change() -> None:
        with collection.write("test"):
            with collection.transaction() as transaction:
                transaction.remove(1)
            collection.persist_caches()

    with collection.snapshot(), Collection.open(collection.path) as other:
        with other.snapshot():
            in_thread(change)
            assert len(other.index(lmk(other))) == 10  # the file is ahead of this snapshot
        assert len(other.index(lmk(other))) == 9


def test_a_transaction_inside_a_snapshot_is_refused(collection: Collection) -> None:
    refused = pytest.raises(CollectionError, match="inside a snapshot")
    with collection.write("test"), collection.snapshot(), refused, collection.transaction():
        pass
    with collection.write("test"), collection.transaction() as transaction, collection.snapshot():
        transaction.remove(1)
        assert collection.count() == 9
    assert collection.count() == 9


def test_many_readers_while_a_writer_writes(collection: Collection) -> None:
    done = threading.Event()

    def read(seed: int) -> int:
        rounds = 0
        while not done.is_set() or rounds == 0:
            rounds += 1
            with collection.snapshot():
                hits = collection.index(lmk(collection)).search(unit(seed), 5)
                assert len(hits) == 5
                assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))
                ids = [found.id for found in collection.documents()]
                assert len(ids) == len(set(ids)) == collection.count()
                assert collection.fulltext("text", 3)
        return rounds

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(read, seed) for seed in range(6)]
        try:
            with collection.write("test"):
                for number in range(11, 41):
                    with collection.transaction() as transaction:
                        transaction.put(document(f"{number}.txt", f"text {number}"), {1: embedding(number)})
                        transaction.remove(number - 10)
                collection.persist_caches()
        finally:
            done.set()
        assert all(reader.result() for reader in readers)
    assert [found.id for found in collection.documents()] == list(range(31, 41))
    assert collection.verify() == []


def test_threads_that_end_close_their_connections(collection: Collection) -> None:
    for _ in range(5):
        in_thread(collection.count)
    assert len(collection._database._handles) == 1


# The lock of the index in memory


def test_readers_share_and_a_writer_is_alone() -> None:
    lock = SharedLock()
    inside = threading.Barrier(2, timeout=60)
    order: list[str] = []
    entered, waiting = threading.Event(), threading.Event()

    def read_together() -> None:
        with lock.reading():
            inside.wait()  # only passes where both are inside
            entered.set()
            waiting.wait(60)
            order.append("read")

    def write() -> None:
        waiting.set()
        with lock.writing():
            order.append("write")

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read_together) for _ in range(2)]
        assert entered.wait(60)
        writer = pool.submit(write)
        for future in (*readers, writer):
            future.result(60)
    assert order == ["read", "read", "write"]
