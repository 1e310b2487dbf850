"""The search as LangChain's `Retriever`."""

import logging
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import run_in_executor
from pydantic import ConfigDict, Field, PrivateAttr

from indexes.records import StoredDocument
from lmk_rag.langchain.documents import metadata_of
from lmk_rag.langchain.filters import as_filter
from lmk_rag.passages import Passage
from lmk_rag.search import Hit, Searcher

_log = logging.getLogger(__name__)
_BEGINNING = Passage(page=1, start=0, end=0, text="", score=0.0)
"""The place in a document without any text."""


class LMKRetriever(BaseRetriever):
    """Finds what answers a query in a collection, by the same search as ``lmk-rag search``.

    The metadata of each result holds, beside the document's own:

    - ``source``: the file's path, or the id of a document without a file; the document's own, where it has one;
    - ``title``: likewise;
    - ``page``: where the passage stands, counted from 1; likewise;
    - ``start`` and ``end``: the passage's code points on that page, the end excluded;
    - ``score``: of the document (a hit's, see `lmk_rag.search`) or of the passage (see
      `lmk_rag.passages.Passage`), whichever is returned; higher is better.

    What a user should know about a search, such as that the collection has no vectors, is logged as a warning.

    Attributes:
        collection: the collection's folder, which must exist.
        k: how many results at most, at least 1; ``invoke(query, k=...)`` goes before it.
        mode: hybrid, dense or bm25.
        evidence: whether evidence vectors take part in the ranking.
        filter: a mapping on metadata, or an expression of the command line, such as ``type=pdf``.
        return_: ``documents`` gives whole documents, with the place of their best passage; ``passages`` gives the
            best passage of each document, best document first, then the second best ones.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    collection: Path
    k: int = Field(default=4, ge=1)
    mode: Literal["hybrid", "dense", "bm25"] = "hybrid"
    evidence: bool = True
    filter: Mapping[str, Any] | str | None = None
    return_: Literal["documents", "passages"] = "documents"

    _searcher: Searcher = PrivateAttr()

    def model_post_init(self, context: object, /) -> None:
        """Open the collection.

        Raises:
            CollectionError: there is none, or the filter cannot be read.
        """
        as_filter(self.filter)
        self._searcher = Searcher.open(self.collection.expanduser())

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        wanted = self.k if k is None else k
        collection = self._searcher.collection
        with collection.snapshot():
            found = self._searcher.search(
                query, wanted, self.mode, evidence=self.evidence, filter=as_filter(self.filter)
            )
            for note in found.notes:
                _log.warning(note)
            documents = {hit.id: stored for hit in found.hits if (stored := collection.get(hit.id)) is not None}
            if self.return_ == "passages":
                return [_passage(documents[hit.id], passage) for hit, passage in _in_turn(found.hits)[:wanted]]
            return [_whole(documents[hit.id], hit, collection.text(hit.id)) for hit in found.hits]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return await run_in_executor(None, self._get_relevant_documents, query, run_manager=run_manager.get_sync(), k=k)


def _in_turn(hits: Sequence[Hit]) -> list[tuple[Hit, Passage]]:
    """Return the best passage of each hit, then the second best ones, and so on."""
    turns = zip_longest(*([(hit, passage) for passage in hit.passages] for hit in hits))
    return [each for turn in turns for each in turn if each is not None]


def _whole(stored: StoredDocument, hit: Hit, text: str) -> Document:
    best = hit.passages[0] if hit.passages else _BEGINNING
    return Document(id=stored.external_id, page_content=text, metadata=_metadata(stored, best, hit.score))


def _passage(stored: StoredDocument, passage: Passage) -> Document:
    return Document(
        id=f"{stored.external_id}#{passage.page}:{passage.start}-{passage.end}",
        page_content=passage.text,
        metadata=_metadata(stored, passage, passage.score),
    )


def _metadata(stored: StoredDocument, place: Passage, score: float) -> dict[str, Any]:
    return {
        "source": stored.external_id,
        "title": stored.title,
        "page": place.page,
        **metadata_of(stored),
        "score": score,
        "start": place.start,
        "end": place.end,
    }
