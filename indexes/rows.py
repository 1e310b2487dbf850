"""Records to the columns of their rows, and back."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexes.errors import CollectionError
from indexes.records import EncoderRecord, Failure, StoredDocument, StoredEmbedding

DOCUMENT_COLUMNS = (
    "id, source, external_id, title, kind, pages, characters, text_bytes, metadata, sha256, text_sha256, size, "
    "mtime_ns, language, warnings, added, updated, generation"
)
ENCODER_COLUMNS = "id, pooling, fingerprint, dimension, active"
FAILURE_COLUMNS = "path, reason, sha256, size, mtime_ns, at"
EMBEDDING_COLUMNS = "v.vector, v.tokens, v.truncated, e.vectors, e.scales, e.spans"

VECTOR = np.dtype("<f4")
EVIDENCE = np.dtype("i1")
SPAN = np.dtype("<i4")


def to_json(value: Mapping[str, Any], what: str) -> str:
    """Write a mapping as JSON that SQLite can read too (no NaN).

    Raises:
        CollectionError: it holds something that JSON has no form for; `what` says whose it is.
    """
    try:
        return json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CollectionError(f"{what} cannot be stored as JSON: {error}") from error


def document(row: tuple[Any, ...]) -> StoredDocument:
    """Read a row of `DOCUMENT_COLUMNS`."""
    return StoredDocument(
        id=row[0],
        source=row[1],
        external_id=row[2],
        title=row[3],
        kind=row[4],
        pages=row[5],
        characters=row[6],
        text_bytes=row[7],
        metadata=json.loads(row[8]),
        sha256=row[9],
        text_sha256=row[10],
        size=row[11],
        mtime_ns=row[12],
        language=row[13],
        warnings=tuple(json.loads(row[14])),
        added=row[15],
        updated=row[16],
        generation=row[17],
    )


def encoder(row: tuple[Any, ...]) -> EncoderRecord:
    """Read a row of `ENCODER_COLUMNS`."""
    return EncoderRecord(
        id=row[0], pooling=row[1], fingerprint=json.loads(row[2]), dimension=row[3], active=bool(row[4])
    )


def failure(row: tuple[Any, ...]) -> Failure:
    """Read a row of `FAILURE_COLUMNS`."""
    return Failure(path=row[0], reason=row[1], sha256=row[2], size=row[3], mtime_ns=row[4], at=row[5])


def embedding(row: tuple[Any, ...]) -> StoredEmbedding:
    """Read a row of `EMBEDDING_COLUMNS`; the arrays are read-only."""
    vector = vector_of(row[0])
    return StoredEmbedding(
        vector=vector,
        tokens=row[1],
        truncated=row[2],
        evidence=np.frombuffer(row[3] or b"", EVIDENCE).reshape(-1, len(vector)),
        scales=np.frombuffer(row[4] or b"", VECTOR),
        spans=np.frombuffer(row[5] or b"", SPAN).reshape(-1, 2),
    )


def vector_of(blob: bytes) -> NDArray[np.float32]:
    """Read a vector's blob: float32 (d,), read-only."""
    return np.frombuffer(blob, VECTOR)


def check_embedding(embedding: StoredEmbedding, encoder: EncoderRecord, characters: int) -> None:
    """Refuse an embedding that does not fit its encoder or its document.

    Raises:
        CollectionError: the first thing that is wrong, with its values.
    """
    problem = embedding_problem(embedding, encoder.dimension, characters)
    if problem:
        raise CollectionError(f"The {encoder.pooling} embedding cannot be stored: {problem}")


def embedding_problem(embedding: StoredEmbedding, dimension: int, characters: int) -> str | None:
    """Say what is wrong with an embedding, or None.

    Args:
        embedding: the embedding.
        dimension: what its encoder gives.
        characters: length of the document's text, in code points.
    """
    if embedding.vector.shape != (dimension,):
        return f"its vector has shape {embedding.vector.shape}, and the encoder's dimension is {dimension}"
    # A NaN fails this comparison too.
    norm = float(np.linalg.norm(embedding.vector.astype(np.float64)))
    if not abs(norm - 1) < NORM_TOLERANCE:
        return f"its vector has norm {norm:.4g} in place of 1"
    return _evidence_problem(embedding, dimension, characters)


NORM_TOLERANCE = 1e-2  # bf16 keeps three digits


def _evidence_problem(embedding: StoredEmbedding, dimension: int, characters: int) -> str | None:
    n = len(embedding.evidence)
    if embedding.evidence.shape != (n, dimension):
        return f"its evidence has shape {embedding.evidence.shape} in place of (n, {dimension})"
    if embedding.scales.shape != (n,) or embedding.spans.shape != (n, 2):
        return (
            f"it has {n} evidence vectors, scales of shape {embedding.scales.shape} and spans of shape "
            f"{embedding.spans.shape}"
        )
    if not np.isfinite(embedding.scales).all() or (embedding.scales < 0).any():
        return "a scale of its evidence is negative or not finite"
    start, end = embedding.spans[:, 0], embedding.spans[:, 1]
    if n and ((start < 0).any() or (end < start).any() or (end > characters).any()):
        return f"a span of its evidence lies outside the text's {characters} characters"
    return None
