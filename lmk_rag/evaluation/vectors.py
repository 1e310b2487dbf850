"""The vectors of a data set's texts, kept on disk by the encoder's fingerprint: a second run only reads them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
_CHARACTERS_A_BATCH = 400_000


class Embedded(Protocol):
    """What an encoder makes of a text, as far as evaluation uses it."""

    @property
    def vector(self) -> FloatArray: ...  # noqa: D102
    @property
    def evidence(self) -> FloatArray: ...  # noqa: D102
    @property
    def spans(self) -> npt.NDArray[np.int32]: ...  # noqa: D102
    @property
    def tokens(self) -> int: ...  # noqa: D102
    @property
    def truncated(self) -> int: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Kept:
    """An embedding as it was read from the cache; see :class:`lmk_rag.encoding.encoder.Embedding`."""

    vector: FloatArray
    evidence: FloatArray
    spans: npt.NDArray[np.int32]
    tokens: int
    truncated: int


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of some texts.

    Attributes:
        keys: the texts' ids.
        matrix: float32 (n, d), each of length 1.
        evidence: float16 (m, d), the evidence vectors of all texts one after the other; m is 0 where not kept.
        owners: which row of ``matrix`` each evidence vector belongs to, int64 (m,), ascending.
        tokens: content tokens that were read.
        seconds: time that encoding took, when it was done.
    """

    keys: tuple[str, ...]
    matrix: FloatArray
    evidence: npt.NDArray[np.float16]
    owners: npt.NDArray[np.int64]
    tokens: int
    seconds: float


class VectorCache:
    """One SQLite file a fingerprint; every batch is committed, so an interrupted run resumes where it was."""

    def __init__(self, folder: Path, fingerprint: Mapping[str, object], *, evidence: bool) -> None:
        """Open the file for this encoder, new or not.

        Args:
            folder: made where missing.
            fingerprint: everything that decides a vector, JSON-able; ``model``, a mere name, does not count.
            evidence: keep evidence vectors too.
        """
        told = {key: value for key, value in fingerprint.items() if key != "model"} | {
            "evidence": evidence,
            "spans": evidence,
        }
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
        folder.mkdir(parents=True, exist_ok=True)
        self.keeps_evidence = evidence
        self._database = sqlite3.connect(folder / f"{digest[:24]}.sqlite")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS vectors "
            "(text TEXT PRIMARY KEY, vector BLOB, evidence BLOB, spans BLOB, tokens INTEGER, truncated INTEGER, "
            "seconds REAL) WITHOUT ROWID"
        )

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def get(
        self,
        texts: Mapping[str, str],
        encode: Callable[[Sequence[str]], Sequence[Embedded]],
        progress: Callable[[int, int], None] | None = None,
    ) -> Vectors:
        """The vectors of the texts; those not yet in the file are encoded, in batches of some hundred kilobytes.

        Args:
            texts: by id.
            encode: an encoder's method.
            progress: called with the texts done and all texts after each batch.
        """
        digests = {key: _digest(text) for key, text in texts.items()}
        known = {row[0] for row in self._database.execute("SELECT text FROM vectors")}
        missing = {digest: texts[key] for key, digest in digests.items() if digest not in known}
        everything = len(set(digests.values()))
        done = everything - len(missing)
        for batch in _batches(missing):
            self._encode(batch, encode)
            done += len(batch)
            if progress:
                progress(done, everything)
        return self._read(digests)

    def embeddings(self, texts: Sequence[str], encode: Callable[[Sequence[str]], Sequence[Embedded]]) -> list[Kept]:
        """The texts' embeddings, in order, with evidence in float32 again; those not yet in the file are encoded."""
        self.get({_digest(text): text for text in texts}, encode)
        return [self._kept(_digest(text)) for text in texts]

    def _kept(self, digest: str) -> Kept:
        vector, evidence, spans, tokens, truncated = self._database.execute(
            "SELECT vector, evidence, spans, tokens, truncated FROM vectors WHERE text = ?", (digest,)
        ).fetchone()
        whole = np.frombuffer(vector, dtype=np.float32)
        parts = np.frombuffer(evidence, dtype=np.float16).reshape(-1, len(whole)).astype(np.float32)
        return Kept(whole, parts, np.frombuffer(spans, dtype=np.int32).reshape(-1, 2), tokens, truncated)

    def _encode(self, batch: Sequence[tuple[str, str]], encode: Callable[[Sequence[str]], Sequence[Embedded]]) -> None:
        began = time.monotonic()
        embeddings = encode([text for _, text in batch])
        took = time.monotonic() - began
        tokens = sum(embedding.tokens for embedding in embeddings) or 1
        rows = [
            (
                digest,
                embedding.vector.astype(np.float32).tobytes(),
                embedding.evidence.astype(np.float16).tobytes() if self.keeps_evidence else b"",
                embedding.spans.astype(np.int32).tobytes() if self.keeps_evidence else b"",
                embedding.tokens,
                embedding.truncated,
                took * embedding.tokens / tokens,
            )
            for (digest, _), embedding in zip(batch, embeddings, strict=True)
        ]
        with self._database:
            self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def _read(self, digests: Mapping[str, str]) -> Vectors:
        matrix, evidence, owners, tokens, seconds = [], [], [], 0, 0.0
        for row, digest in enumerate(digests.values()):
            vector, parts, read, took = self._database.execute(
                "SELECT vector, evidence, tokens, seconds FROM vectors WHERE text = ?", (digest,)
            ).fetchone()
            matrix.append(np.frombuffer(vector, dtype=np.float32))
            local = np.frombuffer(parts, dtype=np.float16).reshape(-1, len(matrix[-1]))
            evidence.append(local)
            owners.append(np.full(len(local), row, dtype=np.int64))
            tokens += read
            seconds += took
        return Vectors(
            keys=tuple(digests),
            matrix=np.stack(matrix),
            evidence=np.concatenate(evidence),
            owners=np.concatenate(owners),
            tokens=tokens,
            seconds=seconds,
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _batches(texts: Mapping[str, str]) -> list[list[tuple[str, str]]]:
    batches: list[list[tuple[str, str]]] = [[]]
    size = 0
    for digest, text in texts.items():
        if batches[-1] and size + len(text) > _CHARACTERS_A_BATCH:
            batches.append([])
            size = 0
        batches[-1].append((digest, text))
        size += len(text)
    return [batch for batch in batches if batch]
