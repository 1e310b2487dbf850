"""The two stages: what one step reads and which loss it goes down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lmk_rag.encoding.landmarks import Window
from lmk_rag.encoding.network import TextTokenizer
from lmk_rag.training.config import Recipe
from lmk_rag.training.examples import Examples
from lmk_rag.training.losses import best_evidence, contrastive_loss, distillation_loss
from lmk_rag.training.reading import Piece, Reading, lay_out, read


@dataclass(frozen=True, slots=True)
class Setting:
    """What both stages need.

    Attributes:
        student: the base with the adapter in training.
        base: the untrained base, the teacher of stage 1.
        tokenizer: the base's.
        examples: draws what a step reads.
        recipe: the run's recipe.
        pooling: what is trained: lmk, mean or cls.
        dtype: what matrix products are computed in.
    """

    student: nn.Module
    base: nn.Module
    tokenizer: TextTokenizer
    examples: Examples
    recipe: Recipe
    pooling: str
    dtype: torch.dtype = torch.float32

    def read(self, network: nn.Module, texts: Sequence[Sequence[Window]]) -> Reading:
        """Read texts with the student or the base."""
        return read(network, texts, self.tokenizer.pad, self.dtype)

    def windows(self, pieces: Sequence[Piece], pooling: str) -> list[Window]:
        """Lay a text's pieces out for one pooling."""
        return lay_out(pieces, pooling, self.tokenizer, self.recipe.window)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One step's losses by name, and the positions that the student read."""

    losses: dict[str, float]
    tokens: int


def is_its_own_target(pooling: str) -> bool:
    """Whether stage 1 has nothing to teach: the base pooled by mean is the target of the base pooled by mean."""
    return pooling == "mean"


def distill(setting: Setting, step: int) -> Outcome:
    """One step of stage 1; leaves its gradients in the student.

    The target of the vector is the base's mean over the text, the target of each landmark the mean of the base's
    states over the landmark's slice; the base reads the text without landmarks.
    """
    pieces = setting.examples.texts(step)
    students = [setting.windows([piece], setting.pooling) for piece in pieces]
    teachers = [setting.windows([piece], "mean") for piece in pieces]
    tokens, totals = 0, [0.0, 0.0]
    for chunk in _chunks(students, setting.recipe.batch_tokens):
        with torch.no_grad():
            target = setting.read(setting.base, [teachers[at] for at in chunk])
        reading = setting.read(setting.student, [students[at] for at in chunk])
        share = len(chunk) / len(pieces)
        vector, slices = distillation_loss(reading, target)
        ((vector + slices) * share).backward()
        totals = [totals[0] + vector.item() * share, totals[1] + slices.item() * share]
        tokens += sum(len(window) for at in chunk for window in students[at])
    return Outcome({"vector": totals[0], "slices": totals[1]}, tokens)


def contrast(setting: Setting, step: int) -> Outcome:
    """One step of stage 2; leaves its gradients in the student.

    A step of more positions than ``batch_tokens`` is read in chunks, twice: first without gradients, for the
    loss over the whole step, then chunk by chunk for the gradients (GradCache, arXiv 2101.06983).
    """
    pairs = setting.examples.pairs(step)
    texts = [setting.windows([pair.query], setting.pooling) for pair in pairs]
    texts += [setting.windows(pair.document, setting.pooling) for pair in pairs]
    chunks = _chunks(texts, setting.recipe.batch_tokens)
    if len(chunks) == 1:
        readings = [setting.read(setting.student, texts)]
        loss, losses = _contrast_losses(setting.recipe, _joined(readings, chunks), len(pairs))
        loss.backward()
    else:
        with torch.no_grad():
            readings = [setting.read(setting.student, [texts[at] for at in chunk]) for chunk in chunks]
        leaves = [Reading(r.vectors.requires_grad_(), r.evidence.requires_grad_(), r.owners) for r in readings]
        loss, losses = _contrast_losses(setting.recipe, _joined(leaves, chunks), len(pairs))
        loss.backward()
        for chunk, leaf in zip(chunks, leaves, strict=True):
            again = setting.read(setting.student, [texts[at] for at in chunk])
            surrogate = _dot(again.vectors, leaf.vectors.grad) + _dot(again.evidence, leaf.evidence.grad)
            surrogate.backward()
    return Outcome(losses, sum(len(window) for text in texts for window in text))


def _contrast_losses(recipe: Recipe, reading: Reading, pairs: int) -> tuple[Tensor, dict[str, float]]:
    settings = recipe.contrastive
    queries, documents = reading.vectors[:pairs], reading.vectors[pairs:]
    scores = queries @ documents.T
    vector = contrastive_loss(scores, settings.temperature)
    losses = {"vector": vector.item()}
    hits = (scores.argmax(dim=1) == torch.arange(pairs, device=scores.device)).float().mean()
    total = vector
    of_documents = reading.owners >= pairs
    if settings.evidence and bool(of_documents.any()):
        kept = Reading(documents, reading.evidence[of_documents], reading.owners[of_documents] - pairs)
        evidence = contrastive_loss(best_evidence(queries, kept), settings.temperature)
        losses["evidence"] = evidence.item()
        total = total + settings.evidence * evidence
    return total, losses | {"first": hits.item()}


def _joined(readings: Sequence[Reading], chunks: Sequence[Sequence[int]]) -> Reading:
    """The readings of all chunks as one; chunks are consecutive texts."""
    starts = [chunk[0] for chunk in chunks]
    return Reading(
        torch.cat([reading.vectors for reading in readings]),
        torch.cat([reading.evidence for reading in readings]),
        torch.cat([reading.owners + start for reading, start in zip(readings, starts, strict=True)]),
    )


def _chunks(texts: Sequence[Sequence[Window]], budget: int) -> list[list[int]]:
    """Consecutive texts by their positions: no chunk over ``budget`` unless one text alone is."""
    chunks: list[list[int]] = [[]]
    used = 0
    for at, text in enumerate(texts):
        size = sum(len(window) for window in text)
        if chunks[-1] and used + size > budget:
            chunks.append([])
            used = 0
        chunks[-1].append(at)
        used += size
    return chunks


def _dot(values: Tensor, gradient: Tensor | None) -> Tensor:
    return values.new_zeros(()) if gradient is None else (values * gradient).sum()
