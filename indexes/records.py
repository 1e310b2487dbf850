"""The records that go into a collection and come out of it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAGE_SEPARATOR = "\n\n"
"""What stands between two pages in a document's text."""


def encode_text(text: str) -> bytes:
    """Encode text as UTF-8, lone surrogates included, so that every `str` survives a round trip."""
    return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document as a reader or a caller hands it over.

    `external_id` is the absolute path for files; with `source` it is the document's key. `language` is an
    ISO 639-1 code, `sha256`, `size` (bytes) and `mtime_ns` are those of the file, `metadata` is JSON-able.
    """

    external_id: str
    pages: tuple[str, ...]
    title: str = ""
    kind: str = "text"
    source: str = "file"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    sha256: str | None = None
    size: int | None = None
    mtime_ns: int | None = None
    language: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The pages, joined by `PAGE_SEPARATOR`."""
        return PAGE_SEPARATOR.join(self.pages)

    @property
    def text_sha256(self) -> str:
        """The SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(encode_text(self.text)).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A document's row, without its text.

    `pages` and `characters` are counts (code points), `text_bytes` is the length in UTF-8; `added` and
    `updated` are ISO 8601 in UTC, to the second; `generation` is the one that wrote the row.
    """

    id: int
    source: str
    external_id: str
    title: str
    kind: str
    pages: int
    characters: int
    text_bytes: int
    metadata: dict[str, Any]
    sha256: str | None
    text_sha256: str
    size: int | None
    mtime_ns: int | None
    language: str | None
    warnings: tuple[str, ...]
    added: str
    updated: str
    generation: int

    @property
    def path(self) -> str:
        """The external id: for a file, its absolute path."""
        return self.external_id


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredEmbedding:
    """A document's embedding by one encoder.

    `vector` is float32 (d,), L2-normalised. `evidence` is int8 (n, d), n may be 0, and stands for
    `evidence * scales[:, None]` with `scales` float32 (n,). `spans` is int32 (n, 2): code points in the
    document's text, start included, end excluded. `tokens` counts the content tokens that were read,
    `truncated` those that a limit left out.
    """

    vector: NDArray[np.float32]
    evidence: NDArray[np.int8]
    scales: NDArray[np.float32]
    spans: NDArray[np.int32]
    tokens: int
    truncated: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderRecord:
    """An encoder that wrote vectors into the collection; one a pooling is active."""

    id: int
    pooling: str
    fingerprint: dict[str, Any]
    dimension: int
    active: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A file that could not be indexed, and why; `at` is ISO 8601 in UTC."""

    path: str
    reason: str
    sha256: str | None
    size: int | None
    mtime_ns: int | None
    at: str
