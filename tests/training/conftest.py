"""A small corpus of made-up manuals and a recipe that trains a tiny BERT in a second."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lmk_rag.encoding.checkpoints import Checkpoint
from lmk_rag.encoding.network import load_network, load_tokenizer
from lmk_rag.evaluation.sources.rfc import Section
from lmk_rag.training.config import Contrastive, Distillation, Lora, Recipe
from lmk_rag.training.corpus import Corpus, Text, write
from lmk_rag.training.examples import Examples
from lmk_rag.training.lora import with_adapter
from lmk_rag.training.stages import Setting

WORDS = ["tape", "reel", "spool", "valve", "gauge", "lever", "pump", "crank", "wheel", "shaft", "brake", "clamp"]


def manual(number: int) -> Text:
    """A document of three sections of short sentences."""
    rng = random.Random(number)
    sections = tuple(
        Section(
            heading=f"Part {part} of {number}",
            text=" ".join(" ".join(rng.choices(WORDS, k=4)) + " ." for _ in range(rng.randint(4, 12))),
        )
        for part in "abc"
    )
    abstract = " ".join(rng.choices(WORDS, k=12))
    return Text(id=f"m{number}", source="manual", title=f"Manual {number}", abstract=abstract, sections=sections)


@pytest.fixture(scope="session")
def text_folder(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    write(folder, [manual(number) for number in range(12)], tiny_bert / "tokenizer.json", least=8)
    return folder


@pytest.fixture
def recipe(text_folder: Path, tiny_bert: Path, tmp_path: Path) -> Recipe:
    return Recipe(
        text=text_folder,
        out=tmp_path / "runs",
        base=str(tiny_bert),
        window=64,
        granularities=(4, 8),
        granularity=4,
        save_every=2,
        device="cpu",
        dtype="float32",
        lora=Lora(rank=4, alpha=4),
        distillation=Distillation(steps=3, texts=3, warmup=2),
        contrastive=Contrastive(steps=3, pairs=4, neighbours=2, tokens=(24, 96), warmup=2),
    )


@pytest.fixture
def checkpoint(tiny_bert: Path, recipe: Recipe) -> Checkpoint:
    return Checkpoint(model=str(tiny_bert), base=str(tiny_bert), pooling="mean", window=recipe.window)


def setting_of(recipe: Recipe, checkpoint: Checkpoint, pooling: str = "lmk") -> Setting:
    """The parts of a run, put together by hand."""
    cpu = torch.device("cpu")
    tokenizer = load_tokenizer(checkpoint)
    return Setting(
        student=with_adapter(checkpoint, recipe, cpu),
        base=load_network(checkpoint, cpu, torch.float32),
        tokenizer=tokenizer,
        examples=Examples(Corpus(recipe.text), recipe, tokenizer),
        recipe=recipe,
        pooling=pooling,
    )


@pytest.fixture
def setting(recipe: Recipe, checkpoint: Checkpoint) -> Setting:
    return setting_of(replace(recipe), checkpoint)
