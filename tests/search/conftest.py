"""Collections made of a few texts by a tiny encoder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from indexes.collection import Collection
from indexes.records import Document
from lmk_rag.encoding.encoder import Encoder
from lmk_rag.indexing import Indexer

Make = Callable[..., Collection]


@pytest.fixture
def make_collection(tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Give a function that makes a collection of texts, named 0.txt, 1.txt and so on, by the tiny encoder."""
    monkeypatch.setenv("LMK_RAG_BASE", str(tiny_bert))
    opened: list[Collection] = []

    def make(texts: list[str], poolings: tuple[str, ...] = ("mean",), kind: str = "text") -> Collection:
        collection = Collection.open(tmp_path / f"collection-{len(opened)}", create=True)
        opened.append(collection)
        encoders = [Encoder.load(pooling=pooling, dtype="auto") for pooling in poolings]
        with collection.write("test"):
            Indexer(collection, encoders).add(
                [
                    Document(external_id=f"/{number}.txt", pages=(text,), title=f"Text {number}", kind=kind)
                    for number, text in enumerate(texts)
                ]
            )
        return collection

    yield make
    for collection in opened:
        collection.close()
