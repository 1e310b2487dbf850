"""A run that is stopped and taken up again ends with the parameters of one that was not."""

from __future__ import annotations

import itertools
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from lmk_rag.training.config import Recipe
from lmk_rag.training.run import Run, rate_at, train


def stopping_after(run: Run, steps: int) -> Run:
    """Ask the run to stop once it has done so many steps."""
    done = 0
    step = run._step

    def counted(stage: int, report: object) -> None:
        nonlocal done
        step(stage, None)
        done += 1
        if done == steps:
            run.stop()

    run._step = counted  # type: ignore[method-assign]
    return run


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("stops", [[1], [3], [2, 2], [4, 1]])
def test_resumed_run_ends_where_an_uninterrupted_one_does(recipe: Recipe, tmp_path: Path, stops: list[int]) -> None:
    whole = Run(replace(recipe, out=tmp_path / "whole"), "lmk")
    assert whole.finish()
    broken = replace(recipe, out=tmp_path / "broken")
    for steps in stops:
        assert not stopping_after(Run(broken, "lmk"), steps).finish()
    resumed = Run(broken, "lmk")
    assert resumed.finish()

    for name, weight in whole.weights.items():
        assert torch.equal(weight, resumed.weights[name]), name
        assert torch.equal(whole.average[name], resumed.average[name]), name
    assert whole.progress == resumed.progress
    loss = [(line["stage"], line["step"], line["vector"]) for line in lines(tmp_path / "whole" / "lmk")]
    assert loss == [(line["stage"], line["step"], line["vector"]) for line in lines(tmp_path / "broken" / "lmk")]


def test_a_killed_run_goes_on_from_its_last_checkpoint(recipe: Recipe, tmp_path: Path) -> None:
    whole = Run(replace(recipe, out=tmp_path / "whole"), "lmk")
    whole.finish()
    killed = Run(replace(recipe, out=tmp_path / "killed"), "lmk")
    for _ in range(2):
        killed._step(0, None)
    killed.save()
    killed._step(0, None)  # lost: nothing is written after it
    resumed = Run(replace(recipe, out=tmp_path / "killed"), "lmk")
    assert resumed.progress.step == 2
    resumed.finish()

    assert all(torch.equal(weight, resumed.weights[name]) for name, weight in whole.weights.items())
    steps = [(line["stage"], line["step"]) for line in lines(tmp_path / "killed" / "lmk")]
    assert len(steps) == len(set(steps)), "a step that was done again stands in the metrics once"


def test_a_kill_before_the_first_checkpoint_and_in_the_middle_of_a_line(recipe: Recipe) -> None:
    killed = Run(recipe, "lmk")
    killed._step(0, None)  # lost: there is no checkpoint yet
    with (killed.folder / "metrics.jsonl").open("a") as metrics:
        metrics.write('{"stage": "contras')

    Run(recipe, "lmk").finish()

    found = [(line["stage"], line["step"]) for line in lines(killed.folder)]
    assert found == [(stage, step) for stage in ("distillation", "contrastive") for step in (1, 2, 3)]


def test_a_run_goes_on_longer_but_not_with_another_recipe(recipe: Recipe) -> None:
    recipe = replace(recipe, poolings=("mean",))
    assert train(recipe)
    kept = (recipe.out / "mean" / "recipe.json").read_text()

    with pytest.raises(ValueError, match="began with seed = 1, the recipe says 9"):
        train(replace(recipe, seed=9))
    with pytest.raises(ValueError, match=r"began with contrastive\.pairs = 4, the recipe says 2"):
        train(replace(recipe, contrastive=replace(recipe.contrastive, pairs=2)))
    with pytest.raises(ValueError, match=r"began with distillation\.steps = 3, the recipe says 5"):
        train(replace(recipe, distillation=replace(recipe.distillation, steps=5)))
    assert (recipe.out / "mean" / "recipe.json").read_text() == kept
    assert train(replace(recipe, save_every=1, contrastive=replace(recipe.contrastive, steps=4)))
    assert len(lines(recipe.out / "mean")) == 4


