"""Windows become states: batches run through the network, only what was asked for leaves the device."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from lmk_rag.encoding.batching import batches_by_tokens
from lmk_rag.encoding.landmarks import Window
from lmk_rag.encoding.network import forward
from lmk_rag.encoding.pooling import pooled_maxima, pooled_sums, segment_means

FloatArray = npt.NDArray[np.float32]

_BUDGET = {"cpu": 8_192, "mps": 16_384, "cuda": 131_072}
"""Positions a batch by device: on a processor small batches stay in its cache, a GPU wants large ones."""


@dataclass(frozen=True, slots=True)
class WindowStates:
    """What is kept of one window.

    Attributes:
        pooled: sum of the pooled states (their maxima under max pooling), float32 (d,).
        count: how many states were summed.
        evidence: one mean state for each of the window's evidence runs, float32 (m, d), not normalised.
    """

    pooled: FloatArray
    count: float
    evidence: FloatArray


class Inference:
    """A network that reads windows by token budget, and halves the budget for good when memory runs out."""

    def __init__(self, network: nn.Module, pad: int, *, maximum: bool = False) -> None:
        """Take a network ready for inference, its padding id, and whether states are pooled by their maxima."""
        parameter = next(network.parameters())
        self.network = network
        self.pad = pad
        self.maximum = maximum
        self.device = parameter.device
        self.budget = _BUDGET.get(self.device.type, 16_384)

    def run(self, windows: Sequence[Window], progress: Callable[[int], None] | None = None) -> list[WindowStates]:
        """Read all windows.

        Args:
            windows: sequences of any lengths; they are batched with others of like length.
            progress: called with the number of positions read after each batch.

        Returns:
            The states of each window, in the order given.

        Raises:
            torch.OutOfMemoryError: where a single window is too much.
        """
        found: list[WindowStates | None] = [None] * len(windows)
        waiting = deque(batches_by_tokens([len(window) for window in windows], self.budget))
        while waiting:
            batch = waiting.popleft()
            try:
                states = self._read([windows[index] for index in batch])
            except (torch.OutOfMemoryError, RuntimeError) as error:
                if not _out_of_memory(error) or len(batch) == 1:
                    raise
                self.budget = max(self.budget // 2, len(windows[batch[0]]))
                if self.device.type == "cuda":
                    torch.cuda.empty_cache()
                rest = [index for each in (batch, *waiting) for index in each]
                again = batches_by_tokens([len(windows[index]) for index in rest], self.budget)
                waiting = deque([rest[place] for place in each] for each in again)
                continue
            for index, state in zip(batch, states, strict=True):
                found[index] = state
            if progress:
                progress(sum(len(windows[index]) for index in batch))
        return [state for state in found if state is not None]

    @torch.inference_mode()
    def _read(self, windows: Sequence[Window]) -> list[WindowStates]:
        ids, mask = self._padded(windows)
        hidden = forward(self.network, ids, None if bool(mask.all()) else mask)
        pooled_mask = torch.zeros_like(mask)
        rows, positions = _flat([window.pooled for window in windows])
        pooled_mask[rows, positions] = True
        pooled, counts = pooled_sums(hidden, pooled_mask)
        if self.maximum:
            pooled = pooled_maxima(hidden, pooled_mask)
        evidence = self._evidence(hidden, windows)
        return [
            WindowStates(vector, float(count), states)
            for vector, count, states in zip(pooled.cpu().numpy(), counts.tolist(), evidence, strict=True)
        ]

    def _padded(self, windows: Sequence[Window]) -> tuple[Tensor, Tensor]:
        lengths = np.array([len(window) for window in windows])
        ids = np.full((len(windows), lengths.max()), self.pad, dtype=np.int64)
        for row, window in enumerate(windows):
            ids[row, : len(window)] = window.ids
        mask = np.arange(ids.shape[1]) < lengths[:, None]
        return torch.from_numpy(ids).to(self.device), torch.from_numpy(mask).to(self.device)

    def _evidence(self, hidden: Tensor, windows: Sequence[Window]) -> list[FloatArray]:
        counts = [len(window.evidence) for window in windows]
        rows = torch.from_numpy(np.repeat(np.arange(len(windows)), counts)).to(self.device)
        runs = torch.from_numpy(np.concatenate([window.evidence for window in windows]).astype(np.int64))
        starts, stops = runs.to(self.device).unbind(dim=1)
        means: FloatArray = segment_means(hidden, rows, starts, stops).cpu().numpy()
        return np.split(means, np.cumsum(counts)[:-1])


def _flat(positions: Sequence[npt.NDArray[np.int32]]) -> tuple[Tensor, Tensor]:
    rows = np.repeat(np.arange(len(positions)), [len(each) for each in positions])
    return torch.from_numpy(rows), torch.from_numpy(np.concatenate(positions).astype(np.int64))


def _out_of_memory(error: Exception) -> bool:
    """Recognise running out of memory; a processor's allocator raises a plain RuntimeError."""
    text = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in text or "out of memory" in text
