"""`LMKVectorStore`: what goes in comes out, and it is found by cosine."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

from indexes.errors import FilterError
from lmk_rag.langchain import LMKVectorStore
from tests.langchain.embedders import ALPHABET, Letters, cosines

ODD = [
    "",
    " leading and trailing  \n",
    "line\r\nends\rof all\nkinds\f\v\x85\u2028",
    "NUL \0 inside",
    "half an emoji \ud83d and the other half \ude00",
    "\ud83d\ude00",
    "e\u0301 is not \u00e9",
    "\ufeffmark, \ufffe, \U0010ffff, \u200b",
    "soft hy\u00adphen and liga\ufb01ture",
]
HALVES = "\ud83d" + "\ude00"  # JSON would join them
METADATA: dict[str, Any] = {
    "source": "a.txt",
    "id": "x",
    "page": 3,
    "nothing": None,
    "yes": True,
    "ratio": 1.0,
    "large": 2**70,
    "tags": ["a", ["b", {"c": 1}]],
    "": " \0\ud800\r\n",
}
ABB = [1.0, 2.0] + [0.0] * (len(ALPHABET) - 2)
TEXTS = ["aaab", "abbb", "ccccdd", "abcd", "dddddda", "bbbbb"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LMKVectorStore]:
    store = LMKVectorStore(tmp_path / "store", Letters())
    yield store
    store.collection.close()


@pytest.fixture
def reopen(tmp_path: Path) -> Iterator[Callable[[], LMKVectorStore]]:
    stores = []

    def again() -> LMKVectorStore:
        stores.append(LMKVectorStore(tmp_path / "store", Letters()))
        return stores[-1]

    yield again
    for each in stores:
        each.collection.close()


@pytest.fixture
def filled(store: LMKVectorStore) -> LMKVectorStore:
    store.add_texts(TEXTS, [{"number": number} for number in range(len(TEXTS))], ids=list("012345"))
    return store


# What goes in comes out


def test_odd_texts_and_metadata_come_back_equal(tmp_path: Path) -> None:
    store = LMKVectorStore(tmp_path / "own")
    ids = store.add_texts(ODD, [METADATA] * len(ODD))
    for found in (store.get_by_ids(ids), store.similarity_search("anything", k=len(ODD))):
        assert sorted(each.page_content for each in found) == sorted(ODD)
        assert [repr(each.metadata) for each in found] == [repr(METADATA)] * len(ODD)
    assert [each.page_content for each in store.get_by_ids(ids)] == ODD
    store.collection.close()


def test_a_reopened_store_holds_the_same(filled: LMKVectorStore, reopen: Callable[[], LMKVectorStore]) -> None:
    again = reopen()
    assert again.get_by_ids(["3", "1"]) == filled.get_by_ids(["3", "1"])
    assert again.similarity_search_with_score("abc") == filled.similarity_search_with_score("abc")


def test_ids_are_made_where_they_lack_and_upsert_where_they_do_not(store: LMKVectorStore) -> None:
    first, second = store.add_texts(["aa", "bb"], ids=["one", None])
    assert first == "one"
    assert len(second) == 36
    documents = [Document(id="one", page_content="cc", metadata={"new": 1}), Document(page_content="dd")]
    assert store.add_documents(documents)[0] == "one"
    assert store.collection.count() == 3
    assert store.get_by_ids(["one"]) == [documents[0]]
    assert store.add_documents([documents[0]], ids=["other"]) == ["other"]
    assert store.add_documents([documents[0]], ids=None) == ["one"]


def test_the_last_of_one_id_in_one_call_stays(store: LMKVectorStore) -> None:
    assert store.add_texts(["aa", "bb"], ids=["one", "one"]) == ["one", "one"]
    assert store.similarity_search("aa", k=9) == [Document(id="one", page_content="bb")]


def test_texts_may_be_a_generator(store: LMKVectorStore) -> None:
    ids = store.add_texts(text for text in TEXTS)
    assert [each.page_content for each in store.get_by_ids(ids)] == TEXTS


@pytest.mark.parametrize(
    ("metadatas", "ids", "message"),
    [
        ([{}], None, "2 texts came with 1 metadatas and 2 ids"),
        (None, ["1"], "2 texts came with 2 metadatas and 1 ids"),
        ([{}, {"when": {1, 2}}], ["1", "new"], r"metadata of document 'new'.*'when' is \{1, 2\}"),
        ([{}, {"pair": (1, 2)}], None, "'pair'"),
        ([{}, {"deep": [{1: 2}]}], None, "'deep'"),
        ([{}, {7: "a"}], None, "7 is 'a'"),
        ([{}, {"nan": float("nan")}], None, "'nan'"),
        ([{}, {"halves": HALVES}], None, "halves"),
    ],
)
def test_what_would_not_come_back_is_refused_and_nothing_is_stored(
    filled: LMKVectorStore, metadatas: Any, ids: Any, message: str
) -> None:
    before = filled.collection.generation
    with pytest.raises(ValueError, match=message):
        filled.add_texts(["new", "texts"], metadatas, ids=ids)
    assert filled.collection.generation == before


def test_from_texts_and_from_documents(tmp_path: Path) -> None:
    empty = LMKVectorStore.from_texts([], Letters(), collection=tmp_path / "empty")
    assert empty.similarity_search("a") == []
    assert empty.max_marginal_relevance_search("a") == []
    assert empty.similarity_search_by_vector([1.0]) == []
    assert empty.add_texts([]) == []
    assert empty.collection.encoders() == []  # no dimension is known yet
    assert empty.add_texts(["abc"], ids=["first"]) == ["first"]
    documents = [Document(page_content="aa", id="1", metadata={"a": 1}), Document(page_content="bb")]
    full = LMKVectorStore.from_documents(documents, Letters(), collection=tmp_path / "full")
    assert full.get_by_ids(["1"]) == [documents[0]]
    assert full.similarity_search("bb", k=1)[0].page_content == "bb"
    for each in (empty, full):
        each.collection.close()


# Deleting


def test_delete(filled: LMKVectorStore) -> None:
    assert filled.delete(["0", "0", "nobody"]) is True
    assert filled.get_by_ids(["0", "1"])[0].id == "1"
    assert {each.id for each in filled.similarity_search("a", k=9)} == set("12345")
    assert filled.delete() is True
    assert filled.collection.count() == 0
    assert filled.similarity_search("a") == []


def test_delete_of_all_spares_ingested_files(ingested: Path, folder: Path) -> None:
    store = LMKVectorStore(ingested)
    store.add_texts(["a note"], ids=["note"])
    store.delete()
    assert store.get_by_ids(["note"]) == []
    assert store.collection.count() == 4
    store.delete([str(folder / "iron.txt")])
    assert store.collection.count() == 3
    store.collection.close()


# Searching


def test_scores_are_cosines_whatever_the_vectors_lengths(filled: LMKVectorStore) -> None:
    expected = cosines(Letters(), "abbcc", TEXTS)
    found = filled.similarity_search_with_score("abbcc", k=10)
    best_first = np.argsort(np.negative(expected))
    assert [each.page_content for each, _ in found] == [TEXTS[place] for place in best_first]
    assert [score for _, score in found] == pytest.approx([expected[place] for place in best_first], abs=1e-6)
    assert filled.similarity_search("abbcc", k=2) == [each for each, _ in found[:2]]
    vector = [1000 * number for number in Letters().embed_query("abbcc")]
    assert filled.similarity_search_by_vector(vector, k=3) == [each for each, _ in found[:3]]
    assert filled.similarity_search("abbcc", k=0) == []


def test_relevance_is_the_cosine_and_nothing_below_0(tmp_path: Path) -> None:
    class Signed(Letters):
        def embed_query(self, text: str) -> list[float]:
            return [float(text.count("p") - text.count("m")), float(text.count("o"))]

    store = LMKVectorStore.from_texts(["p", "m", "po", "o"], Signed(), collection=tmp_path / "signed")
    found = {each.page_content: score for each, score in store.similarity_search_with_relevance_scores("pp", k=4)}
    assert found == {"p": 1.0, "po": pytest.approx(0.5**0.5), "o": pytest.approx(0), "m": 0.0}
    raw = {each.page_content: score for each, score in store.similarity_search_with_score("pp", k=4)}
    assert raw["m"] == pytest.approx(-1)
    retriever = store.as_retriever(search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.7})
    assert [each.page_content for each in retriever.invoke("pp")] == ["p", "po"]
    store.collection.close()


def test_marginal_relevance_by_its_definition(filled: LMKVectorStore) -> None:
    vectors = {text: np.array(Letters().embed_query(text)) for text in [*TEXTS, "abb"]}

    def cosine(one: str, other: str) -> float:
        return float(vectors[one] @ vectors[other] / np.linalg.norm(vectors[one]) / np.linalg.norm(vectors[other]))

    def chosen(fetch_k: int, weight: float, k: int) -> list[str]:
        left = sorted(TEXTS, key=lambda text: -cosine("abb", text))[:fetch_k]
        kept: list[str] = [left.pop(0)]
        while left and len(kept) < k:
            worth = [weight * cosine("abb", t) - (1 - weight) * max(cosine(t, done) for done in kept) for t in left]
            kept.append(left.pop(int(np.argmax(worth))))
        return kept

    assert chosen(6, 0.3, 3) != chosen(6, 1.0, 3) != chosen(3, 0.3, 3)
    for fetch_k, weight, k in [(6, 0.3, 3), (6, 1.0, 3), (3, 0.3, 3), (20, 0.5, 10), (2, 0.5, 4)]:
        found = filled.max_marginal_relevance_search("abb", k=k, fetch_k=fetch_k, lambda_mult=weight)
        assert [each.page_content for each in found] == chosen(fetch_k, weight, k)
    first = filled.max_marginal_relevance_search("abb", k=1, filter={"number": {"$gt": 3}})
    assert [each.page_content for each in first] == ["bbbbb"]


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"number": 2}, "2"),
        ({"number": {"$gte": 4}}, "45"),
        ({"number": {">": 1, "<": 4}}, "23"),
        ({"number": [0, 5]}, "05"),
        ({"number": {"$ne": 0}}, "12345"),
        ({"metadata.number": 2}, "2"),
        ({"missing": None}, "012345"),
        ({"missing": 1}, ""),
        ({}, "012345"),
        (None, "012345"),
        ("number>=4", "45"),
        ("characters>4", "245"),
        ("source=langchain", "012345"),
        ("path=3", "3"),
    ],
)
def test_filters(filled: LMKVectorStore, filter: Any, expected: str) -> None:
    found = filled.similarity_search("abcd", k=10, filter=filter)
    assert sorted(str(each.id) for each in found) == list(expected)


def test_a_mapping_means_metadata_whatever_fields_a_collection_has(store: LMKVectorStore) -> None:
    names = ("source", "title", "id", "type", "page", "pages", "added")
    store.add_texts(["a", "b"], [{name: f"{name} a" for name in names}, dict.fromkeys(names, 1)])
    for name in names:
        assert [each.page_content for each in store.similarity_search("a", filter={name: f"{name} a"})] == ["a"]
        assert [each.page_content for each in store.similarity_search("a", filter={name: 1})] == ["b"]


def test_a_mapping_asks_files_for_what_their_documents_show(ingested: Path, folder: Path) -> None:
    store = LMKVectorStore(ingested)
    store.add_texts(["a note"], [{"source": "elsewhere", "type": "markdown"}], ids=["note"])
    everything = store.similarity_search("bread", k=9)
    assert len(everything) == 5
    for each in everything:
        assert store.similarity_search("bread", k=9, filter={"source": each.metadata["source"]}) == [each]
    marked = store.similarity_search("bread", k=9, filter={"type": "markdown"})
    assert {each.id for each in marked} == {"note", str(folder / "bread.md")}
    [bread] = store.similarity_search("bread", filter={"title": "Bread"})
    assert bread.metadata["source"] == bread.id == str(folder / "bread.md")
    assert store.get_by_ids([str(folder / "bread.md")]) == [bread]
    store.collection.close()


@pytest.mark.parametrize("filter", [{"$or": [{"number": 1}, {"number": 2}]}, {5: 1}, len])
def test_what_is_no_filter_of_ours_is_refused(filled: LMKVectorStore, filter: Any) -> None:
    with pytest.raises(FilterError):
        filled.similarity_search("a", filter=filter)


def test_a_filter_that_cannot_be_read_is_an_error(filled: LMKVectorStore) -> None:
    with pytest.raises(FilterError, match=r"number'.*'\$near'"):
        filled.similarity_search("a", filter={"number": {"$near": 1}})
    with pytest.raises(FilterError, match="'nonsense'"):
        filled.similarity_search("a", filter="nonsense")


def test_a_vector_without_direction_is_refused(filled: LMKVectorStore) -> None:
    before = filled.collection.generation
    with pytest.raises(ValueError, match="Vector 1 of 2 has length 0"):
        filled.add_texts(["a", "123"])
    with pytest.raises(ValueError, match="Vector 0 of 1 has length nan"):
        filled.similarity_search_by_vector([float("nan")] * len(ALPHABET))
    assert filled.collection.generation == before


async def test_async_methods_give_the_same(store: LMKVectorStore) -> None:
    # The embedding sleeps, SQLite reads and writes: Blockbuster refuses either in the event loop.
    documents = [Document(page_content=text, id=str(place)) for place, text in enumerate(TEXTS)]
    assert await store.aadd_documents(documents) == list("012345")
    assert await store.aadd_texts(["zz"], [{"z": 1}], ids=["z"]) == ["z"]
    assert [each.page_content for each in await store.aget_by_ids(["1", "z"])] == ["abbb", "zz"]
    near = [each.page_content for each in await store.asimilarity_search("abb", k=2)]
    assert near == ["abbb", "bbbbb"]
    assert [each.page_content for each in await store.asimilarity_search_by_vector(ABB, k=2)] == near
    assert [each.page_content for each, _ in await store.asimilarity_search_with_score("abb", k=2)] == near
    scored = await store.asimilarity_search_with_relevance_scores("abb", k=2)
    assert [score for _, score in scored] == pytest.approx([7 / 50**0.5, 2 / 5**0.5])
    assert [each.id for each in await store.asimilarity_search("abb", filter={"z": 1})] == ["z"]
    assert (await store.amax_marginal_relevance_search("abb", k=1))[0].page_content == "abbb"
    assert (await store.amax_marginal_relevance_search_by_vector(ABB, k=1))[0].page_content == "abbb"
    assert await store.adelete(["z"]) is True
    assert await store.aget_by_ids(["z"]) == []


async def test_async_from_documents(tmp_path: Path) -> None:
    documents = [Document(page_content="aa", id="1")]
    store = await LMKVectorStore.afrom_documents(documents, Letters(), collection=tmp_path / "made")
    assert await store.aget_by_ids(["1"]) == documents
