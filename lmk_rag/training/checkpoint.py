"""The state of a run on disk: one safetensors file, replaced in one move, so that a kill leaves a whole one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

STAGES = ("distillation", "contrastive")


@dataclass(slots=True)
class Progress:
    """Where a run stands: the stage's number and the steps of it that are done; tokens read since the start."""

    stage: int = 0
    step: int = 0
    tokens: int = 0


def save(
    path: Path,
    progress: Progress,
    weights: dict[str, nn.Parameter],
    average: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Write weights, running average and the optimizer's moments."""
    from safetensors.torch import save_file

    tensors = {}
    for name, weight in weights.items():
        tensors[f"weight/{name}"] = weight.detach()
        tensors[f"average/{name}"] = average[name]
        for key, value in optimizer.state.get(weight, {}).items():
            tensors[f"optimizer.{key}/{name}"] = value
    about = {"stage": str(progress.stage), "step": str(progress.step), "tokens": str(progress.tokens)}
    part = path.with_suffix(".part")
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, part, metadata=about)
    with part.open("rb+") as written:
        os.fsync(written.fileno())
    part.replace(path)


def load(
    path: Path, weights: dict[str, nn.Parameter], average: dict[str, Tensor], optimizer: torch.optim.Optimizer
) -> Progress:
    """Put a saved state back into the given objects.

    Raises:
        ValueError: the file is of another adapter than ``weights``.
    """
    from safetensors import safe_open

    with safe_open(path, framework="pt") as stored, torch.no_grad():
        names = {name.split("/", 1)[1] for name in stored.keys()}  # noqa: SIM118 (not a mapping)
        shapes = {name: tuple(stored.get_slice(f"weight/{name}").get_shape()) for name in names}
        if shapes != {name: tuple(weight.shape) for name, weight in weights.items()}:
            raise ValueError(f"{path} is of another base or adapter: give the run another folder, or remove it.")
        keys = {name.split("/", 1)[0] for name in stored.keys()} - {"weight", "average"}  # noqa: SIM118
        for name, weight in weights.items():
            weight.copy_(stored.get_tensor(f"weight/{name}"))
            average[name].copy_(stored.get_tensor(f"average/{name}"))
            for key in keys:
                value = stored.get_tensor(f"{key}/{name}")
                moment = key.removeprefix("optimizer.")
                optimizer.state[weight][moment] = value if moment == "step" else value.to(weight.device)
        about = stored.metadata()
    return Progress(stage=int(about["stage"]), step=int(about["step"]), tokens=int(about["tokens"]))
