"""The systems that are compared: each turns a data set into scores of documents for queries."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lmk_rag.encoding.base_model import ModelWarning, base_model
from lmk_rag.encoding.checkpoints import Checkpoint
from lmk_rag.encoding.encoder import Encoder
from lmk_rag.evaluation.beir import Dataset
from lmk_rag.evaluation.extras import require
from lmk_rag.evaluation.vectors import VectorCache, Vectors

SYSTEMS = (
    "bm25", "base-mean", "mean", "cls", "mcls", "lmk", "lmk-maxsim", "chunks", "chunks-256",
    "lmk+evidence", "hybrid", "hybrid+evidence",
)  # fmt: skip
"""All of them; the last three go through the product's own search."""
SEARCHED = ("lmk+evidence", "hybrid", "hybrid+evidence")
DEPTH = 100
"""Documents kept for each query: as many as the deepest measure looks at."""
CHUNK_CHARACTERS, CHUNK_OVERLAP = 1000, 200
CHUNK_TOKENS = 256

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How systems run.

    Attributes:
        cache: folder for vectors.
        model: a model for the systems with a pooling of their own, by default the shipped adapters. A folder with
            one subfolder a pooling (what training leaves) gives each system its own.
        max_tokens: content tokens read of each text; all by default.
        device: ``auto``, ``cpu``, ``cuda``, ``mps``.
    """

    cache: Path
    model: str | None = None
    max_tokens: int | None = None
    device: str = "auto"


@dataclass(frozen=True, slots=True)
class Run:
    """What a system found: scores by query and document, the seconds it took, the content tokens it read.

    ``notices``: what is odd about its model, such as an adapter that was trained for another pooling.
    """

    scores: dict[str, dict[str, float]]
    seconds: float
    tokens: int
    notices: tuple[str, ...] = ()


def run_system(name: str, dataset: Dataset, options: Options, progress: Progress | None = None) -> Run:
    """Let a system answer every query of a data set.

    Raises:
        ValueError: no system has that name.
    """
    if name == "bm25":
        return _bm25(dataset)
    if name in SEARCHED:
        from lmk_rag.evaluation.searched import run_searched

        return run_searched(name, dataset, options, progress)
    if name in ("chunks", "chunks-256"):
        return _chunks(name, dataset, options, progress)
    if name in SYSTEMS:
        return _dense(name, dataset, options, progress)
    raise ValueError(f"There is no system {name!r}: choose from {', '.join(SYSTEMS)}.")


def load_encoder(system: str, options: Options) -> Encoder:
    """The encoder of a dense system: the untrained base for ``base-mean`` and the chunks, else by the pooling."""
    pooling = system.partition("-")[0]
    if pooling in ("base", "chunks"):
        return untrained_base(options)
    model = "default" if options.model is None else model_for(pooling, options.model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # a run gives the encoder's notices back
        return Encoder.load(model, pooling=pooling, max_tokens=options.max_tokens, device=options.device)


def model_for(pooling: str, model: str) -> str:
    """The folder of a pooling's adapter where ``model`` is a folder of several, else ``model`` itself."""
    trained = "cls" if pooling == "mcls" else pooling
    for folder in (Path(model) / trained, Path(model) / trained / "adapter"):
        if (folder / "lmk_rag.json").is_file():
            return str(folder)
    return model


def untrained_base(options: Options) -> Encoder:
    """The default base without an adapter, under its own mean pooling, over windows of 512."""
    from lmk_rag.encoding import network as networks

    checkpoint = Checkpoint(model="base", base=base_model(), pooling="mean", window=512)
    tokenizer = networks.load_tokenizer(checkpoint)
    device = networks.pick_device(options.device)
    return Encoder(
        checkpoint,
        tokenizer,
        networks.load_network(checkpoint, device, networks.pick_dtype("auto", device)),
        window=networks.positions(checkpoint, tokenizer.window),
        max_tokens=options.max_tokens,
    )


def token_lengths(dataset: Dataset) -> dict[str, int]:
    """Content tokens of each document, by the default base's tokenizer."""
    from lmk_rag.encoding.network import load_tokenizer

    backend = load_tokenizer(Checkpoint(model="base", base=base_model(), pooling="mean")).backend
    encoded = backend.encode_batch_fast(list(dataset.corpus.values()), add_special_tokens=False)
    return {key: len(each.ids) for key, each in zip(dataset.corpus, encoded, strict=True)}


def best_of(
    scores: npt.NDArray[np.float32], queries: tuple[str, ...], keys: tuple[str, ...]
) -> dict[str, dict[str, float]]:
    """The :data:`DEPTH` best documents of each query.

    Args:
        scores: (queries, documents), higher is better.
        queries: ids of the rows.
        keys: ids of the columns.
    """
    depth = min(DEPTH, scores.shape[1])
    best = np.argpartition(-scores, depth - 1, axis=1)[:, :depth]
    return {query: {keys[at]: float(scores[row, at]) for at in best[row]} for row, query in enumerate(queries)}


