"""Batches by token budget, and what happens when memory runs out."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from lmk_rag.encoding.batching import batches_by_tokens
from lmk_rag.encoding.inference import Inference
from lmk_rag.encoding.landmarks import Window


@given(lengths=st.lists(st.integers(1, 512), max_size=80), budget=st.integers(1, 5000))
def test_every_batching(lengths: list[int], budget: int) -> None:
    batches = list(batches_by_tokens(lengths, budget))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    ordered = [lengths[index] for batch in batches for index in batch]
    assert ordered == sorted(lengths, reverse=True)
    for batch in batches:
        assert batch
        padded = len(batch) * max(lengths[index] for index in batch)
        assert len(batch) == 1 or padded <= budget
        assert padded - sum(lengths[index] for index in batch) <= 0.1 * padded


def test_the_budget_decides_not_the_number_of_documents() -> None:
    assert [len(batch) for batch in batches_by_tokens([10] * 1000, 5000)] == [500, 500]
    assert [len(batch) for batch in batches_by_tokens([500] * 20, 5000)] == [10, 10]
    assert [len(batch) for batch in batches_by_tokens([10, 500] * 20, 5000)] == [10, 10, 20]


def test_windows_of_equal_length_keep_their_order() -> None:
    assert list(batches_by_tokens([5, 5, 5, 5], 10)) == [[0, 1], [2, 3]]


def test_a_window_longer_than_the_budget_is_alone() -> None:
    assert list(batches_by_tokens([30, 7, 30], 20)) == [[0], [2], [1]]


PAD = 7


class Stub(nn.Module):
    """State of a token: its id, its position, 1; it has memory for ``limit`` positions."""

    def __init__(self, limit: int, error: Exception) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.limit = limit
        self.error = error
        self.refused = 0
        self.shapes: list[tuple[int, int]] = []

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None) -> SimpleNamespace:
        if input_ids.numel() > self.limit:
            self.refused += 1
            raise self.error
        self.shapes.append((input_ids.shape[0], input_ids.shape[1]))
        place = torch.arange(input_ids.shape[1]).expand_as(input_ids)
        states = torch.stack([input_ids, place, torch.ones_like(place)], dim=-1).float()
        if attention_mask is not None:
            assert bool((input_ids[~attention_mask] == PAD).all())
            states[~attention_mask] = torch.nan  # a padded state in any result would be seen
        return SimpleNamespace(last_hidden_state=states)


def made(length: int, seed: int) -> Window:
    draw = np.random.default_rng(seed)
    ids = draw.integers(10, 1000, length).astype(np.int32)
    pooled = np.sort(draw.choice(length, min(3, length), replace=False)).astype(np.int32)
    start = int(draw.integers(0, length))
    evidence = np.array([[start, length], [0, 1]][: seed % 3], dtype=np.int32).reshape(-1, 2)
    return Window(ids=ids, tokens=length, pooled=pooled, evidence=evidence, spans=evidence)


def right(windows: list[Window], inference: Inference) -> None:
    found = inference.run(windows)
    assert len(found) == len(windows)
    for window, state in zip(windows, found, strict=True):
        plain = [(float(number), float(place), 1.0) for place, number in enumerate(window.ids.tolist())]
        wanted = [sum(plain[position][d] for position in window.pooled.tolist()) for d in range(3)]
        np.testing.assert_allclose(state.pooled, wanted, rtol=1e-6)
        assert state.count == len(window.pooled)
        assert state.evidence.shape == (len(window.evidence), 3)
        for vector, (start, stop) in zip(state.evidence, window.evidence.tolist(), strict=True):
            mean = [sum(plain[p][d] for p in range(start, stop)) / (stop - start) for d in range(3)]
            np.testing.assert_allclose(vector, mean, rtol=1e-5)


OUT = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError("[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried"),
]
LENGTHS = [*range(3, 120), *[50] * 60, 1, 2]


def test_windows_come_back_in_order_with_their_own_states() -> None:
    network = Stub(10**9, OUT[0])
    right([made(length, seed) for seed, length in enumerate(LENGTHS)], Inference(network, PAD))
    assert sum(rows for rows, _ in network.shapes) == len(LENGTHS)
    assert len(network.shapes) < len(LENGTHS) / 3


@pytest.mark.parametrize("error", OUT, ids=["accelerator", "processor"])
def test_batches_halve_when_memory_runs_out(error: Exception) -> None:
    network = Stub(1000, error)
    inference = Inference(network, PAD)
    before = inference.budget
    windows = [made(length, seed) for seed, length in enumerate(LENGTHS)]
    right(windows, inference)
    assert network.refused > 0
    assert sum(rows for rows, _ in network.shapes) == len(windows)  # what was read is not read again
    assert 500 <= inference.budget < before
    # The budget is remembered: nothing is refused the second time.
    refused, network.shapes = network.refused, []
    right(windows, inference)
    assert network.refused == refused
    assert max(rows * length for rows, length in network.shapes) > 250


def test_halving_goes_down_to_one_window() -> None:
    network = Stub(100, OUT[0])
    windows = [made(100, seed) for seed in range(6)]
    right(windows, Inference(network, PAD))
    assert network.shapes == [(1, 100)] * 6


@pytest.mark.parametrize("error", OUT, ids=["accelerator", "processor"])
def test_one_window_that_is_too_much_raises(error: Exception) -> None:
    with pytest.raises(type(error)):
        Inference(Stub(99, error), PAD).run([made(100, 0), made(40, 1), made(100, 2)])


def test_other_errors_are_not_taken_for_want_of_memory() -> None:
    network = Stub(10, RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        Inference(network, PAD).run([made(8, 0), made(8, 1)])
    assert network.refused == 1


def test_maxima_leave_padding_out() -> None:
    windows = [made(length, seed) for seed, length in enumerate([20, 19, 19, 5])]
    found = Inference(Stub(10**9, OUT[0]), PAD, maximum=True).run(windows)
    for window, state in zip(windows, found, strict=True):
        assert state.pooled.tolist() == [window.ids[window.pooled].max(), window.pooled.max(), 1.0]
