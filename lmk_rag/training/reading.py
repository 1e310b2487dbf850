"""Windows through a network with gradients: the encoder's own layout and pooling, kept differentiable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from lmk_rag.encoding.batching import batches_by_tokens
from lmk_rag.encoding.landmarks import Tokens, Window, landmark_windows, plain_windows, slices_per_window
from lmk_rag.encoding.network import TextTokenizer, forward
from lmk_rag.encoding.pooling import mean_over_windows, normalize, pooled_sums, segment_means
from lmk_rag.training.corpus import TokenIds

PADDED_POSITIONS = {"cpu": 8_192}
"""Positions of one padded batch by device: on a processor what stays in its cache."""
_PADDED_ELSEWHERE = 65_536


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive content tokens of a text that fill one window at most, cut in slices of ``granularity``."""

    ids: TokenIds
    granularity: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What was made of a batch of texts.

    Attributes:
        vectors: float32 (texts, d), each of length 1.
        evidence: float32 (n, d), each of length 1; n is 0 for cls.
        owners: which text each evidence vector is of, int64 (n,), ascending.
    """

    vectors: Tensor
    evidence: Tensor
    owners: Tensor


def piece_length(granularity: int, window: int) -> int:
    """Content tokens of the longest piece that fits a window with its landmarks."""
    return slices_per_window(granularity, window) * granularity


def lay_out(pieces: Sequence[Piece], pooling: str, tokenizer: TextTokenizer, window: int) -> list[Window]:
    """One window for each piece of a text, with landmarks for ``lmk``; for ``cls`` the first piece's alone."""
    windows = []
    for piece in pieces[:1] if pooling == "cls" else pieces:
        tokens = Tokens(piece.ids.astype(np.int32), np.zeros((len(piece.ids), 2), np.int32))
        if pooling == "lmk":
            assert tokenizer.cls is not None and tokenizer.landmark is not None
            windows += landmark_windows(
                tokens,
                cls=tokenizer.cls,
                landmark=tokenizer.landmark,
                granularity=piece.granularity,
                window=window,
            )
        else:
            windows += plain_windows(
                tokens,
                pooling=pooling,
                prefix=tokenizer.prefix,
                suffix=tokenizer.suffix,
                granularity=piece.granularity,
                window=window,
            )
    return windows


def read(
    network: nn.Module, texts: Sequence[Sequence[Window]], pad: int, dtype: torch.dtype = torch.float32
) -> Reading:
    """Embed texts that are laid out in windows.

    Args:
        network: a transformer; its device is where the result lies.
        texts: the windows of each text, at least one each.
        pad: id that fills a batch up.
        dtype: what matrix products are computed in (autocast); weights and results are float32.
    """
    device = next(network.parameters()).device
    windows = [window for text in texts for window in text]
    documents = torch.tensor([at for at, text in enumerate(texts) for _ in text])
    budget = PADDED_POSITIONS.get(device.type, _PADDED_ELSEWHERE)
    order: list[int] = []
    sums, counts, evidence = [], [], []
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=dtype is torch.bfloat16):
        for batch in batches_by_tokens([len(window) for window in windows], budget):
            members = [windows[index] for index in batch]
            ids, mask, pooled, runs = _padded(members, pad)
            hidden = forward(network, ids.to(device), None if bool(mask.all()) else mask.to(device))
            total, count = pooled_sums(hidden, pooled.to(device))
            sums.append(total)
            counts.append(count)
            evidence.append(segment_means(hidden, *runs.to(device).unbind(dim=1)))
            order += batch
    # windows were batched by length: put what belongs to them back in reading order
    places = torch.tensor(order)
    back = torch.argsort(places)
    lengths = torch.tensor([len(windows[index].evidence) for index in order])
    owners = torch.repeat_interleave(places, lengths)
    sorted_runs = torch.argsort(owners, stable=True)
    vectors = mean_over_windows(
        torch.cat(sums)[back.to(device)], torch.cat(counts)[back.to(device)], documents.to(device), len(texts)
    )
    return Reading(
        vectors=normalize(vectors),
        evidence=normalize(torch.cat(evidence)[sorted_runs.to(device)]),
        owners=documents[owners[sorted_runs]].to(device),
    )


def _padded(windows: Sequence[Window], pad: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Token ids (w, length), their mask, the mask of pooled positions, and runs (row, start, stop) int64 (n, 3)."""
    longest = max(len(window) for window in windows)
    ids = torch.full((len(windows), longest), pad, dtype=torch.int64)
    mask = torch.zeros((len(windows), longest), dtype=torch.bool)
    pooled = torch.zeros_like(mask)
    runs = []
    for row, window in enumerate(windows):
        ids[row, : len(window)] = torch.from_numpy(window.ids.astype(np.int64))
        mask[row, : len(window)] = True
        pooled[row, torch.from_numpy(window.pooled.astype(np.int64))] = True
        runs += [(row, int(start), int(stop)) for start, stop in window.evidence]
    return ids, mask, pooled, torch.tensor(runs, dtype=torch.int64).reshape(-1, 3)
