"""``lmk-rag eval``: find the data set, run the systems, give the comparison back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lmk_rag.evaluation import beir, longembed

DEFAULT_SYSTEMS = ("bm25", "base-mean", "lmk")


def cache_folder() -> Path:
    """Where vectors are kept: ``LMK_RAG_EVAL_CACHE``, else a folder in the user's cache."""
    return Path(os.environ.get("LMK_RAG_EVAL_CACHE") or "~/.cache/lmk-rag/evaluation").expanduser()


def eval_command(
    dataset: str,
    *,
    split: str = "test",
    full: bool = False,
    systems: Sequence[str] = DEFAULT_SYSTEMS,
    model: str | None = None,
    limit: int | None = None,
    max_tokens: int | None = None,
    device: str = "auto",
    cache: Path | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """Compare systems on a data set.

    Args:
        dataset: a BEIR folder, or one of ``passkey``, ``needle``, ``rfc``, ``python-docs``, ``python-sections``,
            ``linux-docs``; ``passkey-8192`` and the like name one length of ``passkey`` and ``needle``.
        split: train, dev or test.
        full: all documents of the split, not the fixed draw.
        systems: names from :data:`lmk_rag.evaluation.systems.SYSTEMS`.
        model: a model for the systems lmk, mean, cls, mcls, or a folder with one of each; else the shipped ones.
        limit: a fixed draw of so many documents.
        max_tokens: content tokens read of each text; all by default.
        device: auto, cpu, cuda, mps.
        cache: folder for vectors, by default :func:`cache_folder`.
        quiet: no progress bar; what is odd about a model is told on stderr all the same.

    Returns:
        What :func:`lmk_rag.evaluation.report.compare` makes, plain values for JSON;
        :func:`lmk_rag.evaluation.report.show` prints it.

    Raises:
        FileNotFoundError: the data set is not there; the message says how to build it.
        ValueError: an unknown system or split, a data set that cannot be read; one sentence says what to do.
        ModelError: a model cannot be had.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from lmk_rag.evaluation.report import compare
    from lmk_rag.evaluation.systems import SYSTEMS, Options, Run, run_system, token_lengths

    unknown = [name for name in systems if name not in SYSTEMS]
    if unknown:
        raise ValueError(f"There is no system {unknown[0]!r}: choose from {', '.join(SYSTEMS)}.")
    if split not in ("train", "dev", "test"):
        raise ValueError(f"There is no split {split!r}: choose train, dev or test.")
    parts = parts_of(dataset, split, full=full)
    if limit is not None:
        parts = [each.limited(limit) for each in parts]
    name = dataset if len(parts) > 1 else parts[0].name
    options = Options(cache=cache or cache_folder(), model=model, max_tokens=max_tokens, device=device)
    lengths = {key: length for part in parts for key, length in token_lengths(part).items()}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as bar:
        task = bar.add_task(name, total=None)
        noticed = set[str]()

        def run(system: str, part: beir.Dataset) -> Run:
            found = run_system(system, part, options, told)
            for notice in set(found.notices) - noticed:
                bar.console.print(f"{system}: {notice}", style="yellow", markup=False, soft_wrap=True)
            noticed.update(found.notices)
            return found

        def told(what: str, done: int, everything: int) -> None:
            bar.update(task, description=f"{name}: {what}", completed=done, total=everything)

        return compare(name, parts, systems, run, lengths)


def parts_of(name: str, split: str, *, full: bool) -> list[beir.Dataset]:
    """Load a data set by folder or name: one part, or for ``passkey`` and ``needle`` one a length."""
    if name in ("passkey", "needle"):
        return [longembed.generate(name, length) for length in longembed.LENGTHS]
    if name in longembed.names():
        task, _, length = name.partition("-")
        return [longembed.generate(task, int(length))]
    folder = beir.find(name, split, full=full)
    return [beir.load(folder, split, name if name in beir.NAMES else None)]
