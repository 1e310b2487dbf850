"""Whose vectors a store holds: those of this program's encoders, or those of another LangChain embedding."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings

from indexes.collection import Collection
from indexes.errors import FingerprintError
from indexes.records import Document, EncoderRecord, StoredEmbedding
from indexes.transaction import Transaction
from lmk_rag.indexing import Indexer, Settings, check_fingerprint, load_encoder, own_records
from lmk_rag.langchain.embeddings import CollectionEmbeddings, LMKEmbeddings

if TYPE_CHECKING:
    from lmk_rag.encoding.encoder import Encoder

FloatArray = npt.NDArray[np.float32]
Writing = Callable[[int], AbstractContextManager[object]]
"""Holds the writer's lock of the collection, for a number of documents."""

FOREIGN = "langchain"
"""What stands for the pooling where another embedding made the vectors."""


def vectors_of(collection: Collection, embedding: Embeddings | None) -> "Vectors":
    """Choose by the embedding that the user gave; None stands for the collection's own."""
    if embedding is None:
        return OwnVectors(collection, CollectionEmbeddings(collection))
    if isinstance(embedding, LMKEmbeddings):
        return OwnVectors(collection, embedding)
    return ForeignVectors(collection, embedding)


def unit(vectors: Sequence[Sequence[float]] | npt.NDArray[Any]) -> FloatArray:
    """Bring vectors to length 1, so that inner products are cosines.

    Args:
        vectors: n rows of one length d.

    Returns:
        float32 (n, d).

    Raises:
        ValueError: a vector has no direction: it is zero, or holds a NaN or an infinity.
    """
    rows = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    bad = np.flatnonzero(~(np.isfinite(lengths[:, 0]) & (lengths[:, 0] > 0)))
    if len(bad):
        raise ValueError(
            f"Vector {bad[0]} of {len(rows)} has length {lengths[bad[0], 0]:g}, so that it has no cosine with any "
            "other: look at what the embedding makes of its text."
        )
    made: FloatArray = (rows / lengths).astype(np.float32)
    return made


class Vectors(ABC):
    """Makes the vectors of documents and queries, and sees to it that a collection holds those of one maker."""

    def __init__(self, collection: Collection, embedding: Embeddings) -> None:
        """Take an open collection and what embeds."""
        self.collection = collection
        self.embedding = embedding

    @abstractmethod
    def record(self) -> EncoderRecord | None:
        """Return the collection's record of these vectors; None as long as it holds none at all.

        Raises:
            FingerprintError: its vectors are another maker's.
        """

    @abstractmethod
    def write(self, documents: Sequence[Document], writing: Writing) -> None:
        """Embed documents and store them: all of them, or none."""

    def query(self, text: str) -> FloatArray:
        """Embed a query: float32 (d,), length 1."""
        vector: FloatArray = unit([self.embedding.embed_query(text)])[0]
        return vector


class OwnVectors(Vectors):
    """Vectors of this program's encoders, with the evidence that shows passages."""

    embedding: LMKEmbeddings

    def __init__(self, collection: Collection, embedding: LMKEmbeddings) -> None:
        """Take an open collection and its embedding."""
        super().__init__(collection, embedding)
        self._others: dict[int, Encoder] = {}

    def record(self) -> EncoderRecord | None:
        """Return the record of the embedding's pooling, checked against it."""
        records = self.collection.encoders()
        if not records:
            return None
        own = own_records(self.collection)
        if not own:
            raise FingerprintError(
                f"The vectors of {self.collection.path} were made by {_described(records[0].fingerprint)}: open it "
                "with that embedding, or choose another folder."
            )
        encoder = self.embedding.encoder
        for record in own:
            if record.pooling == encoder.pooling:
                check_fingerprint(self.collection, record, encoder.fingerprint())
                return record
        raise FingerprintError(
            f"{self.collection.path} has {', '.join(record.pooling for record in own)} vectors, and this embedding "
            f"makes {encoder.pooling} vectors: leave `embedding` out, or choose another folder."
        )

    def write(self, documents: Sequence[Document], writing: Writing) -> None:
        """Embed documents by every encoder of the collection, as an ingest does, and store them."""
        with writing(len(documents)):
            record = self.record()
            Indexer(self.collection, [self.embedding.encoder, *self._beside(record)]).add(documents)

    def _beside(self, record: EncoderRecord | None) -> "list[Encoder]":
        """Load the encoders of the other poolings that the collection has, which would otherwise lack vectors."""
        others = [each for each in own_records(self.collection) if record is not None and each.id != record.id]
        for each in others:
            if each.id not in self._others:
                settings = Settings(device=self.embedding.device)
                self._others[each.id] = load_encoder(self.collection, each.pooling, settings)
        return [self._others[each.id] for each in others]


