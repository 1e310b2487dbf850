"""Windows become batches: by token budget, from windows sorted by length, so that next to nothing is padding."""

from collections.abc import Iterator, Sequence

_PADDING_ALLOWED = 0.1
"""A window more than this share shorter than the batch's longest opens a new batch."""


def batches_by_tokens(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group windows of like length, longest first, so that no padded batch holds more than ``budget`` positions.

    Args:
        lengths: positions of each window.
        budget: positions a batch, padding included; a single window longer than that is a batch of its own.

    Yields:
        Indices into ``lengths``; each occurs once over all batches.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch:
            longest = lengths[batch[0]]
            full = longest * (len(batch) + 1) > budget
            if full or lengths[index] < (1 - _PADDING_ALLOWED) * longest:
                yield batch
                batch = []
        batch.append(index)
    if batch:
        yield batch
