"""Averaged adapters: PEFT merges the average into the weights that lie between those of the two."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from torch import Tensor
from transformers import AutoModel

from lmk_rag.encoding.checkpoints import Checkpoint
from lmk_rag.training.config import Lora, Recipe
from lmk_rag.training.lora import save_adapter, trainable, with_adapter

SCRIPT = Path(__file__).parents[2] / "scripts" / "average_adapters.py"


def made(checkpoint: Checkpoint, recipe: Recipe, rank: int, alpha: int, folder: Path) -> Path:
    """An adapter with random factors; a fresh one adds nothing."""
    recipe = replace(recipe, lora=Lora(rank=rank, alpha=alpha), seed=rank)
    network = with_adapter(checkpoint, recipe, torch.device("cpu"))
    weights = {name: torch.randn_like(weight) * 0.1 for name, weight in trainable(network).items()}
    save_adapter(network, weights, recipe, "lmk", folder)
    return folder


def merged(base: Path, adapter: Path | None) -> dict[str, Tensor]:
    """The base's weights with an adapter merged into them by PEFT."""
    network = AutoModel.from_pretrained(base, dtype=torch.float32)
    if adapter is not None:
        network = PeftModel.from_pretrained(network, str(adapter)).merge_and_unload()
    return dict(network.state_dict())


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # PEFT's own
@pytest.mark.parametrize("from_base", [False, True])
def test_the_weights_lie_between(
    from_base: bool, checkpoint: Checkpoint, recipe: Recipe, tiny_bert: Path, tmp_path: Path
) -> None:
    first = None if from_base else made(checkpoint, recipe, 4, 8, tmp_path / "first")
    second = made(checkpoint, recipe, 2, 2, tmp_path / "second")
    out = tmp_path / "average"

    subprocess.run([sys.executable, SCRIPT, first or "base", second, "--share", "0.75", "--out", out], check=True)

    starts, ends = merged(tiny_bert, first), merged(tiny_bert, second)
    moved = 0
    for name, weight in merged(tiny_bert, out).items():
        torch.testing.assert_close(
            weight, torch.lerp(starts[name].float(), ends[name].float(), 0.75), atol=2e-3, rtol=0
        )
        moved += int(not torch.equal(starts[name], ends[name]))
    assert moved == 12  # six linear layers in each of two blocks
