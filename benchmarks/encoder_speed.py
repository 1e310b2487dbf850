"""Tokens a second: the encoder on real text against the plain forward of the same model, in one run.

    python benchmarks/encoder_speed.py FILE... [--pooling mean] [--dtype auto] [--rounds 3]

Plain forward: full windows of random tokens, 16 at a time, no padding, no mask, nothing kept. The encoder does
everything: tokenise, lay out windows, batch, forward, pool, evidence. Rounds alternate, the median of each counts.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from ingest.parsing import parse_file
from lmk_rag.encoding.encoder import Encoder


def main() -> None:
    """Read the arguments, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--pooling", default="mean")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    encoder = Encoder.load(pooling=options.pooling, dtype=options.dtype)
    texts = ["\n\n".join(parsed.file.pages) for path in options.files if (parsed := parse_file(path)).file]
    plain, whole = [], []
    for _ in range(options.rounds):
        plain.append(speed(lambda: forward(encoder, 8)))
        whole.append(speed(lambda: encode(encoder, texts)))
    print_table(encoder, statistics.median(plain), statistics.median(whole))


def speed(work: Callable[[], int]) -> float:
    """Do some work that returns how many positions it read, and give positions a second."""
    started = time.perf_counter()
    return work() / (time.perf_counter() - started)


@torch.inference_mode()
def forward(encoder: Encoder, batches: int) -> int:
    """Run the bare network over full windows of random tokens."""
    network = encoder.inference.network
    ids = torch.randint(1000, 20_000, (16, encoder.window), device=encoder.inference.device)
    for _ in range(batches):
        network(input_ids=ids)
    return batches * ids.numel()


def encode(encoder: Encoder, texts: list[str]) -> int:
    """Run the encoder over texts, and count the positions that its batches held."""
    positions: list[int] = []
    encoder.encode_documents(texts, positions.append)
    return sum(positions)


def print_table(encoder: Encoder, plain: float, whole: float) -> None:
    """Print both speeds and their ratio."""
    network = encoder.inference.network
    dtype = str(next(network.parameters()).dtype).removeprefix("torch.")
    table = Table(title=f"{encoder.pooling}, {dtype}, {encoder.inference.device}, {torch.get_num_threads()} threads")
    for column in ("plain forward, tokens/s", "encoder, tokens/s", "encoder / plain"):
        table.add_column(column, justify="right")
    table.add_row(f"{plain:,.0f}", f"{whole:,.0f}", f"{whole / plain:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
