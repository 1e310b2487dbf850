"""The loop: stages, optimizer, running average, checkpoints, metrics; stops and goes on at any step."""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from lmk_rag.encoding.base_model import base_model
from lmk_rag.encoding.checkpoints import Checkpoint
from lmk_rag.encoding.network import load_network, load_tokenizer, pick_device, pick_dtype, positions
from lmk_rag.training import checkpoint as checkpoints
from lmk_rag.training.checkpoint import STAGES, Progress
from lmk_rag.training.config import Recipe
from lmk_rag.training.corpus import Corpus
from lmk_rag.training.examples import Examples
from lmk_rag.training.lora import save_adapter, trainable, with_adapter
from lmk_rag.training.openings import openings
from lmk_rag.training.stages import Setting, contrast, distill, is_its_own_target

Report = Callable[[str, str, int, int, dict[str, float]], None]
"""Called after each step: pooling, stage, steps done, steps of the stage, losses."""
_STATE, _RECIPE = "checkpoint.safetensors", "recipe.json"


class Run:
    """The training of one adapter in ``recipe.out / pooling``; make it again to take it up where it stopped."""

    def __init__(self, recipe: Recipe, pooling: str, setting: Setting | None = None) -> None:
        """Load base, text and the last checkpoint, if there is one.

        Args:
            recipe: what to do.
            pooling: lmk, mean or cls.
            setting: ready-made parts, for tests; by default they are loaded as the recipe says.
        """
        self.recipe = recipe
        self.folder = recipe.out / pooling
        self.folder.mkdir(parents=True, exist_ok=True)
        self.setting = setting or _load(recipe, pooling)
        self.weights = trainable(self.setting.student)
        self.average = {name: weight.detach().clone() for name, weight in self.weights.items()}
        self.progress = Progress()
        self._optimizer = self._fresh_optimizer()
        self._stop = False
        if self._state.exists():
            self.progress = checkpoints.load(self._state, self.weights, self.average, self._optimizer)
        self._forget_lost_steps()

    def _forget_lost_steps(self) -> None:
        """Take the steps that were done after the checkpoint, and will be done again, out of the metrics.

        So is a last line that a kill or a power cut has left unfinished.
        """
        metrics = self.folder / "metrics.jsonl"
        if metrics.exists():
            done = (self.progress.stage, self.progress.step)
            lines = metrics.read_text(encoding="utf-8").split("\n")[:-1]
            kept = [line for line in lines if (STAGES.index((told := json.loads(line))["stage"]), told["step"]) <= done]
            metrics.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")

    @property
    def _state(self) -> Path:
        return self.folder / _STATE

    def finish(self, report: Report | None = None) -> bool:
        """Train to the end of the recipe, or until :meth:`stop`; returns whether the end was reached.

        Whenever it stops, ``adapter/`` holds the running average of the weights so far.
        """
        for stage in range(self.progress.stage, len(STAGES)):
            if stage != self.progress.stage:
                self._begin(stage)
            while self.progress.step < self._steps(stage) and not self._stop:
                self._step(stage, report)
                if self.progress.step % self.recipe.save_every == 0:
                    self.save()
            if self._stop:
                break
            self.save(f"after-{STAGES[stage]}")
        self.save("adapter")
        return not self._stop

    def stop(self, *_: int | FrameType | None) -> None:
        """Ask the run to stop after the step it is in; usable as a signal handler."""
        self._stop = True

    def save(self, adapter: str | None = None) -> None:
        """Write the checkpoint, and the running average as an adapter folder where one is named."""
        checkpoints.save(self._state, self.progress, self.weights, self.average, self._optimizer)
        if adapter:
            save_adapter(self.setting.student, self.average, self.recipe, self.setting.pooling, self.folder / adapter)

    def _steps(self, stage: int) -> int:
        if stage == 1:
            return self.recipe.contrastive.steps
        return 0 if is_its_own_target(self.setting.pooling) else self.recipe.distillation.steps

    def _begin(self, stage: int) -> None:
        """A stage starts from the average of the one before, with a fresh optimizer."""
        self.progress = Progress(stage=stage, tokens=self.progress.tokens)
        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(self.average[name])
        self._optimizer = self._fresh_optimizer()

    def _fresh_optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.weights.values(), lr=0.0, betas=(0.9, 0.98), weight_decay=0.0)

    def _step(self, stage: int, report: Report | None) -> None:
        began = time.monotonic()
        settings = self.recipe.contrastive if stage == 1 else self.recipe.distillation
        done = self.progress.step
        rate = settings.learning_rate * rate_at(done, settings.warmup)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        outcome = (contrast if stage == 1 else distill)(self.setting, done)
        norm = torch.nn.utils.clip_grad_norm_(list(self.weights.values()), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad()
        # young averages forget faster, so that the first weights do not weigh on them
        kept = min(self.recipe.average, (done + 1) / (done + 10))
        with torch.no_grad():
            for name, weight in self.weights.items():
                self.average[name].lerp_(weight, 1 - kept)
        self.progress.step += 1
        self.progress.tokens += outcome.tokens
        line: dict[str, Any] = {"stage": STAGES[stage], "step": self.progress.step, **outcome.losses}
        line |= {"gradient": float(norm), "rate": rate, "tokens": self.progress.tokens}
        line["seconds"] = round(time.monotonic() - began, 3)
        with (self.folder / "metrics.jsonl").open("a", encoding="utf-8") as metrics:
            metrics.write(json.dumps(line) + "\n")
        if report:
            report(self.setting.pooling, STAGES[stage], self.progress.step, self._steps(stage), outcome.losses)


def rate_at(step: int, warmup: int) -> float:
    """The share of the learning rate at a step: up over the warm-up, level, then down with the root of the steps.

    It does not depend on the end, so that a run can be made longer without having been wrong before.

    Args:
        step: counts from 0.
        warmup: steps; the rate is level until four times as many.
    """
    return min(1.0, (step + 1) / max(warmup, 1), math.sqrt(4 * max(warmup, 1) / (step + 1)))


def train(recipe: Recipe, report: Report | None = None) -> bool:
    """Train the recipe's adapters one after the other; an interrupt or a polite kill stops at the next step.

    Returns:
        Whether the end of the recipe was reached; otherwise the same call goes on from there.

    Raises:
        ValueError: the base, the text or a run that is in the folder does not suit the recipe.
    """
    for pooling in recipe.poolings:
        told = json.loads(json.dumps(asdict(recipe), default=str))
        _check_unchanged(told, recipe.out / pooling)
        run = Run(recipe, pooling)
        (run.folder / _RECIPE).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
        handlers = {number: signal.signal(number, run.stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            if not run.finish(report):
                return False
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return True


def _check_unchanged(told: dict[str, Any], folder: Path) -> None:
    """Refuse to go on with another recipe than the run in the folder began with; it may be longer, or elsewhere."""
    if not ((folder / _RECIPE).exists() and (folder / _STATE).exists()):
        return
    before, now = _deciding(json.loads((folder / _RECIPE).read_text(encoding="utf-8"))), _deciding(told)
    changed = next((key for key in sorted(before.keys() | now.keys()) if before.get(key) != now.get(key)), None)
    if changed:
        raise ValueError(
            f"The run in {folder} began with {changed} = {before.get(changed)!r}, the recipe says "
            f"{now.get(changed)!r}: give the recipe another folder 'out', or remove this one."
        )


def _deciding(told: dict[str, Any]) -> dict[str, Any]:
    """What a run's result depends on besides its length, sections flat."""
    flat = {
        f"{name}.{key}" if isinstance(value, dict) else name: entry
        for name, value in told.items()
        for key, entry in (value.items() if isinstance(value, dict) else [("", value)])
    }
    free = {"text", "out", "poolings", "batch_tokens", "save_every", "device"}
    return {key: value for key, value in flat.items() if key not in free and key != "contrastive.steps"}


def _base(recipe: Recipe) -> Checkpoint:
    """The recipe's base, without an adapter."""
    base = base_model() if recipe.base == "default" else recipe.base
    return Checkpoint(model=recipe.base, base=base, pooling="mean", window=recipe.window)


def _load(recipe: Recipe, pooling: str) -> Setting:
    checkpoint = _base(recipe)
    device = pick_device(recipe.device)
    tokenizer = load_tokenizer(checkpoint)
    table = positions(checkpoint, None)
    if recipe.window > table:
        raise ValueError(f"The base reads {table} tokens at once and the recipe's window is {recipe.window}: lower it.")
    base = load_network(checkpoint, device, torch.float32)
    corpus = Corpus(recipe.text)
    vectors = (
        openings(corpus, base, tokenizer, recipe, pick_dtype(recipe.dtype, device))
        if recipe.contrastive.neighbours > 1
        else None
    )
    return Setting(
        student=with_adapter(checkpoint, recipe, device),
        base=base,
        tokenizer=tokenizer,
        examples=Examples(corpus, recipe, tokenizer, vectors),
        recipe=recipe,
        pooling=pooling,
        dtype=pick_dtype(recipe.dtype, device),
    )
