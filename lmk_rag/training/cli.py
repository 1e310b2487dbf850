"""``lmk-rag train``: read the recipe, train, show a progress bar."""

from __future__ import annotations

from pathlib import Path


def train_command(config: Path, poolings: list[str] | None = None, quiet: bool = False) -> bool:
    """Train the adapters that a recipe names; run again with the same recipe, it goes on where it stopped.

    Args:
        config: the recipe, a TOML file (see ``training/recipe.toml``).
        poolings: only these of the recipe's adapters.
        quiet: no progress bar.

    Returns:
        Whether the end of the recipe was reached.

    Raises:
        ValueError: the recipe is not right; one sentence says what to change.
    """
    from dataclasses import replace

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from lmk_rag.training.config import read_recipe
    from lmk_rag.training.run import train

    recipe = read_recipe(config)
    if poolings:
        unknown = sorted(set(poolings) - set(recipe.poolings))
        if unknown:
            raise ValueError(f"{config} trains no adapter {unknown[0]!r}: choose from {', '.join(recipe.poolings)}.")
        recipe = replace(recipe, poolings=tuple(name for name in recipe.poolings if name in poolings))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as bar:
        task = bar.add_task("loading", total=None)

        def report(pooling: str, stage: str, done: int, steps: int, losses: dict[str, float]) -> None:
            numbers = " ".join(f"{name} {value:.3f}" for name, value in losses.items())
            bar.update(task, description=f"{pooling}, {stage}: {numbers}", completed=done, total=steps)

        return train(recipe, report)