def _dense(name: str, dataset: Dataset, options: Options, progress: Progress | None) -> Run:
    encoder = load_encoder(name, options)
    keep = name.startswith("lmk")
    documents, queries = _embed(name, encoder, dataset.corpus, dataset.queries, options, keep, progress)
    began = time.monotonic()
    scores = best_evidence(queries.matrix, documents) if name == "lmk-maxsim" else queries.matrix @ documents.matrix.T
    found = best_of(scores, queries.keys, documents.keys)
    seconds = documents.seconds + queries.seconds + time.monotonic() - began
    # the cls adapter under another pooling is what mcls is
    notices = tuple(told for told in encoder.notices if name != "mcls" or "trained for cls" not in told)
    return Run(found, seconds, documents.tokens, notices)


def best_evidence(queries: npt.NDArray[np.float32], documents: Vectors) -> npt.NDArray[np.float32]:
    """The highest cosine of each query with any evidence vector of each document, float32 (queries, documents)."""
    scores = np.full((len(queries), len(documents.keys)), -1.0, dtype=np.float32)
    starts = np.searchsorted(documents.owners, np.arange(len(documents.keys) + 1))
    for at, (start, stop) in enumerate(itertools.pairwise(starts)):
        if stop > start:
            scores[:, at] = (queries @ documents.evidence[start:stop].T.astype(np.float32)).max(axis=1)
    return scores


def _chunks(name: str, dataset: Dataset, options: Options, progress: Progress | None) -> Run:
    """Independent chunks of each document, base mean, the best chunk counts."""
    encoder = untrained_base(options)
    parts: dict[str, str] = {}
    owners: list[int] = []
    for at, (key, whole) in enumerate(dataset.corpus.items()):
        text = _first_tokens(encoder, whole, options.max_tokens)
        cut = _token_chunks(encoder, text) if name == "chunks-256" else character_chunks(text)
        for number, part in enumerate(cut):
            parts[f"{key}\0{number}"] = part
            owners.append(at)
    chunks, queries = _embed(name, encoder, parts, dataset.queries, options, False, progress)
    began = time.monotonic()
    keys = tuple(dataset.corpus)
    as_evidence = Vectors(
        keys, chunks.matrix, chunks.matrix.astype(np.float16), np.array(owners, dtype=np.int64), 0, 0.0
    )
    found = best_of(best_evidence(queries.matrix, as_evidence), queries.keys, keys)
    return Run(found, chunks.seconds + queries.seconds + time.monotonic() - began, chunks.tokens)


def _first_tokens(encoder: Encoder, text: str, most: int | None) -> str:
    """The text up to the end of its last token within the limit: a document's limit, not a chunk's."""
    if most is None:
        return text
    offsets = next(encoder.tokenizer.tokens([text])).offsets[:most]
    return text[: offsets[-1, 1]] if len(offsets) else ""


def character_chunks(text: str) -> list[str]:
    """Cut a text as LangChain's splitter does: 1,000 characters at most, 200 shared, at paragraphs where it can."""
    splitters = require("langchain_text_splitters")
    cut = splitters.RecursiveCharacterTextSplitter(chunk_size=CHUNK_CHARACTERS, chunk_overlap=CHUNK_OVERLAP)
    chunks: list[str] = cut.split_text(text)
    return chunks or [text]


def _token_chunks(encoder: Encoder, text: str) -> list[str]:
    offsets = next(encoder.tokenizer.tokens([text])).offsets
    starts = offsets[::CHUNK_TOKENS, 0].tolist() or [0]
    return [text[start:stop] for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]


def _embed(
    name: str,
    encoder: Encoder,
    corpus: Mapping[str, str],
    queries: Mapping[str, str],
    options: Options,
    evidence: bool,
    progress: Progress | None,
) -> tuple[Vectors, Vectors]:
    cache = VectorCache(options.cache, encoder.fingerprint(), evidence=evidence)
    asked = VectorCache(options.cache, {**encoder.fingerprint(), "side": "query"}, evidence=False)

    def told(done: int, everything: int) -> None:
        if progress:
            progress(name, done, everything)

    try:
        return cache.get(corpus, encoder.encode_documents, told), asked.get(queries, encoder.encode_queries)
    finally:
        cache.close()
        asked.close()


def _bm25(dataset: Dataset) -> Run:
    bm25s = require("bm25s")
    began = time.monotonic()
    keys, queries = tuple(dataset.corpus), tuple(dataset.queries)
    tokens = bm25s.tokenize(list(dataset.corpus.values()), stopwords="en", show_progress=False)
    if not any(len(ids) for ids in tokens.ids):  # no word in any document
        return Run({query: {} for query in queries}, time.monotonic() - began, 0)
    index = bm25s.BM25()
    index.index(tokens, show_progress=False)
    asked = bm25s.tokenize(list(dataset.queries.values()), stopwords="en", show_progress=False, return_ids=False)
    rows, scores = index.retrieve(asked, k=min(DEPTH, len(keys)), show_progress=False)
    found = {
        query: {keys[at]: float(score) for at, score in zip(rows[n], scores[n], strict=True) if score > 0}
        for n, query in enumerate(queries)
    }
    return Run(found, time.monotonic() - began, sum(len(ids) for ids in tokens.ids))
