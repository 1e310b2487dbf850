"""Whether the documents answer a question at all: a measured threshold over what a search found.

The constants are those that `benchmarks/answerability.py` prints; docs/benchmarks.md has the error rates.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lmk_rag.answering.extractive import Findings

WITH_VECTORS = {"intercept": -10.72, "around": 6.04, "cosine": 6.57, "margin": 7.51}
"""Weights where the sentences have cosines."""
TERMS_ALONE = {"intercept": -5.74, "share": 0.96, "around": 7.50}
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
        share: the best share of the question's terms in one sentence, rare terms counting more, in [0, 1];
        around: the same for a passage; cosine: the best of a sentence, in [-1, 1]; margin: how far it stands above
        the sentences' median, in [0, 2]. The last two are 0 without vectors; all are where nothing was found.
    """
    sentences, hits = findings.sentences, findings.results.hits
    cosines = [each.cosine for each in sentences if each.cosine is not None]
    return {
        "share": max((each.share for each in sentences), default=0.0),
        "around": max((findings.terms.share(passage.text) for hit in hits for passage in hit.passages), default=0.0),
        "cosine": max(cosines, default=0.0),
        "margin": max(cosines) - float(np.median(cosines)) if cosines else 0.0,
    }


def _weighted(found: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weight * found.get(name, 1.0) for name, weight in weights.items())
