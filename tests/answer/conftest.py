"""Collections of a few texts: without vectors, which takes no model, and by a tiny encoder."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from indexes.collection import Collection
from indexes.records import Document
from lmk_rag.indexing import Indexer
from lmk_rag.search import Searcher

Make = Callable[..., Searcher]


@pytest.fixture
def make_searcher(tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Give a function that makes a searcher over documents, each a text or several pages; BM25 alone by default."""
    monkeypatch.setenv("LMK_RAG_BASE", str(tiny_bert))
    made: list[Searcher] = []

    def make(texts: Sequence[str | Sequence[str]], poolings: Sequence[str] = ()) -> Searcher:
        collection = Collection.open(tmp_path / f"collection-{len(made)}", create=True)
        encoders = []
        if poolings:
            from lmk_rag.encoding.encoder import Encoder

            encoders = [Encoder.load(pooling=pooling) for pooling in poolings]
        documents = [
            Document(
                external_id=f"/{number}.txt",
                pages=(text,) if isinstance(text, str) else tuple(text),
                title=f"Text {number}",
            )
            for number, text in enumerate(texts)
        ]
        with collection.write("test"):
            Indexer(collection, encoders).add(documents)
        made.append(Searcher(collection))
        return made[-1]

    yield make
    for searcher in made:
        searcher.close()
