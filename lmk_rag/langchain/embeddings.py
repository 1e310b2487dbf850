"""The encoder as LangChain's `Embeddings`."""

import threading
from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings

from indexes.collection import Collection
from lmk_rag.indexing import Settings, load_encoder, own_records

if TYPE_CHECKING:
    from lmk_rag.encoding.encoder import Encoder


class LMKEmbeddings(Embeddings):
    """Embeds whole documents of any length, one vector each; for any store of LangChain.

    The model is loaded at the first use. Threads may share one; the async methods leave the event loop free.
    """

    def __init__(
        self,
        model: str = "default",
        *,
        pooling: str | None = None,
        granularity: int | None = None,
        max_tokens: int | None = None,
        device: str = "auto",
    ) -> None:
        """Choose a model.

        Args:
            model: ``default``, a model folder, or a name on the hub.
            pooling: lmk, mean, cls, mcls, lasttoken or max; None for the model's own.
            granularity: content tokens a landmark closes; None for the model's own.
            max_tokens: content tokens read of each text; None for all of them.
            device: auto, cpu, cuda or mps.
        """
        self.model = model
        self.pooling = pooling
        self.granularity = granularity
        self.max_tokens = max_tokens
        self.device = device
        self._encoder: Encoder | None = None
        self._lock = threading.Lock()

    @property
    def encoder(self) -> "Encoder":
        """The encoder behind it, loaded once.

        Raises:
            ModelError: the model cannot be had, or not with this pooling.
        """
        with self._lock:
            if self._encoder is None:
                self._encoder = self._load()
            return self._encoder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts of any length.

        Returns:
            A vector a text, of length 1, in the order given.
        """
        return [made.vector.tolist() for made in self.encoder.encode_documents(texts)] if texts else []

    def embed_query(self, text: str) -> list[float]:
        """Embed a query: a vector of length 1, to be compared with the documents' by cosine."""
        vector: list[float] = self.encoder.encode_queries([text])[0].vector.tolist()
        return vector

    def _load(self) -> "Encoder":
        from lmk_rag.encoding.encoder import Encoder

        return Encoder.load(
            self.model,
            pooling=self.pooling,
            granularity=self.granularity,
            max_tokens=self.max_tokens,
            device=self.device,
        )


class CollectionEmbeddings(LMKEmbeddings):
    """The embeddings that made a collection's vectors; for a new collection, the default ones."""

    def __init__(self, collection: Collection) -> None:
        """Take an open collection."""
        super().__init__()
        self._collection = collection

    def _load(self) -> "Encoder":
        """Load the encoder of the collection's lmk vectors, else of the first that it has.

        Raises:
            FingerprintError: it cannot be had in the same state any more.
        """
        poolings = [record.pooling for record in own_records(self._collection)]
        chosen = min(poolings, key=lambda pooling: pooling != "lmk", default=None)
        return load_encoder(self._collection, chosen, Settings(device=self.device))
