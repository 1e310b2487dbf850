"""Recipes: the one in the repository reads, mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmk_rag.training.cli import train_command
from lmk_rag.training.config import read_recipe


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
        ('out = "b"', "does not name the folder 'text'"),
        ('text = "a"', "does not name the folder 'out'"),
        ('text = "a"\nout = "b"\nsede = 1', "unknown key 'sede'"),
        ('text = "a"\nout = "b"\n[lora]\nranks = 1', r"\[lora\]: unknown key 'ranks'"),
        ('text = "a"\nout = "b"\npoolings = ["mcls"]', "no training for pooling 'mcls'"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_recipe(written(tmp_path, text))


def test_an_adapter_that_the_recipe_does_not_train_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, 'text = "a"\nout = "b"\npoolings = ["mean"]')

    with pytest.raises(ValueError, match="trains no adapter 'lmk'"):
        train_command(path, ["lmk"])
