"""Small documents and embeddings for the tests of the collection."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexes.collection import Collection
from indexes.records import Document, EncoderRecord, StoredEmbedding

DIMENSION = 16


def unit(seed: int, dimension: int = DIMENSION) -> NDArray[np.float32]:
    vector = np.random.default_rng(seed).normal(size=dimension)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def embedding(
    seed: int, n: int = 2, end: int = 3, dimension: int = DIMENSION, vector: NDArray[np.float32] | None = None
) -> StoredEmbedding:
    random = np.random.default_rng(seed)
    return StoredEmbedding(
        vector=unit(seed, dimension) if vector is None else vector,
        evidence=random.integers(-127, 128, (n, dimension)).astype(np.int8),
        scales=random.uniform(0.001, 0.01, n).astype(np.float32),
        spans=np.array([[i, end] for i in range(n)], np.int32).reshape(n, 2),
        tokens=7 + seed,
        truncated=seed % 3,
    )


def document(name: str, text: str = "some text", title: str = "", kind: str = "text") -> Document:
    return Document(external_id=f"/docs/{name}", pages=tuple(text.split("\f")), title=title, kind=kind)


def filled(folder: Path, texts: Iterable[str]) -> Collection:
    """Make a collection with one lmk encoder (number 1) and a document for each text, numbered from 1."""
    collection = Collection.open(folder, create=True)
    with collection.write("test"), collection.transaction() as transaction:
        encoder = transaction.add_encoder("lmk", {"base": "tiny"}, DIMENSION)
        for number, text in enumerate(texts, start=1):
            transaction.put(document(f"{number}.txt", text), {encoder.id: embedding(number)})
    return collection


def lmk(collection: Collection) -> EncoderRecord:
    encoder = collection.encoder("lmk")
    assert encoder is not None
    return encoder
