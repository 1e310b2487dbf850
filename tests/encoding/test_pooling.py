"""Pooling functions against plain loops."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from lmk_rag.encoding.pooling import (
    mean_over_windows,
    normalize,
    pooled_maxima,
    pooled_sums,
    segment_means,
)

DTYPES = [torch.float32, torch.bfloat16]


def states(dtype: torch.dtype, windows: int = 3, length: int = 50, width: int = 4) -> Tensor:
    drawn = torch.randn(windows, length, width, generator=torch.Generator().manual_seed(1)) + 1
    return drawn.to(dtype)


def marks(windows: int = 3, length: int = 50) -> Tensor:
    drawn = torch.rand(windows, length, generator=torch.Generator().manual_seed(2)) < 0.4
    drawn[:, 0] = True
    drawn[:, -5:] = False
    return drawn


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums(dtype: torch.dtype) -> None:
    hidden, mask = states(dtype), marks()
    hidden[:, -5:] = torch.nan  # padding may hold anything
    sums, counts = pooled_sums(hidden, mask)
    assert sums.dtype == counts.dtype == torch.float32
    for row in range(3):
        chosen = [hidden[row, place].tolist() for place in range(50) if mask[row, place]]
        assert counts[row] == len(chosen)
        for d in range(4):
            assert float(sums[row, d]) == pytest.approx(math.fsum(state[d] for state in chosen), rel=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_maxima(dtype: torch.dtype) -> None:
    hidden, mask = states(dtype) - 5, marks()
    hidden[:, -5:] = torch.nan
    found = pooled_maxima(hidden, mask)
    assert found.dtype == torch.float32
    for row in range(3):
        for d in range(4):
            assert float(found[row, d]) == max(float(hidden[row, p, d]) for p in range(50) if mask[row, p])


@pytest.mark.parametrize("dtype", DTYPES)
def test_means_of_runs(dtype: torch.dtype) -> None:
    hidden = states(dtype)
    runs = [(0, 3, 4), (0, 0, 50), (2, 10, 17), (1, 49, 50), (2, 12, 20), (0, 3, 4)]
    rows, starts, stops = (torch.tensor(column) for column in zip(*runs, strict=True))
    found = segment_means(hidden, rows, starts, stops)
    assert found.dtype == torch.float32
    for vector, (row, start, stop) in zip(found, runs, strict=True):
        for d in range(4):
            wanted = math.fsum(float(hidden[row, p, d]) for p in range(start, stop)) / (stop - start)
            assert float(vector[d]) == pytest.approx(wanted, rel=1e-5, abs=1e-6)


def test_means_of_no_runs() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    assert segment_means(states(torch.float32), none, none, none).shape == (0, 4)


def test_every_state_weighs_the_same_over_windows() -> None:
    # Document 0: windows of 1 and 3 states; document 1: one of 2; the windows lie mixed.
    sums = torch.tensor([[1.0, 0.0], [10.0, 4.0], [9.0, 6.0]])
    found = mean_over_windows(sums, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0, 1, 0]), 2)
    np.testing.assert_allclose(found.numpy(), [[10 / 4, 6 / 4], [5.0, 2.0]])


def test_bfloat16_is_summed_in_float32() -> None:
    # In bfloat16 256 + 1 is 256: a sum that is kept in it stands still there.
    hidden = torch.ones(1, 4096, 1, dtype=torch.bfloat16)
    sums, _ = pooled_sums(hidden, torch.ones(1, 4096, dtype=torch.bool))
    assert sums.tolist() == [[4096.0]]
    hidden[0, ::2] = 1.0078125
    run = segment_means(hidden, torch.tensor([0]), torch.tensor([0]), torch.tensor([4096]))
    assert run.tolist() == [[1.00390625]]


def test_normalize() -> None:
    found = normalize(torch.tensor([[3.0, 4.0], [0.0, 0.0], [-2.0, 0.0]]))
    np.testing.assert_allclose(found.numpy(), [[0.6, 0.8], [0.0, 0.0], [-1.0, 0.0]], rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_reach_the_pooled_states_and_no_others(dtype: torch.dtype) -> None:
    hidden, mask = states(dtype).requires_grad_(), marks()
    sums, counts = pooled_sums(hidden, mask)
    mean_over_windows(sums, counts, torch.tensor([0, 0, 1]), 2).sum().backward()
    assert hidden.grad is not None
    sizes = [int(mask[0].sum() + mask[1].sum())] * 2 + [int(mask[2].sum())]
    for row in range(3):
        wanted = torch.where(mask[row], 1 / sizes[row], 0.0)
        np.testing.assert_allclose(hidden.grad[row, :, 0].float().numpy(), wanted.numpy(), rtol=5e-3)


def test_gradients_of_runs_and_maxima() -> None:
    hidden = states(torch.float32).requires_grad_()
    segment_means(hidden, torch.tensor([1]), torch.tensor([2]), torch.tensor([6])).sum().backward()
    assert hidden.grad is not None
    wanted = torch.zeros(3, 50, 4)
    wanted[1, 2:6] = 0.25
    assert torch.equal(hidden.grad, wanted)
    hidden = states(torch.float32).requires_grad_()
    pooled_maxima(hidden, marks()).sum().backward()
    assert hidden.grad is not None
    assert hidden.grad.sum() == 12
    assert not hidden.grad[~marks()].any()


def test_gradient_of_the_normalised_mean_by_finite_differences() -> None:
    hidden = torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(5)).requires_grad_()
    mask = torch.tensor([[1, 1, 0, 1, 0, 0], [0, 0, 1, 1, 1, 1]]).bool()
    weights = torch.tensor([0.3, -0.7, 0.2])

    def loss(values: Tensor) -> Tensor:
        sums, counts = pooled_sums(values, mask)
        return (normalize(mean_over_windows(sums, counts, torch.tensor([0, 0]), 1)) * weights).sum()

    loss(hidden).backward()
    assert hidden.grad is not None
    step = torch.zeros_like(hidden)
    step[1, 3, 2] = 1e-2
    with torch.no_grad():
        numeric = float((loss(hidden + step) - loss(hidden - step)) / 2e-2)
    assert float(hidden.grad[1, 3, 2]) == pytest.approx(numeric, abs=2e-4)
    assert numeric != 0
