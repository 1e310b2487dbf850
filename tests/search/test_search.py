"""Search: modes, fingerprints, what a hit holds; the right order comes from brute force."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexes.collection import Collection
from indexes.errors import CollectionError, FilterError, FingerprintError
from indexes.filters import Filter
from indexes.records import Document
from lmk_rag.encoding.encoder import Encoder
from lmk_rag.indexing import Indexer, Settings, load_encoder
from lmk_rag.search import Searcher

Make = Callable[..., Collection]
TEXTS = [
    "apples and pears grow on trees",
    "the sea is deep and blue",
    "stars shine at night over the sea",
    "rust eats iron",
]
pytestmark = pytest.mark.filterwarnings("ignore:default was trained for mean pooling")


def brute_force(texts: list[str], query: str, pooling: str) -> list[tuple[int, float]]:
    encoder = Encoder.load(pooling=pooling)
    vectors = np.stack([each.vector for each in encoder.encode_documents(texts)])
    cosines = vectors @ encoder.encode_queries([query])[0].vector
    return [(int(each), float(cosines[each])) for each in np.argsort(-cosines, kind="stable")]


@pytest.mark.parametrize("pooling", ["mean", "lmk", "cls"])
def test_dense_search_is_the_order_of_cosines(make_collection: Make, pooling: str) -> None:
    searcher = Searcher(make_collection(TEXTS, (pooling,)))
    results = searcher.search("pears on the tree", mode="dense", evidence=False)
    expected = brute_force(TEXTS, "pears on the tree", pooling)
    assert [hit.path for hit in results.hits] == [f"/{place}.txt" for place, _ in expected]
    assert [hit.score for hit in results.hits] == pytest.approx([cosine for _, cosine in expected], abs=1e-3)
    assert (results.score_kind, results.pooling) == ("cosine", pooling)


def test_dense_with_evidence_is_the_mean_of_both_cosines(make_collection: Make) -> None:
    collection = make_collection(TEXTS, ("lmk",))
    encoder = Encoder.load(pooling="lmk")
    asked = encoder.encode_queries(["deep sea"])[0]
    expected = {}
    for place, made in enumerate(encoder.encode_documents(TEXTS)):
        best = float(np.mean([max(float(q @ e) for e in made.evidence) for q in asked.evidence]))
        expected[f"/{place}.txt"] = 0.4 * float(made.vector @ asked.vector) + 0.6 * best
    hits = Searcher(collection).search("deep sea", mode="dense").hits
    assert {hit.path: hit.score for hit in hits} == pytest.approx(expected, abs=0.01)


def test_bm25_needs_no_encoder(make_collection: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    searcher = Searcher(make_collection(TEXTS))
    monkeypatch.setattr(Encoder, "load", None)
    results = searcher.search("sea", mode="bm25")
    assert {hit.path for hit in results.hits} == {"/1.txt", "/2.txt"}
    assert (results.score_kind, results.pooling) == ("bm25", None)
    assert all("sea" in hit.passages[0].text for hit in results.hits)


def test_hybrid_finds_what_only_one_side_knows(make_collection: Make) -> None:
    hits = Searcher(make_collection(TEXTS)).search("iron", k=4).hits
    assert hits[0].path == "/3.txt"
    assert [hit.rank for hit in hits] == [1, 2, 3, 4]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_word_that_one_document_alone_holds_decides(make_collection: Make) -> None:
    # The others score 0 by BM25; were they given the list's lowest score, which is this document's, it would not count.
    texts = [*TEXTS, "rust eats iron and zirconium"]
    assert Searcher(make_collection(texts)).search("zirconium", k=1).hits[0].path == "/4.txt"


def test_a_hit_holds_the_document_and_exact_passages(make_collection: Make) -> None:
    collection = make_collection(TEXTS)
    hit = Searcher(collection).search("iron rust", k=1).hits[0]
    assert (hit.title, hit.kind, hit.pages) == ("Text 3", "text", 1)
    assert collection.page_texts(hit.id)[0][hit.passages[0].start : hit.passages[0].end] == hit.passages[0].text
    assert hit.passages[0].text == "rust eats iron"


@pytest.mark.parametrize("mode", ["hybrid", "dense", "bm25"])
def test_k_hits_come_back_whenever_k_match_the_filter(make_collection: Make, mode: str) -> None:
    collection = make_collection([f"sea number {n}" for n in range(150)])
    with collection.write("test"), collection.transaction() as transaction:
        for number in (3, 77, 149):
            found = collection.find(f"/{number}.txt")
            assert found is not None
            stored = collection.embedding(1, found.id)
            assert stored is not None
            document = Document(external_id=f"/{number}.txt", pages=(f"sea number {number}",), kind="pdf")
            transaction.put(document, {1: stored})
    hits = Searcher(collection).search("sea", k=3, mode=mode, filter=Filter.parse("type=pdf")).hits
    assert {hit.path for hit in hits} == {"/3.txt", "/77.txt", "/149.txt"}


@pytest.mark.parametrize("query", ["", "  \n"])
def test_an_empty_query_finds_nothing(make_collection: Make, query: str) -> None:
    results = Searcher(make_collection(TEXTS)).search(query)
    assert results.hits == ()
    assert results.notes == ("The query is empty.",)


@pytest.mark.parametrize(
    "query", ['"', "AND OR NOT", "a* NEAR(b)", "col:x -y ^z", "\x00", "\ud800", "((((", "é" * 5000]
)
@pytest.mark.parametrize("mode", ["hybrid", "dense", "bm25"])
def test_no_query_raises(make_collection: Make, query: str, mode: str) -> None:
    Searcher(make_collection(TEXTS)).search(query, mode=mode)


def test_a_long_query_is_read_over_all_its_windows(make_collection: Make) -> None:
    text = " ".join(TEXTS * 20)
    assert Searcher(make_collection([text, *TEXTS])).search(text, k=1).hits[0].path == "/0.txt"


def test_wrong_arguments_are_told(make_collection: Make) -> None:
    searcher = Searcher(make_collection(TEXTS))
    with pytest.raises(ValueError, match="k must be at least 1, not 0"):
        searcher.search("x", k=0)
    with pytest.raises(ValueError, match="Mode 'fuzzy' is not known"):
        searcher.search("x", mode="fuzzy")
    with pytest.raises(CollectionError, match=r"has no lmk vectors \(it has mean\)"):
        searcher.search("x", pooling="lmk")


@pytest.mark.parametrize("k", [2.5, 2.0, True, "3", None, float("nan")])
def test_k_is_a_whole_number(make_collection: Make, k: Any) -> None:
    searcher = Searcher(make_collection(TEXTS))
    for call in (
        lambda: searcher.search("sea", k=k),
        lambda: searcher.rank("sea", k=k),
        lambda: searcher.more_like(1, k=k),
        lambda: searcher.find(2, "sea", k=k),
    ):
        with pytest.raises(ValueError, match=f"^k must be a whole number, not {k!r}\\.$"):
            call()


@pytest.mark.parametrize("k", [2**31, 2**63, 10**30, np.int64(200)])
def test_k_may_be_huge(make_collection: Make, k: int) -> None:
    searcher = Searcher(make_collection(TEXTS, ("lmk",)))
    for mode in ("hybrid", "dense", "bm25"):
        assert searcher.search("sea", k=k, mode=mode) == searcher.search("sea", k=100, mode=mode)
        assert searcher.rank("sea", k=k, mode=mode).best() == searcher.rank("sea", mode=mode).best()
    assert searcher.more_like(1, k=k) == searcher.more_like(1, k=100)
    assert searcher.find(2, "sea", k=k) == searcher.find(2, "sea", k=100)


def test_a_filter_may_be_an_expression(make_collection: Make) -> None:
    searcher = Searcher(make_collection(TEXTS))
    assert {hit.id for hit in searcher.search("sea", filter="title~*[13]").hits} == {2, 4}
    assert searcher.rank("sea", filter="id=3").scores.keys() == {3}
    assert [hit.id for hit in searcher.more_like(1, filter="id=4").hits] == [4]


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        ("nonsense", "'nonsense' is not FIELD OPERATOR VALUE"),
        ("added>2026-13-45", "no such date"),
        (["type=text", "id=3"], r"not of type list: write for example 'type=pdf' or .* with Filter\.all$"),
        (3, "not of type int: write"),
        ({"$or": [{"id": 1}]}, "'\\$or' where a field belongs"),
    ],
)
def test_what_is_no_filter_is_refused_in_a_sentence(make_collection: Make, filter: Any, message: str) -> None:
    searcher = Searcher(make_collection(TEXTS))
    for call in (searcher.search, searcher.rank):
        with pytest.raises(FilterError, match=message):
            call("sea", filter=filter)
    with pytest.raises(FilterError, match=message):
        searcher.more_like(1, filter=filter)


def test_lmk_is_searched_where_it_is_indexed_else_the_first(make_collection: Make) -> None:
    assert Searcher(make_collection(TEXTS, ("cls", "lmk"))).search("sea").pooling == "lmk"
    assert Searcher(make_collection(TEXTS, ("cls", "mean"))).search("sea").pooling == "cls"
    assert Searcher(make_collection(TEXTS, ("cls", "mean"))).search("sea", pooling="mean").pooling == "mean"


def test_a_pooling_that_lacks_vectors_is_not_the_default_and_says_so(make_collection: Make) -> None:
    collection = make_collection(TEXTS, ("mean", "lmk"))
    record = collection.encoder("lmk")
    assert record is not None
    with collection.write("test"), collection.transaction() as transaction:
        transaction.remove_embedding(1, record.id)
    assert Searcher(collection).search("sea").pooling == "mean"
    assert "No lmk vector yet for 1 document:" in Searcher(collection).search("sea", pooling="lmk").notes[0]


def test_another_model_is_refused_with_both_values(make_collection: Make, tmp_path: Path, tiny_bert: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    collection = make_collection(TEXTS)
    model = AutoModel.from_pretrained(tiny_bert)
    model.embeddings.word_embeddings.weight.data += 1
    model.save_pretrained(tmp_path / "other")
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path / "other")
    with pytest.raises(
        FingerprintError, match=r"were made with base \w{12}…, and this encoder has base \w{12}…: .*reindex"
    ):
        load_encoder(collection, "mean", Settings(model=str(tmp_path / "other")))
    with pytest.raises(FingerprintError, match="made with granularity 32, and this encoder has granularity 16"):
        load_encoder(collection, "mean", Settings(granularity=16))


def test_the_same_model_under_another_path_is_the_same(make_collection: Make, tiny_bert: Path) -> None:
    assert load_encoder(make_collection(TEXTS), "mean", Settings(model=str(tiny_bert))).pooling == "mean"


def test_settings_of_the_collection_are_taken_up_again(make_collection: Make) -> None:
    collection = make_collection([], ())
    with collection.write("test"):
        Indexer(collection, [Encoder.load(pooling="lmk", granularity=16, max_tokens=50)])
    encoder = load_encoder(collection, "lmk", Settings())
    assert (encoder.granularity, encoder.max_tokens) == (16, 50)


def test_a_collection_of_foreign_vectors_is_searched_by_bm25_and_says_so(make_collection: Make) -> None:
    collection = make_collection([], ())
    with collection.write("test"), collection.transaction() as transaction:
        transaction.add_encoder("foreign", {"class": "FakeEmbeddings"}, 8)
        transaction.put(Document(external_id="a", pages=("the sea",), source="langchain"), {})
    results = Searcher(collection).search("sea")
    assert [hit.path for hit in results.hits] == ["a"]
    assert results.mode == "bm25"
    assert "BM25 alone" in results.notes[0]
