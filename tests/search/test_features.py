"""The features of weights that depend on the query, by hand, and the fusions through the search."""

import math
from collections.abc import Callable

import pytest

from indexes.collection import Collection
from lmk_rag import fusion
from lmk_rag.fusion import fuse, reciprocal
from lmk_rag.query_features import query_features
from lmk_rag.search import FUSIONS, Searcher

Make = Callable[..., Collection]
TEXTS = ["red apple", "red pear", "red plum tart", "green plum"]


def test_features_by_hand(make_collection: Make) -> None:
    collection = make_collection(TEXTS)
    lists = {"bm25": {1: 4.0, 2: 1.0, 3: 0.5, 4: 0.0}, "dense": {1: 0.9, 3: 0.8, 4: 0.3}}
    found = query_features(collection, ["red", "apple", "fig"], lists)
    rarity = [math.log(5 / 4), math.log(5 / 2), math.log(5 / 1)]  # held by 3, 1 and none of 4
    assert found == pytest.approx(
        (sum(rarity) / 3 / math.log(5), math.log(4) / math.log(65), 2 / 3, (4 - 1) / 4, 3 / 10)
    )


def test_features_of_nothing(make_collection: Make) -> None:
    assert query_features(make_collection(TEXTS), [], {"bm25": {}, "dense": {}}) == (0, 0, 0, 0, 0)
    empty = make_collection([])
    assert all(0 <= each <= 1 for each in query_features(empty, ["red"], {"bm25": {}, "dense": {}}))


def test_each_fusion_is_what_the_search_ranks_by(make_collection: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    searcher = Searcher(make_collection(TEXTS))
    lists = searcher.rank("red plum").lists
    assert searcher.rank("red plum").scores == fuse(lists)
    assert searcher.rank("red plum", fusion="reciprocal").scores == reciprocal(lists)
    monkeypatch.setattr(fusion, "LEARNED", {name: (float(name == "dense"),) + (0.0,) * 5 for name in fusion.LEARNED})
    learned = searcher.rank("red plum", fusion="learned")
    assert len(learned.features) == len(fusion.FEATURES)
    assert [document for document, _ in learned.best()] == sorted(
        lists["dense"], key=lambda document: -lists["dense"][document]
    )


@pytest.mark.parametrize("name", FUSIONS)
def test_any_query_can_be_asked_by_any_fusion(make_collection: Make, name: str) -> None:
    searcher = Searcher(make_collection(TEXTS))
    for query in ("red plum", "xyzzy", "?!", "the of", '"', "plum " * 3000):
        assert len(searcher.search(query, fusion=name).hits) == 4


def test_an_unknown_fusion_is_told(make_collection: Make) -> None:
    with pytest.raises(ValueError, match="Fusion 'magic' is not known: choose weighted, learned, reciprocal"):
        Searcher(make_collection(TEXTS)).search("x", fusion="magic")