class ForeignVectors(Vectors):
    """Vectors of another LangChain embedding, told by its class, its model's name and their dimension.

    Such a collection is searched densely through this embedding alone; the command line offers BM25.
    """

    def record(self) -> EncoderRecord | None:
        """Return the record of the embedding, checked as far as it can be without calling it."""
        records = self.collection.encoders()  # read once: another thread may write the first at any moment
        record = next((each for each in records if each.pooling == FOREIGN), None)
        if record is None and records:
            raise FingerprintError(
                f"The {records[0].pooling} vectors of {self.collection.path} were made by this program's own encoder, "
                f"and not by {_described(self._identity())}: leave `embedding` out, or choose another folder."
            )
        if record is not None and self._identity().items() - record.fingerprint.items():
            raise FingerprintError(
                f"The vectors of {self.collection.path} were made by {_described(record.fingerprint)}, and not by "
                f"{_described(self._identity())}: open it with that embedding, or choose another folder."
            )
        return record

    def write(self, documents: Sequence[Document], writing: Writing) -> None:
        """Embed documents, bring their vectors to length 1, and store them."""
        self.record()  # one that does not fit is told before it costs anything
        made = self.embedding.embed_documents([document.text for document in documents])
        if len(made) != len(documents):
            raise ValueError(
                f"{type(self.embedding).__name__} gave {len(made)} vectors for {len(documents)} texts: nothing was "
                "stored."
            )
        vectors = unit(made)
        with writing(len(documents)), self.collection.transaction() as transaction:
            record = self._registered(transaction, vectors.shape[1])
            for document, vector in zip(documents, vectors, strict=True):
                transaction.put(document, {record.id: _bare(vector)})

    def _registered(self, transaction: Transaction, dimension: int) -> EncoderRecord:
        record = self.record()
        if record is None:
            return transaction.add_encoder(FOREIGN, {**self._identity(), "dimension": dimension}, dimension)
        if record.dimension != dimension:
            raise FingerprintError(
                f"The vectors of {self.collection.path} have dimension {record.dimension}, and "
                f"{_described(self._identity())} makes vectors of dimension {dimension}: use the model that made "
                "them, or choose another folder."
            )
        return record

    def _identity(self) -> dict[str, Any]:
        """Return the class and the model's name, where the embedding tells one."""
        kind = type(self.embedding)
        names = (getattr(self.embedding, name, None) for name in ("model", "model_name", "model_id"))
        return {
            "class": f"{kind.__module__}.{kind.__qualname__}",
            "name": next((name for name in names if isinstance(name, str)), None),
        }


def _described(fingerprint: dict[str, Any]) -> str:
    name = fingerprint.get("name")
    return f"{fingerprint['class']}" + (f" with {name}" if name else "")


def _bare(vector: FloatArray) -> StoredEmbedding:
    """Make a vector ready to be kept, without evidence; how many tokens were read is not known."""
    return StoredEmbedding(
        vector=vector,
        evidence=np.empty((0, len(vector)), np.int8),
        scales=np.empty(0, np.float32),
        spans=np.empty((0, 2), np.int32),
        tokens=0,
    )
