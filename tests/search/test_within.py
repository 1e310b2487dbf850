"""One document asked: more like it, its passages for a query, its strip; against plain loops."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from indexes.collection import Collection
from indexes.errors import CollectionError, FilterError
from indexes.records import Document
from lmk_rag.encoding.encoder import Encoder
from lmk_rag.indexing import Indexer
from lmk_rag.search import Searcher
from tests.search.test_passages import check_offsets

Make = Callable[..., Collection]
TEXTS = [
    "apples and pears grow on trees in the garden behind the house",
    "the sea is deep and blue and whales sing in it by night",
    "stars shine at night over the sea and over the quiet harbour",
    "rust eats iron where rain falls on old bridges every day",
]
PAGES = (
    "The heron stands in the shallow water. It waits for fish.",
    "Iron rusts. Rain makes it rust faster, and salt faster still. " * 4,
    "",
    "At night the harbour is quiet. The sea is black.",
)
pytestmark = pytest.mark.filterwarnings("ignore:default was trained for mean pooling")


def paged(collection: Collection, pooling: str = "lmk", pages: tuple[str, ...] = PAGES) -> int:
    with collection.write("test"):
        ((document_id, _),) = Indexer(collection, [Encoder.load(pooling=pooling)]).add(
            [Document(external_id="/paged.pdf", pages=pages, kind="pdf", title="Paged")]
        )
    return document_id


def test_more_like_is_the_order_of_the_vectors_cosines(make_collection: Make) -> None:
    results = Searcher(make_collection(TEXTS)).more_like(2, k=2)
    vectors = np.stack([made.vector for made in Encoder.load(pooling="mean").encode_documents(TEXTS)])
    cosines = vectors @ vectors[1]
    order = [int(place) for place in np.argsort(-cosines) if place != 1][:2]
    assert [hit.id for hit in results.hits] == [place + 1 for place in order]
    assert [hit.score for hit in results.hits] == pytest.approx([cosines[place] for place in order], abs=1e-5)
    assert [hit.rank for hit in results.hits] == [1, 2]
    assert (results.query, results.mode, results.score_kind, results.pooling) == ("Text 1", "dense", "cosine", "mean")
    assert results.folded == ()
    assert all(hit.passages for hit in results.hits)


def test_near_copies_of_the_document_itself_are_told_apart(make_collection: Make) -> None:
    results = Searcher(make_collection([*TEXTS, TEXTS[1]])).more_like(2, k=3)
    assert [(copy.id, copy.similarity) for copy in results.folded] == [(5, 1.0)]
    assert {hit.id for hit in results.hits} == {1, 3, 4}


def test_more_like_with_a_filter(make_collection: Make) -> None:
    searcher = Searcher(make_collection(TEXTS))
    assert [hit.id for hit in searcher.more_like(1, filter={"title": "Text 3"}).hits] == [4]
    assert searcher.more_like(1, filter={"title": "nothing"}).hits == ()


def test_more_like_by_words_where_there_are_no_vectors(make_collection: Make) -> None:
    collection = make_collection([], ())
    with collection.write("test"), collection.transaction() as transaction:
        for number, text in enumerate([*TEXTS, "whales and the deep blue sea again"]):
            transaction.put(Document(external_id=f"/{number}.txt", pages=(text,)), {})
    results = Searcher(collection).more_like(2, k=1)
    assert [hit.id for hit in results.hits] == [5]
    assert (results.query, results.score_kind, results.pooling) == ("/1.txt", "bm25", None)
    assert "BM25 alone" in results.notes[0]


def test_find_points_into_one_document(make_collection: Make) -> None:
    collection = make_collection(TEXTS, ("lmk",))
    document_id = paged(collection)
    found = Searcher(collection).find(document_id, "heron", k=2)
    check_offsets(list(found), list(PAGES))
    assert len(found) == 2
    best = next(passage for passage in found if "heron" in passage.text)
    assert best.page == 1
    assert [best.text[start:end] for start, end in best.marks] == ["heron"]


def test_find_without_evidence_goes_by_the_words(make_collection: Make) -> None:
    collection = make_collection(TEXTS, ("cls",))
    document_id = paged(collection, "cls")
    (passage,) = Searcher(collection).find(document_id, "quiet harbour", k=1)
    assert (passage.page, passage.score) == (4, 1.0)
    assert [passage.text[start:end] for start, end in passage.marks] == ["harbour", "quiet"]


@pytest.mark.parametrize("query", ["heron", "the heron waits for fish in the shallow water and iron rusts " * 3])
def test_the_strip_is_every_span_with_its_best_cosine(make_collection: Make, query: str) -> None:
    collection = make_collection(TEXTS, ("lmk",))
    document_id = paged(collection)
    cells = Searcher(collection).strip(document_id, query)
    record = collection.encoder("lmk")
    assert record is not None
    stored = collection.embedding(record.id, document_id)
    assert stored is not None
    asked = Encoder.load(pooling="lmk").encode_queries([query])[0].evidence
    text = collection.text(document_id)
    starts = [text.index(PAGES[0]), text.index(PAGES[1]), 0, text.index(PAGES[3])]
    covered: dict[int, float] = {}
    for (start, end), vector, scale in zip(stored.spans, stored.evidence, stored.scales, strict=True):
        covered |= dict.fromkeys(range(start, end), min(max(float(scale * (q @ vector)) for q in asked), 1))
    seen: dict[int, float] = {}
    for cell in cells:
        assert 0 <= cell.start < cell.end <= len(PAGES[cell.page - 1])
        seen |= dict.fromkeys(range(starts[cell.page - 1] + cell.start, starts[cell.page - 1] + cell.end), cell.score)
    between = {place for place in covered if text[place].isspace()}  # what stands between pages is on none of them
    assert seen.keys() <= covered.keys()
    assert covered.keys() - seen.keys() <= between
    assert all(score == pytest.approx(covered[place], abs=1e-5) for place, score in seen.items())
    assert [(cell.page, cell.start) for cell in cells] == sorted((cell.page, cell.start) for cell in cells)
    assert {cell.page for cell in cells} == {1, 2, 4}


def test_a_span_over_several_short_pages_is_cut_at_their_borders(make_collection: Make) -> None:
    collection = make_collection(TEXTS, ("lmk",))
    pages = ("one", "two", "", "three", "four")
    cells = Searcher(collection).strip(paged(collection, pages=pages), "two")
    assert [(cell.page, cell.start, cell.end) for cell in cells] == [(1, 0, 3), (2, 0, 3), (4, 0, 5), (5, 0, 4)]
    assert len({cell.score for cell in cells}) == 1


def test_there_is_no_strip_without_evidence(make_collection: Make) -> None:
    collection = make_collection(TEXTS, ("cls",))
    assert Searcher(collection).strip(1, "sea") == ()


@pytest.mark.parametrize("query", ["", " \n"])
def test_an_empty_query_finds_nothing_in_a_document(make_collection: Make, query: str) -> None:
    searcher = Searcher(make_collection(TEXTS))
    assert searcher.find(1, query) == ()
    assert searcher.strip(1, query) == ()


def test_wrong_arguments_are_told(make_collection: Make) -> None:
    searcher = Searcher(make_collection(TEXTS))
    for call in (
        searcher.more_like,
        lambda number: searcher.find(number, "x"),
        lambda number: searcher.strip(number, "x"),
    ):
        with pytest.raises(CollectionError, match=r"There is no document 99 in .*lmk-rag list"):
            call(99)
    with pytest.raises(ValueError, match="k must be at least 1, not 0"):
        searcher.more_like(1, k=0)
    with pytest.raises(CollectionError, match="has no lmk vectors"):
        searcher.find(1, "x", pooling="lmk")
    with pytest.raises(FilterError, match="pages"):
        searcher.search("x", filter={"pages": {">": "many"}})
    collection = searcher.collection
    with collection.write("test"), collection.transaction() as transaction:
        transaction.remove_embedding(1, 1)
    with pytest.raises(CollectionError, match="Document 1 has no mean vector yet: `lmk-rag reindex` makes it"):
        searcher.more_like(1)


def test_a_mapping_is_a_filter(make_collection: Make) -> None:
    hits = Searcher(make_collection(TEXTS)).search("sea", filter={"title": ["Text 1", "Text 3"]}).hits
    assert {hit.id for hit in hits} == {2, 4}


def test_the_last_queries_are_not_embedded_again(make_collection: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    searcher = Searcher(make_collection(TEXTS))
    before = searcher.search("deep sea")
    monkeypatch.setattr(Encoder, "encode_queries", None)
    assert searcher.search("deep sea") == before
    assert searcher.find(2, "deep sea")


def test_real_files_have_exact_offsets(tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from reportlab.pdfgen.canvas import Canvas

    from ingest.pipeline import Options, ingest

    monkeypatch.setenv("LMK_RAG_BASE", str(tiny_bert))
    files = tmp_path / "files"
    files.mkdir()
    canvas = Canvas(str(files / "a.pdf"), invariant=1)
    for number in range(3):
        for line in range(30):
            canvas.drawString(72, 760 - 20 * line, f"Page {number}, line {line}: the heron waits for fish.")
        canvas.showPage()
    canvas.save()
    body = "".join(f"<h2>Part {n}</h2><p>The heron &amp; the <b>fish</b> in é{n}.</p>" for n in range(40))
    (files / "b.html").write_text(f"<html><title>B</title><body>{body}</body></html>", encoding="utf-8")
    (files / "c.txt").write_text("The heron \U0001f600 waits.\r\nFor fish.\f" * 30, encoding="utf-8")
    assert ingest([files], tmp_path / "collection", Options(poolings=("mean",))).indexed == 3
    searcher = Searcher.open(tmp_path / "collection")
    for mode in ("hybrid", "dense", "bm25"):
        hits = searcher.search("heron fish", mode=mode).hits
        assert {hit.kind for hit in hits} == {"pdf", "html", "text"}
        for hit in hits:
            pages = searcher.collection.page_texts(hit.id)
            check_offsets(list(hit.passages), pages)
            check_offsets(list(searcher.find(hit.id, "heron fish", k=9)), pages)
            assert hit.passages
            assert any(passage.marks for passage in hit.passages)
            for passage in hit.passages:
                assert {passage.text[a:b].lower() for a, b in passage.marks} <= {"heron", "fish"}
    searcher.close()
