"""The recipe: one TOML file that says everything a training run depends on."""

from __future__ import annotations

import tomllib
from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)
from pydantic.dataclasses import dataclass

Pooling = Literal["lmk", "mean", "cls"]
POOLINGS: tuple[Pooling, ...] = ("lmk", "mean", "cls")
Folder = Annotated[Path, AfterValidator(Path.expanduser)]
Share = Annotated[float, Field(ge=0, le=1)]
_EXACT = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True, config=_EXACT)
class Lora:
    """The adapter: its rank, and ``alpha``, whose quotient by the rank scales what it adds."""

    rank: PositiveInt = 64
    alpha: PositiveInt = 64


@dataclass(frozen=True, slots=True, kw_only=True, config=_EXACT)
class Distillation:
    """Stage 1.

    Attributes:
        steps: optimizer's steps; 0 leaves the stage out.
        texts: windows of text a step.
        short: share of them that are cut to 4 to 64 tokens, so that queries and short documents are learned too.
        learning_rate: the highest; see :func:`lmk_rag.training.run.rate_at`.
        warmup: steps.
    """

    steps: NonNegativeInt = 400
    texts: PositiveInt = 12
    short: Share = 0.4
    learning_rate: PositiveFloat = 7e-4
    warmup: NonNegativeInt = 20


@dataclass(frozen=True, slots=True, kw_only=True, config=_EXACT)
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

    steps: NonNegativeInt = 120
    pairs: Annotated[int, Field(ge=2)] = 32
    neighbours: PositiveInt = 4
    tokens: Annotated[tuple[Annotated[int, Field(ge=8)], ...], Field(min_length=1)] = (480, 960)
    temperature: PositiveFloat = 0.03
    evidence: NonNegativeFloat = 0.3
    learning_rate: PositiveFloat = 3e-4
    warmup: NonNegativeInt = 10


@dataclass(frozen=True, slots=True, kw_only=True, config=_EXACT)
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

    text: Folder
    out: Folder
    base: str = "default"
    poolings: Annotated[tuple[Pooling, ...], Field(min_length=1)] = POOLINGS
    seed: NonNegativeInt = 1
    window: PositiveInt = 512
    granularities: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] = (32, 64, 128, 256)
    granularity: PositiveInt = 32
    sources: dict[str, NonNegativeFloat] = field(default_factory=dict)
    average: Annotated[float, Field(ge=0, lt=1)] = 0.98
    batch_tokens: PositiveInt = 65_536
    save_every: PositiveInt = 20
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    lora: Lora = Lora()
    distillation: Distillation = Distillation()
    contrastive: Contrastive = Contrastive()


def read_recipe(path: Path) -> Recipe:
    """Read a TOML recipe; relative paths in it are relative to the working folder.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a key that is missing, unknown or out of its range; one sentence says what to change.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no recipe {path}: give a TOML file such as training/recipe.toml.")
    try:
        recipe = Recipe(**tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        raise ValueError(f"{path}: {_mistake(error)}") from None
    except (ValueError, RuntimeError) as error:  # no TOML, no UTF-8, no such user in ~user
        raise ValueError(f"{path}: {error}.") from None
    longest = max(recipe.granularity, *recipe.granularities)
    if longest + 2 > recipe.window:
        raise ValueError(
            f"{path}: a slice of {longest} tokens does not fit a window of {recipe.window} with its landmark: "
            f"take granularities of {recipe.window - 2} at most."
        )
    return recipe


def _mistake(error: ValidationError) -> str:
    """The first mistake in one sentence: the key as it is written in TOML, its value, what it has to be."""
    first = error.errors()[0]
    *sections, key = [str(part) for part in first["loc"]]
    where = "".join(f"[{name}] " for name in sections)
    if first["type"] == "missing":
        return f"{where}does not say {key!r}: add {key} = VALUE."
    if first["type"] == "unexpected_keyword_argument":
        return f"{where}has an unknown key {key!r}: see lmk_rag/training/config.py for all."
    wanted = first["msg"].replace("tuple", "list")
    return f"{where}{key} = {first['input']!r} is not right: {wanted[0].lower()}{wanted[1:]}."
