"""The losses against plain definitions and against sentence-transformers' own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.functional import normalize

from lmk_rag.training.losses import best_evidence, contrastive_loss, distillation_loss
from lmk_rag.training.reading import Reading

NONE = torch.zeros(0, dtype=torch.int64)


def units(*shape: int, seed: int) -> torch.Tensor:
    return normalize(torch.randn(*shape, generator=torch.Generator().manual_seed(seed)), dim=-1)


def test_contrastive_loss_is_that_of_sentence_transformers_in_both_directions() -> None:
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    queries, documents = units(6, 8, seed=1), units(6, 8, seed=2)
    nothing: Any = None  # neither the model nor labels take part
    theirs = MultipleNegativesRankingLoss(model=nothing, scale=1 / 0.05)
    forward = theirs.compute_loss_from_embeddings([queries, documents], nothing)
    backward = theirs.compute_loss_from_embeddings([documents, queries], nothing)

    ours = contrastive_loss(queries @ documents.T, temperature=0.05)

    assert ours.item() == pytest.approx((forward.item() + backward.item()) / 2, rel=1e-5)


def test_contrastive_loss_by_hand() -> None:
    # one query and one document have nothing to be told from
    assert contrastive_loss(torch.tensor([[0.3]]), 0.1).item() == pytest.approx(0)
    # four equal scores: each choice is one of two, log 2 both ways
    assert contrastive_loss(torch.full((2, 2), 0.7), 0.1).item() == pytest.approx(0.6931472, rel=1e-5)


def test_distillation_loss_by_hand() -> None:
    east, north = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    diagonal = normalize(east + north, dim=0)
    student = Reading(torch.stack([east, east]), torch.stack([east, diagonal]), torch.tensor([0, 1]))
    teacher = Reading(torch.stack([east, north]), torch.stack([east, north]), torch.tensor([0, 1]))

    vectors, slices = distillation_loss(student, teacher)

    assert vectors.item() == pytest.approx(0.5)  # (0 + 1) / 2
    assert slices.item() == pytest.approx((1 - 0.5**0.5) / 2)


def test_distillation_without_evidence_has_no_loss_on_slices() -> None:
    student = Reading(units(2, 4, seed=1), torch.zeros(0, 4), NONE)
    teacher = Reading(units(2, 4, seed=1), units(5, 4, seed=2), torch.tensor([0, 0, 0, 1, 1]))

    vectors, slices = distillation_loss(student, teacher)

    assert vectors.item() == pytest.approx(0, abs=1e-6)
    assert slices.item() == 0


def test_distillation_refuses_other_slices() -> None:
    student = Reading(units(1, 4, seed=1), units(2, 4, seed=2), torch.tensor([0, 0]))
    teacher = Reading(units(1, 4, seed=1), units(3, 4, seed=2), torch.tensor([0, 0, 0]))

    with pytest.raises(ValueError, match="2 slices and the base 3"):
        distillation_loss(student, teacher)


def test_best_evidence_is_the_plain_maximum() -> None:
    queries, evidence = units(3, 4, seed=3), units(6, 4, seed=4)
    owners = torch.tensor([0, 0, 0, 1, 2, 2])
    documents = Reading(units(3, 4, seed=5), evidence, owners)

    scores = best_evidence(queries, documents)

    for query in range(3):
        for document in range(3):
            best = max(float(queries[query] @ evidence[at]) for at in range(6) if owners[at] == document)
            assert scores[query, document].item() == pytest.approx(best, abs=1e-6)


def test_best_evidence_sends_gradients_to_the_best_alone() -> None:
    evidence = torch.tensor([[1.0, 0.0], [0.6, 0.8]], requires_grad=True)
    documents = Reading(torch.zeros(1, 2), evidence, torch.tensor([0, 0]))

    best_evidence(torch.tensor([[1.0, 0.0]]), documents).sum().backward()

    assert evidence.grad is not None
    assert evidence.grad.tolist() == [[1.0, 0.0], [0.0, 0.0]]
