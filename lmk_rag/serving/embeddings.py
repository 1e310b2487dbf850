"""Vectors in OpenAI's format, so that any OpenAI client can have them."""

import base64
import threading
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, Field

from indexes.records import EncoderRecord
from lmk_rag.indexing import own_records
from lmk_rag.search import Searcher

if TYPE_CHECKING:
    from lmk_rag.encoding.encoder import Encoder

_MOST_TEXTS = 2048  # as OpenAI has it
_OWNER = "lmk-rag"


class EmbeddingRequest(BaseModel):
    """The body of ``/v1/embeddings``."""

    input: Any = Field(description="a text, or a list of texts; lists of token numbers are refused")
    model: str = Field(description="as /v1/models names it: the pooling")
    encoding_format: Literal["float", "base64"] = Field("float", description="float, or base64 of float32")
    dimensions: int | None = Field(None, description="only the model's own number")
    user: str | None = Field(None, description="ignored")


class UnknownModelError(ValueError):
    """There is no model of that name."""


class Embedder:
    """The encoders that made a collection's vectors, by their poolings; without any, the one that ingest would use."""

    def __init__(self, searcher: Searcher) -> None:
        self.searcher = searcher
        self._default: Encoder | None = None
        self._lock = threading.Lock()

    def models(self) -> dict[str, Any]:
        """List the models in OpenAI's format."""
        names = [record.pooling for record in self._records()] or [self._fallback().pooling]
        return {
            "object": "list",
            "data": [{"id": name, "object": "model", "created": 0, "owned_by": _OWNER} for name in names],
        }

    def embed(self, request: EmbeddingRequest) -> dict[str, Any]:
        """Answer a request.

        Raises:
            UnknownModelError: there is no such model.
            ValueError: the input or the dimensions cannot be served.
        """
        texts = _texts(request.input)
        encoder = self._encoder(request.model)
        if request.dimensions not in (None, encoder.dimension):
            raise ValueError(
                f"{request.model} has vectors of {encoder.dimension} dimensions, not {request.dimensions}: leave "
                "dimensions out."
            )
        made = encoder.encode_documents(texts)
        tokens = sum(each.tokens for each in made)
        return {
            "object": "list",
            "model": request.model,
            "data": [
                {"object": "embedding", "index": place, "embedding": _written(each.vector, request.encoding_format)}
                for place, each in enumerate(made)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }

    def _records(self) -> list[EncoderRecord]:
        return own_records(self.searcher.collection)

    def _encoder(self, name: str) -> "Encoder":
        records = {record.pooling: record for record in self._records()}
        if name in records:
            return self.searcher.encoder(records[name])
        if not records and name == self._fallback().pooling:
            return self._fallback()
        known = ", ".join(records) or self._fallback().pooling
        raise UnknownModelError(f"There is no model {name!r}: this server has {known}.")

    def _fallback(self) -> "Encoder":
        from lmk_rag.encoding.encoder import Encoder

        with self._lock:
            if self._default is None:
                self._default = Encoder.load(device=self.searcher.device)
            return self._default


def _texts(given: object) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) for each in texts):
        raise ValueError("input must be a text or a list of texts, at least one; token numbers are not taken.")
    if len(texts) > _MOST_TEXTS:
        raise ValueError(f"input has {len(texts)} texts: send {_MOST_TEXTS} at most.")
    return texts


def _written(vector: "np.typing.NDArray[np.float32]", form: str) -> str | list[float]:
    if form == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(value) for value in vector]
