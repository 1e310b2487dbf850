"""The losses of the two stages, as functions of readings."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lmk_rag.training.reading import Reading


def distillation_loss(student: Reading, teacher: Reading) -> tuple[Tensor, Tensor]:
    """How far the student's vectors point away from the base's.

    Args:
        student: the texts as the student reads them.
        teacher: the same texts as the base reads them, pooled by mean; its evidence is the mean of each slice.

    Returns:
        1 - cosine, averaged over the texts' vectors, and over their slices (0 where the student keeps none).

    Raises:
        ValueError: student and teacher cut the texts into different numbers of slices.
    """
    vectors = (1 - (student.vectors * teacher.vectors).sum(dim=1)).mean()
    if not len(student.evidence):
        return vectors, vectors.new_zeros(())
    if len(student.evidence) != len(teacher.evidence):
        raise ValueError(
            f"The student has {len(student.evidence)} slices and the base {len(teacher.evidence)}: lay both out "
            "with the same granularity."
        )
    return vectors, (1 - (student.evidence * teacher.evidence).sum(dim=1)).mean()


def contrastive_loss(scores: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of each query against all documents and of each document against all queries, averaged.

    Args:
        scores: cosines (n, n), row i and column i being a pair.
        temperature: divides the scores, above 0.
    """
    pairs = torch.arange(len(scores), device=scores.device)
    logits = scores / temperature
    return (cross_entropy(logits, pairs) + cross_entropy(logits.T, pairs)) / 2


def best_evidence(queries: Tensor, documents: Reading) -> Tensor:
    """The highest cosine of each query with any evidence vector of each document.

    Args:
        queries: float32 (q, d), each of length 1.
        documents: n documents, each with at least one evidence vector.

    Returns:
        Scores (q, n).
    """
    cosines = queries @ documents.evidence.T
    owners = documents.owners.expand(len(queries), -1)
    lowest = cosines.new_full((len(queries), len(documents.vectors)), -1.0)
    return lowest.scatter_reduce(1, owners, cosines, "amax", include_self=False)
