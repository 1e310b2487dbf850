"""Poolings side by side: what each column holds, and how documents moved, against each search alone."""

from collections.abc import Callable

import pytest

from indexes.collection import Collection
from indexes.errors import CollectionError
from lmk_rag.comparison import compare
from lmk_rag.search import Searcher

pytestmark = pytest.mark.filterwarnings("ignore::lmk_rag.encoding.base_model.ModelWarning")
TEXTS = [f"{word} " * 30 for word in ("whales", "iron", "bread", "stars", "moss", "glass", "rope", "salt")]


def test_columns_are_the_searches_and_moves_their_differences(make_collection: Callable[..., Collection]) -> None:
    searcher = Searcher(make_collection(TEXTS, ("mean", "cls")))
    columns = compare(searcher, "whales and salt", ["mean", "cls", "bm25"], k=3)
    assert [column.name for column in columns] == ["mean", "cls", "bm25"]
    alone = {
        name: [hit.id for hit in searcher.search("whales and salt", 3, "dense", name, evidence=False).hits]
        for name in ("mean", "cls")
    }
    alone["bm25"] = [hit.id for hit in searcher.search("whales and salt", 3, "bm25").hits]
    for column in columns:
        assert [each.hit.id for each in column.placed] == alone[column.name]
        for each in column.placed:
            before = alone["mean"].index(each.hit.id) + 1 if each.hit.id in alone["mean"] else None
            assert each.before == before
            assert each.moved == (None if before is None else before - each.hit.rank)
            assert each.missing == tuple(name for name in alone if each.hit.id not in alone[name])
    assert all(each.moved == 0 for each in columns[0].placed)
    assert columns[2].score_kind == "bm25"


def test_a_pooling_that_is_not_indexed_is_an_error(make_collection: Callable[..., Collection]) -> None:
    with pytest.raises(CollectionError, match="has no lmk vectors"):
        compare(Searcher(make_collection(TEXTS)), "whales", ["mean", "lmk"])