def test_a_window_beyond_the_base_and_sources_without_weight_are_refused(recipe: Recipe) -> None:
    with pytest.raises(ValueError, match="tokens at once and the recipe's window is 9000"):
        train(replace(recipe, window=9000))
    with pytest.raises(ValueError, match="Every source of the training text has the weight 0"):
        train(replace(recipe, sources={"manual": 0}))


def test_embeddings_and_base_weights_stay(recipe: Recipe) -> None:
    run = Run(recipe, "lmk")
    frozen = {
        name: weight.clone() for name, weight in run.setting.student.named_parameters() if name not in run.weights
    }
    assert any("embeddings" in name for name in frozen)
    assert all("lora_" in name for name in run.weights)
    linear = [name for name in frozen if name.endswith("base_layer.weight")]
    assert len(linear) == 12  # query, key, value, output, up and down in each of two layers

    run.finish()

    after = dict(run.setting.student.named_parameters())
    assert all(torch.equal(weight, after[name]) for name, weight in frozen.items())
    assert any(
        not torch.equal(weight, torch.zeros_like(weight)) for name, weight in run.weights.items() if "lora_B" in name
    )


def test_the_running_average_is_the_adapter(recipe: Recipe) -> None:
    run = Run(recipe, "lmk")
    run.finish()

    stored = load_file(run.folder / "adapter" / "adapter_model.safetensors")

    assert len(stored) == len(run.average)
    averages = {name.replace(".default", ""): value for name, value in run.average.items()}
    for name, value in stored.items():
        assert value.dtype == torch.float16
        assert torch.allclose(value.float(), averages[name], atol=1e-3)


def test_mean_leaves_out_the_first_stage(recipe: Recipe) -> None:
    run = Run(recipe, "mean")
    run.finish()

    assert {line["stage"] for line in lines(run.folder)} == {"contrastive"}


def test_metrics_have_a_line_a_step(recipe: Recipe) -> None:
    run = Run(recipe, "lmk")
    run.finish()

    found = lines(run.folder)

    assert [(line["stage"], line["step"]) for line in found] == [
        *(("distillation", step) for step in (1, 2, 3)),
        *(("contrastive", step) for step in (1, 2, 3)),
    ]
    assert all(a["tokens"] < b["tokens"] for a, b in itertools.pairwise(found))
    assert found[0]["rate"] == pytest.approx(recipe.distillation.learning_rate / 2)  # first of two steps of warm-up
    assert found[2]["rate"] == pytest.approx(recipe.distillation.learning_rate)


def test_rate_rises_stays_and_falls() -> None:
    assert [rate_at(step, 4) for step in (0, 1, 3, 4, 15)] == pytest.approx([0.25, 0.5, 1, 1, 1])
    assert rate_at(63, 4) == pytest.approx(0.5)  # four times the sixteen steps of the level part
    assert rate_at(0, 0) == 1


def test_training_lowers_the_loss(recipe: Recipe) -> None:
    longer = replace(
        recipe,
        distillation=replace(recipe.distillation, steps=24, learning_rate=5e-3, texts=4),
        contrastive=replace(recipe.contrastive, steps=0),
    )
    run = Run(longer, "lmk")
    run.finish()
    found = lines(run.folder)

    first, last = (sum(line["slices"] for line in part) / 8 for part in (found[:8], found[-8:]))
    assert last < 0.6 * first


def test_a_signal_stops_after_the_step_and_the_call_can_be_repeated(recipe: Recipe) -> None:
    recipe = replace(recipe, poolings=("mean", "cls"))
    seen: list[tuple[str, int]] = []

    def report(pooling: str, stage: str, done: int, steps: int, losses: dict[str, float]) -> None:
        seen.append((pooling, done))
        if len(seen) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    assert not train(recipe, report)
    assert seen == [("mean", 1), ("mean", 2)]
    assert signal.getsignal(signal.SIGTERM) is before
    assert train(recipe, None)
    assert (recipe.out / "cls" / "adapter" / "lmk_rag.json").is_file()


def test_a_checkpoint_of_another_rank_is_refused(recipe: Recipe) -> None:
    Run(recipe, "lmk").save()
    other = replace(recipe, lora=replace(recipe.lora, rank=2))

    with pytest.raises(ValueError, match="another base or adapter"):
        Run(other, "lmk")
