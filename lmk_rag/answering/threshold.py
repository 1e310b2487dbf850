"""Whether the documents answer a question at all: a measured threshold over what a search found.

The constants are those that `benchmarks/answerability.py` prints; docs/benchmarks.md has the error rates.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmk_rag.answering.extractive import Findings

WITH_VECTORS = {"intercept": -12.78, "around": 9.65, "cosine": 7.78}
"""Weights where the sentences have cosines."""
TERMS_ALONE = {"intercept": -8.69, "share": 2.12, "around": 9.53}
"""Weights where the collection has no vectors of this program's encoders."""


def answerable(findings: "Findings") -> bool:
    """Tell whether a question is more likely answered by what was found than not."""
    return bool(findings.sentences) and probability(findings) >= 0.5


def probability(findings: "Findings") -> float:
    """Estimate how likely the documents answer, in (0, 1); there must be a sentence."""
    weights = WITH_VECTORS if findings.sentences[0].cosine is not None else TERMS_ALONE
    return 1 / (1 + math.exp(-_weighted(features(findings), weights)))


def features(findings: "Findings") -> dict[str, float]:
    """Give what the threshold looks at.

    Returns:
        share: the best share of the question's terms in one sentence and its document's title, rare terms counting
        more, in [0, 1]; around: the same for a passage; cosine: the best of a sentence, in [-1, 1], 0 without vectors.
        All are 0 where nothing was found.
    """
    sentences, hits = findings.sentences, findings.results.hits
    cosines = [each.cosine for each in sentences if each.cosine is not None]
    around = (findings.terms.share(f"{hit.title} {each.text}") for hit in hits for each in findings.passages[hit.id])
    return {
        "share": max((each.share for each in sentences), default=0.0),
        "around": max(around, default=0.0),
        "cosine": max(cosines, default=0.0),
    }


def _weighted(found: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weight * found.get(name, 1.0) for name, weight in weights.items())
