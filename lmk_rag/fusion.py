"""Several ranked lists become one: a weighted sum of scores that are standardised query by query."""

from collections.abc import Mapping, Sequence

import numpy as np

WEIGHTS = {"bm25": 1.0, "dense": 0.5, "evidence": 0.5}
"""What each list counts; from the trial of docs/decisions.md, where reciprocal rank lost what BM25 knows."""


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


def fuse(lists: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """Add up the lists' standardised scores, each with its weight of :data:`WEIGHTS`.

    Args:
        lists: by name, the scores of documents, higher is better.

    Returns:
        A score for each document that is in any list; 0 is the average candidate, there are no bounds.
    """
    candidates = sorted({document for scores in lists.values() for document in scores})
    total = dict.fromkeys(candidates, 0.0)
    for name, scores in lists.items():
        for document, value in zip(candidates, standardise([scores.get(c) for c in candidates]), strict=True):
            total[document] += WEIGHTS[name] * value
    return total
