"""Several ranked lists become one: a weighted sum of standardised scores, or reciprocal rank."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

FUSIONS = ("weighted", "learned", "reciprocal")
"""How lists are joined: by fixed weights, by weights that depend on the query, or by reciprocal rank."""

Key = TypeVar("Key", int, str)
Lists = Mapping[str, Mapping[Key, float]]
"""By name (bm25, dense, evidence), the scores of documents, higher is better."""

WEIGHTS = {"bm25": 1.0, "dense": 0.3, "evidence": 0.3}
"""What each list counts; chosen on development sets, see docs/decisions.md."""
EVIDENCE_SHARE = 0.6
"""What evidence counts beside the documents' vectors where there is no BM25; see docs/decisions.md."""
FEATURES = ("rarity", "length", "coverage", "lead", "agreement")
"""What weights that depend on the query look at, each in [0, 1]:

- rarity: of its terms in the collection, 1 where no document holds them;
- length: logarithm of the number of its terms;
- coverage: share of its terms that the first by BM25 holds;
- lead: how far the first by BM25 stands above the second;
- agreement: share of the first ten by BM25 that are among the first ten by the documents' vectors.
"""
LEARNED = {
    "bm25": (1.193, -0.070, -0.116, 0.386, 0.015, 0.026),
    "dense": (0.261, -0.037, 0.276, -0.087, 0.047, 0.025),
    "evidence": (0.418, 0.070, 0.358, 0.073, 0.129, 0.238),
}
"""A list's weight, and what each of :data:`FEATURES` adds to it: what `benchmarks/fusion.py` fits and prints."""
_SMOOTHING = 60
"""Of reciprocal rank: what is added to each rank, as Cormack, Clarke and Büttcher (2009) chose it."""


def standardise(scores: Sequence[float | None]) -> list[float]:
    """Shift and scale one list's scores to mean 0 and deviation 1 over the candidates.

    Args:
        scores: one a candidate; None where the list does not have it, which counts as the list's lowest score.

    Returns:
        Standardised scores in the same order; all 0 where they do not differ, or where there are none.
    """
    known = [score for score in scores if score is not None]
    if not known:
        return [0.0] * len(scores)
    filled = np.array([min(known) if score is None else score for score in scores])
    deviation = filled.std()
    if deviation < 1e-9:
        return [0.0] * len(scores)
    return [float(value) for value in (filled - filled.mean()) / deviation]


def learned_weights(features: Sequence[float]) -> dict[str, float]:
    """Give each list's weight for a query with these features, in the order of :data:`FEATURES`."""
    return {
        name: first + sum(factor * value for factor, value in zip(factors, features, strict=True))
        for name, (first, *factors) in LEARNED.items()
    }


def fuse(lists: Lists[Key], weights: Mapping[str, float] = WEIGHTS) -> dict[Key, float]:
    """Add up the lists' standardised scores, each with its weight.

    Args:
        lists: what is joined.
        weights: what each list counts.

    Returns:
        A score for each document that is in any list; 0 is the average candidate, there are no bounds.
    """
    candidates = sorted({document for scores in lists.values() for document in scores})
    total = dict.fromkeys(candidates, 0.0)
    for name, scores in lists.items():
        for document, value in zip(candidates, standardise([scores.get(c) for c in candidates]), strict=True):
            total[document] += weights[name] * value
    return total


def without_words(
    dense: Mapping[Key, float], evidence: Mapping[Key, float], share: float = EVIDENCE_SHARE
) -> dict[Key, float]:
    """Average the cosines of documents and of their evidence; a document without evidence keeps its own.

    Args:
        dense: cosines of the documents' vectors.
        evidence: the best cosines of their landmarks.
        share: of the evidence, 0 to 1.
    """
    return {key: (1 - share) * cosine + share * evidence.get(key, cosine) for key, cosine in dense.items()}


def reciprocal(lists: Lists[Key]) -> dict[Key, float]:
    """Add up 1 / (60 + rank) over the lists, ranks counting from 1; documents of one score share the best rank.

    Args:
        lists: what is joined; a score of 0 in ``bm25`` means that a document holds no term, and takes no rank.

    Returns:
        A score for each document that is in any list, at least 0 and at most 3 / 61.
    """
    total = dict.fromkeys(sorted({document for scores in lists.values() for document in scores}), 0.0)
    for name, scores in lists.items():
        ranked = {document: score for document, score in scores.items() if name != "bm25" or score > 0}
        values = np.sort(np.array(list(ranked.values())))
        for document, score in ranked.items():
            better = len(values) - int(np.searchsorted(values, score, side="right"))
            total[document] += 1 / (_SMOOTHING + better + 1)
    return total
