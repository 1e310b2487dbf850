"""What tells from a query and its lists how far to trust BM25: the features of the weights that depend on the query."""

import math
from collections.abc import Mapping, Sequence

from indexes.collection import Collection
from lmk_rag.fusion import Lists

_TOP = 10
_MOST_TERMS = 64  # as many as BM25 looks for


def query_features(collection: Collection, terms: Sequence[str], lists: Lists[int]) -> tuple[float, ...]:
    """Compute the features named in :data:`lmk_rag.fusion.FEATURES`, in that order, each in [0, 1].

    Args:
        collection: tells how many documents hold a term.
        terms: the query's words and phrases.
        lists: the scores of bm25 and dense.
    """
    lexical = sorted(lists["bm25"].items(), key=lambda each: (-each[1], each[0]))
    dense = sorted(lists["dense"].items(), key=lambda each: (-each[1], each[0]))
    rarities = [_rarity(count, collection.count()) for count in collection.holding(terms)]
    inside = collection.holding(terms, lexical[0][0]) if lexical else [0] * len(terms)
    return (
        sum(rarities) / len(rarities) if rarities else 0.0,
        min(math.log(1 + len(terms)) / math.log(1 + _MOST_TERMS), 1.0),
        sum(inside) / len(terms) if terms else 0.0,
        _lead(lists["bm25"]),
        len({document for document, _ in lexical[:_TOP]} & {document for document, _ in dense[:_TOP]}) / _TOP,
    )


def _rarity(holding: int, documents: int) -> float:
    """Give 1 for a term that no document holds and 0 for one that all hold, by the logarithm of their share."""
    return math.log((documents + 1) / (min(holding, documents) + 1)) / math.log(documents + 1) if documents else 0.0


def _lead(scores: Mapping[int, float]) -> float:
    """Tell how far the first stands above the second, as a share of its score."""
    first, second = [*sorted(scores.values(), reverse=True)[:2], 0.0, 0.0][:2]
    return (first - second) / first if first > 0 else 0.0
