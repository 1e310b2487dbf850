"""Landmarks as evidence: kept small beside the document, and asked how well they match a query."""

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from indexes.records import StoredEmbedding

if TYPE_CHECKING:
    from lmk_rag.encoding.encoder import Embedding

FloatArray = npt.NDArray[np.float32]

EVIDENCE_RATIO = 1.6
"""Bytes of vectors, scales and spans kept for each byte of UTF-8 text, at most: pairs of landmarks in English."""

MOST_QUERY_VECTORS = 32
"""Evidence vectors of a query, at most: a whole document as query is asked in so many stretches."""

_BYTES_BESIDE = 4 + 2 * 4
"""A vector's float32 scale and its span of two int32."""


def store(embedding: "Embedding", text: str, ratio: float = EVIDENCE_RATIO) -> StoredEmbedding:
    """Make an embedding ready to be kept: neighbouring evidence vectors averaged until they fit, then int8.

    Args:
        embedding: what the encoder made of the text.
        text: the text, whose UTF-8 length sets the room.
        ratio: bytes of all vectors, scales and spans for each byte of text, at most; the document's own vector and
            one evidence vector are kept in any case.
    """
    evidence, spans = fitting(embedding, text, ratio)
    vectors, scales = quantize(evidence)
    return StoredEmbedding(
        vector=embedding.vector,
        evidence=vectors,
        scales=scales,
        spans=spans,
        tokens=embedding.tokens,
        truncated=embedding.truncated,
    )


def fitting(
    embedding: "Embedding", text: str, ratio: float = EVIDENCE_RATIO
) -> tuple[FloatArray, npt.NDArray[np.int32]]:
    """Average neighbouring evidence vectors until they fit the room that :func:`store` has, as it does.

    Returns:
        Vectors of length 1, float32 (n, d), and their spans, int32 (n, 2).
    """
    dimension = embedding.vector.shape[0]
    room = ratio * len(text.encode("utf-8", "surrogatepass")) - 4 * dimension
    most = max(1, int(room // (dimension + _BYTES_BESIDE)))
    return average_neighbours(embedding.evidence, embedding.spans, max(1, math.ceil(len(embedding.evidence) / most)))


def average_neighbours(
    evidence: FloatArray, spans: npt.NDArray[np.int32], group: int
) -> tuple[FloatArray, npt.NDArray[np.int32]]:
    """Average each ``group`` neighbouring evidence vectors into one that stands for their joint span.

    Args:
        evidence: float32 (n, d), each of length 1.
        spans: int32 (n, 2), ascending.
        group: how many become one; the last group may be smaller.

    Returns:
        Vectors of length 1, float32 (ceil(n / group), d), and their spans, int32 of as many rows.
    """
    if group == 1 or len(evidence) == 0:
        return evidence, spans
    starts = np.arange(0, len(evidence), group)
    last = np.minimum(starts + group, len(evidence)) - 1
    sums = np.add.reduceat(evidence, starts, axis=0)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    joint = np.stack([spans[starts, 0], spans[last, 1]], axis=1)
    return (sums / np.maximum(lengths, 1e-12)).astype(np.float32), joint.astype(np.int32)


def quantize(vectors: FloatArray) -> tuple[npt.NDArray[np.int8], FloatArray]:
    """Round vectors to int8, each with a scale of its own: ``vector`` is about ``int8 * scale``.

    Args:
        vectors: float32 (n, d).

    Returns:
        int8 (n, d) in [-127, 127] and float32 (n,) scales.
    """
    scales = (np.abs(vectors).max(axis=1, initial=0.0) / 127).astype(np.float32)
    rounded = np.rint(vectors / np.maximum(scales, 1e-12)[:, None])
    return rounded.astype(np.int8), scales


def query_vectors(evidence: FloatArray) -> FloatArray:
    """Average the neighbouring evidence vectors of a long query, so that comparing stays quick.

    Args:
        evidence: the query's, float32 (q, d), each of length 1.

    Returns:
        float32 (n, d) of length 1, n at most :data:`MOST_QUERY_VECTORS`.
    """
    spans = np.zeros((len(evidence), 2), dtype=np.int32)
    return average_neighbours(evidence, spans, max(1, math.ceil(len(evidence) / MOST_QUERY_VECTORS)))[0]


def similarities(query: FloatArray, stored: StoredEmbedding) -> FloatArray:
    """Compare each query vector with each evidence vector.

    Args:
        query: the query's evidence vectors, float32 (q, d), each of length 1.
        stored: the document's embedding, with n evidence vectors.

    Returns:
        Cosines, float32 (q, n), in [-1, 1].
    """
    products: FloatArray = (query @ stored.evidence.astype(np.float32).T) * stored.scales
    return np.clip(products, -1, 1)


def maxsim(cosines: FloatArray) -> float:
    """Score a document by its evidence: each query vector's best cosine, averaged, in [-1, 1].

    Args:
        cosines: what :func:`similarities` gave, float32 (q, n), q and n at least 1.
    """
    return float(cosines.max(axis=1).mean())
