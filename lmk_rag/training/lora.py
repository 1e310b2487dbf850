"""The base with a fresh adapter on it, and the finished adapter as a folder that the encoder loads."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lmk_rag.encoding.checkpoints import Checkpoint
from lmk_rag.encoding.network import load_network
from lmk_rag.training.config import Recipe


def with_adapter(checkpoint: Checkpoint, recipe: Recipe, device: torch.device) -> nn.Module:
    """Load the base in float32 and put a LoRA adapter on every linear layer; all else, embeddings too, is frozen."""
    from peft import LoraConfig, get_peft_model
    from peft.tuners.tuners_utils import BaseTunerLayer

    network = load_network(checkpoint, device, torch.float32)
    torch.manual_seed(recipe.seed)
    settings = LoraConfig(
        r=recipe.lora.rank, lora_alpha=recipe.lora.alpha, lora_dropout=0.0, target_modules="all-linear"
    )
    with warnings.catch_warnings():
        # PEFT still asks transformers by a name that transformers deprecated
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing.*", category=FutureWarning)
        adapted: nn.Module = get_peft_model(network, settings)
    for module in adapted.modules():
        if isinstance(module, BaseTunerLayer):
            module.cast_input_dtype_enabled = False  # type: ignore[assignment]  # autocast casts already; to float32 and back only takes time
    return adapted.eval()  # no dropout: the two passes over a text have to agree


def trainable(network: nn.Module) -> dict[str, nn.Parameter]:
    """The adapter's parameters by name."""
    return {name: weight for name, weight in network.named_parameters() if weight.requires_grad}


def save_adapter(network: nn.Module, weights: dict[str, Tensor], recipe: Recipe, pooling: str, folder: Path) -> None:
    """Write the adapter in float16 with the JSON that tells the encoder how to use it.

    Args:
        network: what :func:`with_adapter` gave.
        weights: the values to write, by the names of :func:`trainable`.
        recipe: names base, window and granularity.
        pooling: what the adapter was trained for.
        folder: made where missing.
    """
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    state = {
        name: value.to(torch.float16).contiguous()
        for name, value in get_peft_model_state_dict(network, state_dict=weights).items()
    }
    config: Any = network.peft_config["default"]  # type: ignore[index]
    config.inference_mode = True
    config.base_model_name_or_path = None
    config.save_pretrained(str(folder))
    weights_file = folder / "adapter_model.safetensors"
    save_file(state, weights_file, metadata={"format": "pt"})
    weights_file.chmod((folder / "adapter_config.json").stat().st_mode)  # safetensors writes for the owner alone
    about = {"base": recipe.base, "pooling": pooling, "granularity": recipe.granularity, "window": recipe.window}
    (folder / "lmk_rag.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
