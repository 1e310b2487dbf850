"""Indexing: one embedding a text, gaps filled, another model taking over only when it is complete."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from indexes.collection import Collection
from indexes.records import Document
from lmk_rag.encoding.encoder import Encoder
from lmk_rag.indexing import Indexer, batches

Make = Callable[..., Collection]
pytestmark = pytest.mark.filterwarnings("ignore:default was trained for mean pooling")


class Counting:
    """An encoder that remembers what it was given."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.seen: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoder, name)

    def encode_documents(self, texts: list[str], progress: Any = None) -> Any:
        self.seen += texts
        return self.encoder.encode_documents(texts, progress)


def test_the_same_text_is_embedded_once(make_collection: Make) -> None:
    collection = make_collection(["old text"])
    encoder: Any = Counting(Encoder.load(pooling="mean"))
    with collection.write("test"):
        done = Indexer(collection, [encoder]).add(
            [Document(external_id=f"/new{n}", pages=(text,)) for n, text in enumerate(["old text", "new", "new"])]
        )
    assert encoder.seen == ["new"]
    assert [state for _, state in done] == ["indexed"] * 3
    first, second = (collection.embedding(1, document_id) for document_id, _ in done[1:])
    assert first is not None
    assert second is not None
    assert np.array_equal(first.vector, second.vector)


def test_what_is_stored_is_what_the_encoder_gives(make_collection: Make) -> None:
    text = "words " * 200
    collection = make_collection([text], ("lmk",))
    expected = Encoder.load(pooling="lmk").encode_documents([text])[0]
    stored = collection.embedding(1, 1)
    assert stored is not None
    assert stored.vector == pytest.approx(expected.vector, abs=1e-6)
    assert (stored.tokens, stored.truncated) == (1000, 0)
    assert stored.spans[-1, 1] == 1199  # where the last word ends


def test_missing_poolings_are_filled_from_the_stored_text(make_collection: Make) -> None:
    collection = make_collection(["one", "two"])
    encoders = [Encoder.load(pooling="mean"), Encoder.load(pooling="lmk")]
    with collection.write("test"):
        assert Indexer(collection, encoders).add_missing() == 2
        assert Indexer(collection, encoders).add_missing() == 0
    record = collection.encoder("lmk")
    assert record is not None
    expected = encoders[1].encode_documents(["one"])[0].vector
    stored = collection.embedding(record.id, 1)
    assert stored is not None
    assert stored.vector == pytest.approx(expected, abs=1e-6)


def test_another_encoder_takes_over_when_all_is_embedded(make_collection: Make) -> None:
    collection = make_collection(["one", "two"])
    before = collection.encoder("mean")
    with collection.write("test"):
        assert Indexer(collection, []).replace(Encoder.load(pooling="mean", granularity=8)) == 2
    after = collection.encoder("mean")
    assert before is not None
    assert after is not None
    assert (before.fingerprint["granularity"], after.fingerprint["granularity"]) == (32, 8)
    assert [record.id for record in collection.encoders(active_only=False)] == [after.id]
    assert collection.missing(after.id) == []


def test_an_interrupted_change_of_encoder_goes_on(make_collection: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmk_rag.indexing.batches", lambda items, size, _: batches(items, size, 1))
    collection = make_collection(["one", "two", "three"])
    stop = threading.Event()
    encoder = Encoder.load(pooling="mean", granularity=8)
    with collection.write("test"):
        made = Indexer(collection, [], progress=lambda _: stop.set(), stop=stop).replace(encoder)
        assert made == 1
        active = collection.encoder("mean")
        assert active is not None
        assert active.fingerprint["granularity"] == 32
        assert Indexer(collection, []).replace(encoder) == 2
    active = collection.encoder("mean")
    assert active is not None
    assert active.fingerprint["granularity"] == 8


def test_what_an_abandoned_change_of_encoder_left_is_dropped(make_collection: Make) -> None:
    collection = make_collection(["one"])
    stopped = threading.Event()
    stopped.set()
    with collection.write("test"):
        Indexer(collection, [], stop=stopped).replace(Encoder.load(pooling="mean", granularity=4))
        assert len(collection.encoders(active_only=False)) == 2
        Indexer(collection, []).replace(Encoder.load(pooling="mean"))
    assert [record.fingerprint["granularity"] for record in collection.encoders(active_only=False)] == [32]


def test_an_unchanged_encoder_has_nothing_to_replace(make_collection: Make) -> None:
    collection = make_collection(["one"])
    with collection.write("test"):
        assert Indexer(collection, []).replace(Encoder.load(pooling="mean")) == 0


def test_batches_by_hand() -> None:
    assert list(batches([3, 4, 9, 1, 1, 1], lambda size: size, 5)) == [[3], [4], [9], [1, 1, 1]]
    assert list(batches([], lambda size: size, 5)) == []
