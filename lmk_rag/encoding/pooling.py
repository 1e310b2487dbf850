"""Hidden states become vectors: pure tensor functions, differentiable, used by the encoder and by training alike.

Which positions count is decided where the windows are laid out (:mod:`lmk_rag.encoding.landmarks`): landmarks,
all tokens, the CLS or the last token. What remains here is to sum, to average over the windows of a document and
to normalise. Sums are float32 whatever the model computes in.
"""

import torch
from torch import Tensor


def pooled_sums(hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Sum the states at the marked positions of each window.

    Args:
        hidden: last layer's states (windows, length, d).
        mask: bool (windows, length), true where a state is pooled.

    Returns:
        Sums, float32 (windows, d), and how many states each holds, float32 (windows,).
    """
    # Summed in float32: in bfloat16 a sum over hundreds of states would lose most of its digits.
    sums = torch.where(mask.unsqueeze(-1), hidden, 0).sum(dim=1, dtype=torch.float32)
    return sums, mask.sum(dim=1).float()


def pooled_maxima(hidden: Tensor, mask: Tensor) -> Tensor:
    """Take the largest value a dimension over the marked positions of each window, float32 (windows, d)."""
    return hidden.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(dim=1).float()


def segment_means(hidden: Tensor, rows: Tensor, starts: Tensor, stops: Tensor) -> Tensor:
    """Average the states of runs of positions: a landmark is a run of one, a slice of text a run of many.

    Args:
        hidden: last layer's states (windows, length, d).
        rows: which window each run lies in, int64 (n,).
        starts: first position of each run, int64 (n,).
        stops: position after the last of each run, int64 (n,), greater than its start.

    Returns:
        Means, float32 (n, d).
    """
    lengths = stops - starts
    run = torch.repeat_interleave(torch.arange(len(rows), device=hidden.device), lengths)
    within = torch.arange(len(run), device=hidden.device) - (torch.cumsum(lengths, 0) - lengths)[run]
    states = hidden[rows[run], starts[run] + within].float()
    sums = torch.zeros(len(rows), hidden.shape[-1], device=hidden.device).index_add(0, run, states)
    return sums / lengths.unsqueeze(1)


def mean_over_windows(sums: Tensor, counts: Tensor, documents: Tensor, n: int) -> Tensor:
    """Average the pooled states of all windows of each document: every landmark weighs the same.

    Args:
        sums: what :func:`pooled_sums` gave for each window, float32 (windows, d).
        counts: how many states each sum holds, float32 (windows,).
        documents: which document each window belongs to, int64 (windows,), 0 <= document < n.
        n: number of documents.

    Returns:
        Means, float32 (n, d), not normalised.
    """
    totals = torch.zeros(n, sums.shape[1], device=sums.device).index_add(0, documents, sums)
    weights = torch.zeros(n, device=sums.device).index_add(0, documents, counts)
    return totals / weights.unsqueeze(1)


def normalize(vectors: Tensor) -> Tensor:
    """Scale each row to length 1 in the L2 norm (a row of zeros stays zero)."""
    return torch.nn.functional.normalize(vectors, dim=-1)
