"""What the stages teach: targets against a slow loop, gradients in chunks against gradients at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from lmk_rag.encoding.checkpoints import Checkpoint
from lmk_rag.encoding.encoder import Encoder
from lmk_rag.training.config import Recipe
from lmk_rag.training.lora import save_adapter, trainable
from lmk_rag.training.reading import Piece, lay_out, piece_length, read
from lmk_rag.training.stages import Setting, contrast, distill
from tests.training.conftest import setting_of


def states(folder: str, ids: list[int]) -> Any:
    model = AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).last_hidden_state[0].double()


def unit(vector: Any) -> Any:
    return vector / vector.norm()


def test_targets_are_the_means_of_the_slices_of_the_base(setting: Setting, recipe: Recipe) -> None:
    tokenizer = AutoTokenizer.from_pretrained(recipe.base)
    content = np.arange(20, 30, dtype=np.uint16)
    hidden = states(recipe.base, [tokenizer.cls_token_id, *content.tolist(), tokenizer.sep_token_id])

    windows = setting.windows([Piece(content, 4)], "mean")
    target = setting.read(setting.base, [windows])

    # content tokens stand at 1 to 10: slices of 4, 4 and 2; the vector is the mean over all twelve positions
    slices = [unit(hidden[start:stop].mean(dim=0)) for start, stop in ((1, 5), (5, 9), (9, 11))]
    assert torch.allclose(target.evidence.double(), torch.stack(slices), atol=1e-5)
    assert torch.allclose(target.vectors[0].double(), unit(hidden.mean(dim=0)), atol=1e-5)


def test_student_reads_landmarks_where_the_base_reads_slices(setting: Setting, recipe: Recipe) -> None:
    tokenizer = AutoTokenizer.from_pretrained(recipe.base)
    content = np.arange(20, 30, dtype=np.uint16).tolist()
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    hidden = states(recipe.base, [cls, *content[:4], sep, *content[4:8], sep, *content[8:], sep])

    reading = setting.read(setting.student, [setting.windows([Piece(np.array(content, np.uint16), 4)], "lmk")])

    # a fresh adapter adds nothing, so the student still is the base
    landmarks = hidden[[5, 10, 13]]
    assert torch.allclose(reading.evidence.double(), torch.stack([unit(x) for x in landmarks]), atol=1e-5)
    assert torch.allclose(reading.vectors[0].double(), unit(landmarks.mean(dim=0)), atol=1e-5)


def test_first_step_of_distillation_has_the_loss_of_a_slow_loop(setting: Setting) -> None:
    vector, slices = [], []
    for piece in setting.examples.texts(0):
        with torch.no_grad():
            student = setting.read(setting.student, [setting.windows([piece], "lmk")])
            teacher = setting.read(setting.base, [setting.windows([piece], "mean")])
        vector.append(1 - float(student.vectors[0] @ teacher.vectors[0]))
        slices += [1 - float(a @ b) for a, b in zip(student.evidence, teacher.evidence, strict=True)]

    outcome = distill(setting, 0)

    assert outcome.losses["vector"] == pytest.approx(np.mean(vector), abs=1e-5)
    assert outcome.losses["slices"] == pytest.approx(np.mean(slices), abs=1e-5)


def test_mean_is_its_own_target(recipe: Recipe, checkpoint: Checkpoint) -> None:
    losses = distill(setting_of(recipe, checkpoint, "mean"), 0).losses

    assert losses["vector"] == pytest.approx(0, abs=1e-6)
    assert losses["slices"] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("pooling", ["lmk", "mean", "cls"])
def test_gradients_in_chunks_are_the_gradients_at_once(recipe: Recipe, checkpoint: Checkpoint, pooling: str) -> None:
    found = []
    for budget in (100_000, 120):
        setting = setting_of(replace(recipe, batch_tokens=budget), checkpoint, pooling)
        outcome = contrast(setting, 0)
        gradients = [weight.grad for weight in trainable(setting.student).values()]
        assert all(gradient is not None for gradient in gradients)
        found.append((outcome.losses, torch.cat([g.flatten() for g in gradients if g is not None])))

    (whole_losses, whole), (chunk_losses, chunked) = found
    assert whole.abs().max() > 1e-5
    assert torch.allclose(whole, chunked, atol=1e-6, rtol=1e-4)
    assert whole_losses == pytest.approx(chunk_losses, abs=1e-5)


def test_cls_reads_the_first_piece_alone(setting: Setting) -> None:
    pieces = [Piece(np.arange(20, 30, dtype=np.uint16), 4), Piece(np.arange(40, 50, dtype=np.uint16), 4)]

    assert len(setting.windows(pieces, "cls")) == 1
    assert len(setting.windows(pieces, "lmk")) == 2
    assert len(setting.windows(pieces, "mean")) == 2


def test_longest_piece_fills_one_window(setting: Setting) -> None:
    for granularity in (4, 8, 31):
        length = piece_length(granularity, 64)
        windows = setting.windows([Piece(np.full(length, 20, dtype=np.uint16), granularity)], "lmk")
        assert len(windows) == 1
        assert len(windows[0]) <= 64


def test_reading_keeps_the_order_of_texts(setting: Setting) -> None:
    texts = [[Piece(np.full(length, 20 + at, dtype=np.uint16), 4)] for at, length in enumerate((3, 50, 9, 30))]
    layouts = [lay_out(pieces, "lmk", setting.tokenizer, 64) for pieces in texts]
    together = setting.read(setting.base, layouts)

    for at, layout in enumerate(layouts):
        alone = read(setting.base, [layout], setting.tokenizer.pad)
        assert torch.allclose(together.vectors[at], alone.vectors[0], atol=1e-5)
        assert torch.allclose(together.evidence[together.owners == at], alone.evidence, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # PEFT's, at loading
def test_saved_adapter_is_what_the_encoder_reads(setting: Setting, recipe: Recipe, tmp_path: Any) -> None:
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in trainable(setting.student).values():
            weight.copy_(torch.randn(weight.shape, generator=generator).half().float() * 0.25)
    save_adapter(setting.student, dict(trainable(setting.student)), recipe, "lmk", tmp_path / "adapter")

    encoder = Encoder.load(str(tmp_path / "adapter"), device="cpu", dtype="float32")
    text = "The valve and the gauge and the pump of reel nine"
    embedding = encoder.encode_documents([text])[0]
    ids = encoder.tokenizer.backend.encode(text, add_special_tokens=False).ids
    ours = setting.read(setting.student, [setting.windows([Piece(np.array(ids, np.uint16), 4)], "lmk")])

    assert encoder.pooling == "lmk"
    assert encoder.granularity == 4
    assert np.allclose(embedding.vector, ours.vectors[0].detach().numpy(), atol=1e-4)
    untrained = read(
        setting.base, [setting.windows([Piece(np.array(ids, np.uint16), 4)], "lmk")], setting.tokenizer.pad
    )
    assert (untrained.vectors[0] @ ours.vectors[0]).item() < 0.99
