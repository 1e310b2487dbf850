"""The recipe: one TOML file that says everything a training run depends on."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

POOLINGS = ("lmk", "mean", "cls")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """The adapter: its rank, and ``alpha``, whose quotient by the rank scales what it adds."""

    rank: int = 64
    alpha: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Distillation:
    """Stage 1.

    Attributes:
        steps: optimizer's steps; 0 leaves the stage out.
        texts: windows of text a step.
        short: share of them that are cut to 4 to 64 tokens, so that queries and short documents are learned too.
        learning_rate: the highest; see :func:`lmk_rag.training.run.rate_at`.
        warmup: steps.
    """

    steps: int = 400
    texts: int = 12
    short: float = 0.4
    learning_rate: float = 7e-4
    warmup: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrastive:
    """Stage 2.

    Attributes:
        steps: optimizer's steps; 0 leaves the stage out.
        pairs: query and document pairs a step; each query has the other pairs' documents as negatives.
        neighbours: documents of like subject that are drawn together, so that some negatives are hard.
        tokens: content tokens a document is seen through, one of them drawn for each document.
        temperature: divides the cosines.
        evidence: weight of the loss on the best evidence vector beside the one on the document's vector.
        learning_rate: the highest; see :func:`lmk_rag.training.run.rate_at`.
        warmup: steps.
    """

    steps: int = 120
    pairs: int = 32
    neighbours: int = 4
    tokens: tuple[int, ...] = (480, 960)
    temperature: float = 0.03
    evidence: float = 0.3
    learning_rate: float = 3e-4
    warmup: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A training run.

    Attributes:
        text: folder that ``scripts/build_training_text.py`` filled.
        out: folder for checkpoints, metrics and finished adapters, one subfolder a pooling.
        base: ``default``, a model folder, or a name on the hub.
        poolings: adapters to train, one after the other.
        seed: decides the adapter's first weights and the order of the data, alike for every pooling.
        window: positions the model reads at once.
        granularities: content tokens a slice, one of them drawn for each text.
        granularity: content tokens a slice that the finished adapter is used with.
        sources: weight that documents of a source are drawn with; sources not named have weight 1.
        average: how much of the running average of the weights is kept at a step; the average is the result.
        batch_tokens: positions that are in memory with their gradients at once; what does not fit is read twice.
        save_every: steps between checkpoints.
        device: ``auto``, ``cpu``, ``cuda``, ``mps``.
        dtype: ``bfloat16`` (autocast), ``float32``, or ``auto``: bfloat16 where the hardware computes in it.
    """

    text: Path
    out: Path
    base: str = "default"
    poolings: tuple[str, ...] = POOLINGS
    seed: int = 1
    window: int = 512
    granularities: tuple[int, ...] = (32, 64, 128, 256)
    granularity: int = 32
    sources: dict[str, float] = field(default_factory=dict)
    average: float = 0.98
    batch_tokens: int = 65_536
    save_every: int = 20
    device: str = "auto"
    dtype: str = "auto"
    lora: Lora = Lora()
    distillation: Distillation = Distillation()
    contrastive: Contrastive = Contrastive()


_Section = TypeVar("_Section")


def read_recipe(path: Path) -> Recipe:
    """Read a TOML recipe; relative paths in it are relative to the working folder.

    Raises:
        ValueError: an unknown key, a pooling that has no training, or a missing ``text`` or ``out``.
    """
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    for name, kind in (("lora", Lora), ("distillation", Distillation), ("contrastive", Contrastive)):
        values[name] = _section(kind, values.get(name, {}), f"{path}: [{name}]")
    for name in ("text", "out"):
        if name not in values:
            raise ValueError(f'{path} does not name the folder {name!r}: add {name} = "FOLDER".')
        values[name] = Path(values[name]).expanduser()
    recipe = _section(Recipe, values, str(path))
    unknown = [pooling for pooling in recipe.poolings if pooling not in POOLINGS]
    if unknown:
        raise ValueError(f"{path}: no training for pooling {unknown[0]!r}: choose from {', '.join(POOLINGS)}.")
    return recipe


def _section(kind: type[_Section], values: dict[str, Any], where: str) -> _Section:
    known = {entry.name for entry in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(f"{where}: unknown key {unknown[0]!r}: the keys are {', '.join(sorted(known))}.")
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})
