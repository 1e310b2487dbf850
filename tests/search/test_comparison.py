"""Poolings side by side: what each column holds, and how documents moved, against each search alone."""

from collections.abc import Callable
from typing import cast

import pytest

from indexes.collection import Collection
from indexes.errors import CollectionError
from lmk_rag.comparison import compare
from lmk_rag.search import FoldedHit, Hit, Results, Searcher

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


class Found:
    """A searcher whose hits are given by hand: for each pooling, documents with the copies folded under them."""

    def __init__(self, lacking: tuple[int, ...] = (), **found: list[tuple[int, ...]]) -> None:
        self.found = found
        self.lacking = lacking
        self.collection = self

    def encoder(self, pooling: str) -> "Found | None":
        """Only the mean vectors are incomplete."""
        return self if pooling == "mean" else None

    id = 0

    def missing(self, encoder: int) -> tuple[int, ...]:
        return self.lacking

    def search(self, query: str, k: int, mode: str, pooling: str, **options: object) -> Results:
        hits = [
            Hit(rank, number, "", "", 1.0, "text", 1, (), tuple(FoldedHit(each, "", "", 1.0, 1.0) for each in copies))
            for rank, (number, *copies) in enumerate(self.found[pooling], start=1)
        ]
        return Results(query, mode, pooling, "cosine", tuple(hits))


def test_a_near_copy_counts_as_the_document() -> None:
    searcher = Found(lmk=[(1, 2), (3,)], cls=[(4,), (2, 1)], mean=[(5, 3), (2,)])
    _, *others = compare(cast("Searcher", searcher), "query", ["lmk", "cls", "mean"])
    seen = [[(each.hit.id, each.before, each.moved, each.missing) for each in column.placed] for column in others]
    assert seen == [
        [(4, None, None, ("lmk", "mean")), (2, 1, -1, ())],
        [(5, 2, 1, ("cls",)), (2, 1, -1, ())],
    ]


def test_a_document_without_a_vector_is_not_said_to_rank_low() -> None:
    searcher = Found(lacking=(1,), lmk=[(1,), (2,)], mean=[(3,)])
    first, _ = compare(cast("Searcher", searcher), "query", ["lmk", "mean"])
    assert [(each.hit.id, each.missing) for each in first.placed] == [(1, ()), (2, ("mean",))]
