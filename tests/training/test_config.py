"""Recipes: the one in the repository reads, mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmk_rag.training.cli import train_command
from lmk_rag.training.config import read_recipe

FOLDERS = 'text = "a"\nout = "b"\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["recipe.toml", "gpu.toml"])
def test_recipes_of_the_repository_read(repository: Path, name: str) -> None:
    recipe = read_recipe(repository / "training" / name)

    assert recipe.poolings == ("lmk", "mean", "cls")
    assert recipe.granularities == (32, 64, 128, 256)
    assert recipe.granularity == 32
    assert recipe.window == 512


def test_values_and_defaults(tmp_path: Path) -> None:
    recipe = read_recipe(written(tmp_path, 'text = "a"\nout = "b"\nseed = 7\n[contrastive]\ntokens = [10, 20]\n'))

    assert recipe.text == Path("a")
    assert recipe.seed == 7
    assert recipe.contrastive.tokens == (10, 20)
    assert recipe.contrastive.temperature == 0.03


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('out = "b"', "does not say 'text'"),
        ('text = "a"', "does not say 'out'"),
        (f"{FOLDERS}sede = 1", "unknown key 'sede'"),
        (f"{FOLDERS}[lora]\nranks = 1", r"\[lora\] has an unknown key 'ranks'"),
        (f'{FOLDERS}poolings = ["mcls"]', r"\[poolings\] 0 = 'mcls' is not right"),
        (f'{FOLDERS}poolings = "lmk"', "poolings = 'lmk' is not right"),
        (f"{FOLDERS}poolings = []", "poolings = .* is not right"),
        (f"{FOLDERS}granularities = []", "granularities = .* is not right"),
        (f"{FOLDERS}granularity = 999", "a slice of 999 tokens does not fit a window of 512"),
        (f"{FOLDERS}save_every = 0", "save_every = 0 is not right: input should be greater than 0"),
        (f"{FOLDERS}lora = 3", "lora = 3 is not right"),
        ('text = 5\nout = "b"', "text = 5 is not right"),
        (f"{FOLDERS}[contrastive]\ntokens = 100", r"\[contrastive\] tokens = 100 is not right"),
        (f"{FOLDERS}[contrastive]\ntemperature = 0", r"\[contrastive\] temperature = 0 is not right"),
        (f"{FOLDERS}[contrastive]\npairs = 1", r"\[contrastive\] pairs = 1 is not right"),
        (f"{FOLDERS}[distillation]\nsteps = -8", r"\[distillation\] steps = -8 is not right"),
        (f"{FOLDERS}[sources]\nrfc = -1", r"\[sources\] rfc = -1 is not right"),
        ("text = a", "recipe.toml: Invalid value"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_recipe(written(tmp_path, text))


def test_an_adapter_that_the_recipe_does_not_train_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, 'text = "a"\nout = "b"\npoolings = ["mean"]')

    with pytest.raises(ValueError, match="trains no adapter 'lmk'"):
        train_command(path, ["lmk"])
