"""The systems that are the product itself: a collection in the cache folder, searched as a user would."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence

from indexes.collection import Collection
from indexes.records import Document
from lmk_rag.encoding.encoder import Embedding, Encoder
from lmk_rag.evaluation.beir import Dataset
from lmk_rag.evaluation.systems import DEPTH, Options, Progress, Run, load_encoder
from lmk_rag.evaluation.vectors import VectorCache
from lmk_rag.indexing import Indexer
from lmk_rag.search import Searcher

POOLING = "lmk"
_MODES = {"lmk+evidence": ("dense", True), "hybrid": ("hybrid", False), "hybrid+evidence": ("hybrid", True)}
_SOURCE = "evaluation"
_DOCUMENTS_A_BATCH = 16


class CachedEncoder(Encoder):
    """An encoder that takes documents' embeddings from the cache of vectors, which the dense systems fill and read."""

    def __init__(self, encoder: Encoder, cache: VectorCache) -> None:
        """Take a loaded encoder and the cache of its fingerprint."""
        super().__init__(
            encoder.checkpoint, encoder.tokenizer, encoder.network, window=encoder.window, max_tokens=encoder.max_tokens
        )
        self._cache = cache

    def encode_documents(self, texts: Sequence[str], progress: Callable[[int], None] | None = None) -> list[Embedding]:
        """Embed whole documents, as the encoder does; evidence has been rounded to float16 on its way."""
        kept = self._cache.embeddings(texts, super().encode_documents)
        return [Embedding(each.vector, each.evidence, each.spans, each.tokens, each.truncated) for each in kept]


def run_searched(name: str, dataset: Dataset, options: Options, progress: Progress | None = None) -> Run:
    """Index the data set, once for all three systems, and let the product's search answer every query.

    Args:
        name: ``lmk+evidence``, ``hybrid`` or ``hybrid+evidence``.
        dataset: what to search and to ask.
        options: cache folder, model, limit of tokens, device.
        progress: told of documents, then of queries.

    Returns:
        Its seconds are those of this call: where the collection was there already, those of searching alone.
    """
    mode, evidence = _MODES[name]
    began = time.monotonic()
    loaded = load_encoder(POOLING, options)
    cache = VectorCache(options.cache, loaded.fingerprint(), evidence=True)
    encoder = CachedEncoder(loaded, cache)
    folder = options.cache / f"collection-{digest(dataset, encoder)}"
    with Collection.open(folder, create=True) as collection:
        ids, tokens = index(collection, dataset, [encoder], name, progress)
        searcher = Searcher(collection, options.device)
        scores: dict[str, dict[str, float]] = {}
        for done, (query, text) in enumerate(dataset.queries.items(), start=1):
            ranking = searcher.rank(text, DEPTH, mode, POOLING, evidence)  # near copies are documents of their own here
            scores[query] = {ids[number]: score for number, score in ranking.best()[:DEPTH]}
            if progress:
                progress(f"{name}, queries", done, len(dataset.queries))
    cache.close()
    return Run(scores, time.monotonic() - began, tokens, loaded.notices)


def index(
    collection: Collection, dataset: Dataset, encoders: Sequence[Encoder], name: str, progress: Progress | None
) -> tuple[dict[int, str], int]:
    """Add the documents that are not there yet; gives each document's key by its id, and the tokens the first read."""
    ids = {document.id: document.external_id for document in collection.documents()}
    present = set(ids.values())
    missing = [key for key in dataset.corpus if key not in present]
    with collection.write("evaluation"):
        indexer = Indexer(collection, encoders)
        for start in range(0, len(missing), _DOCUMENTS_A_BATCH):
            keys = missing[start : start + _DOCUMENTS_A_BATCH]
            documents = [Document(external_id=key, pages=(dataset.corpus[key],), source=_SOURCE) for key in keys]
            added = indexer.add(documents)
            ids |= {number: key for (number, _), key in zip(added, keys, strict=True)}
            if progress:
                progress(f"{name}, documents", len(ids), len(dataset.corpus))
        collection.persist_caches()
    record = collection.encoder(encoders[0].pooling)
    assert record is not None
    stored = collection.embeddings(record.id, list(ids))
    return ids, sum(embedding.tokens for embedding in stored.values())


def digest(dataset: Dataset, encoder: Encoder) -> str:
    """What the collection depends on: the texts and the encoder."""
    told = hashlib.sha256()
    fingerprint = {key: value for key, value in encoder.fingerprint().items() if key != "model"}
    told.update(repr(sorted(fingerprint.items())).encode())
    for key, text in sorted(dataset.corpus.items()):
        told.update(f"{key}\0{text}\0".encode("utf-8", "surrogatepass"))
    return told.hexdigest()[:24]
