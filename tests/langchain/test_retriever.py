"""`LMKRetriever`: whole documents or passages, with where they stand."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from pydantic import ValidationError

from indexes.collection import Collection
from indexes.errors import CollectionError, FilterError
from lmk_rag.langchain import LMKRetriever, LMKVectorStore
from lmk_rag.search import Searcher
from tests.langchain.embedders import Letters

QUESTION = "Who breathes air at the surface of the sea?"
KEYS = {"source", "title", "page", "score", "start", "end"}


def page(collection: Path, found: Document) -> str:
    """The page that a result points to."""
    with Collection.open(collection) as opened:
        stored = opened.find(found.metadata["source"])
        assert stored is not None
        number: int = found.metadata["page"]
        return opened.page_texts(stored.id)[number - 1]


def test_documents_are_whole_and_point_to_their_best_passage(ingested: Path, folder: Path) -> None:
    found = LMKRetriever(collection=ingested).invoke(QUESTION)
    assert len(found) == 4
    with Searcher.open(ingested).collection as collection:
        hits = Searcher(collection).search(QUESTION, 4).hits
        assert [each.page_content for each in found] == [collection.text(hit.id) for hit in hits]
    assert [each.id for each in found] == [hit.path for hit in hits]
    for each, hit in zip(found, hits, strict=True):
        best = hit.passages[0]
        place = {"page": best.page, "start": best.start, "end": best.end}
        assert each.metadata == {"source": hit.path, "title": hit.title, "score": hit.score, **place}
    whales = found[0]
    assert whales.metadata["source"] == str(folder / "whales.txt")
    assert whales.metadata["page"] == 2
    assert "Whales sing" in whales.page_content
    assert page(ingested, whales)[whales.metadata["start"] : whales.metadata["end"]] in whales.page_content


def test_passages_are_cut_at_their_place_best_documents_first(ingested: Path, folder: Path) -> None:
    question = "sea air stars iron"
    documents = LMKRetriever(collection=ingested, k=9, mode="bm25").invoke(question)
    found = LMKRetriever(collection=ingested, k=9, mode="bm25", return_="passages").invoke(question)
    sources = [each.metadata["source"] for each in documents]
    assert len(sources) == 3
    assert [each.metadata["source"] for each in found] == [*sources, str(folder / "whales.txt")]
    assert len({each.id for each in found}) == len(found)
    for each in found:
        assert set(each.metadata) == KEYS
        assert page(ingested, each)[each.metadata["start"] : each.metadata["end"]] == each.page_content
    whales = {each.metadata["page"]: each.page_content for each in found if "whales" in each.metadata["source"]}
    assert whales == {1: "Whales sing in the deep sea.", 2: "They breathe air at its surface."}


@pytest.mark.parametrize("returned", ["documents", "passages"])
async def test_k_can_be_given_with_the_question(ingested: Path, returned: Any) -> None:
    retriever = await asyncio.to_thread(lambda: LMKRetriever(collection=ingested, return_=returned, k=2))
    assert len(await retriever.ainvoke(QUESTION)) == 2
    assert len(await retriever.ainvoke(QUESTION, k=3)) == 3
    assert len(await retriever.ainvoke(QUESTION, k=1)) == 1


def test_modes_and_evidence_reach_the_search(ingested: Path) -> None:
    with Searcher.open(ingested).collection as collection:
        searcher = Searcher(collection)
        for mode in ("hybrid", "dense", "bm25"):
            for evidence in (True, False):
                retriever = LMKRetriever(collection=ingested, mode=mode, evidence=evidence)
                expected = searcher.search(QUESTION, 4, mode, evidence=evidence).hits
                found = retriever.invoke(QUESTION)
                assert [(each.id, each.metadata["score"]) for each in found] == [(h.path, h.score) for h in expected]


def test_filters_by_expression_and_by_mapping(ingested: Path, folder: Path) -> None:
    bread = str(folder / "bread.md")
    for filter in ("type=markdown", {"type": "markdown"}, {"source": bread}, "title=Bread"):
        found = LMKRetriever(collection=ingested, filter=filter).invoke(QUESTION)
        assert [each.metadata["source"] for each in found] == [bread]
    assert LMKRetriever(collection=ingested, filter={"type": "none"}).invoke(QUESTION) == []


def test_documents_of_langchain_keep_their_own_metadata(tmp_path: Path) -> None:
    store = LMKVectorStore(tmp_path / "store")
    given = {"source": "book.pdf", "title": "Sky", "page": 7, "author": "me"}
    store.add_texts(["Stars shine at night.", ""], [given, {}], ids=["stars", "empty"])
    with_all, bare = LMKRetriever(collection=tmp_path / "store", mode="dense").invoke("stars shine")[::1]
    by_id = {each.id: each for each in (with_all, bare)}
    stars, empty = by_id["stars"], by_id["empty"]
    assert {key: stars.metadata[key] for key in given} == given
    assert set(stars.metadata) == {*given, *KEYS}
    assert stars.page_content[stars.metadata["start"] : stars.metadata["end"]] == "Stars shine at night."
    assert {**empty.metadata, "score": None} == {
        "source": "empty", "title": "", "page": 1, "start": 0, "end": 0, "score": None
    }  # fmt: skip
    store.collection.close()


def test_what_the_search_notes_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    LMKVectorStore.from_texts(["stars"], Letters(), collection=tmp_path / "store").collection.close()
    with caplog.at_level(logging.WARNING):
        assert len(LMKRetriever(collection=tmp_path / "store").invoke("stars")) == 1
    assert "no vectors of this program's encoders" in caplog.text
    assert LMKRetriever(collection=tmp_path / "store").invoke("  ") == []


def test_mistakes_are_told_when_it_is_made(ingested: Path, tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match=r"There is no collection at .*missing"):
        LMKRetriever(collection=tmp_path / "missing")
    with pytest.raises(FilterError):
        LMKRetriever(collection=ingested, filter="nonsense")
    for wrong in ({"k": 0}, {"mode": "best"}, {"return_": "pages"}):
        with pytest.raises(ValidationError):
            LMKRetriever(collection=ingested, **wrong)
    with pytest.raises(ValueError, match="k must be at least 1, not 0"):
        LMKRetriever(collection=ingested).invoke(QUESTION, k=0)
