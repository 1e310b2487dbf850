"""Token ids become windows: the sequences that the model reads, with or without landmarks in them.

A landmark sequence is ``[CLS] z1 [LMK] z2 [LMK] ... zn [LMK]``, the z being slices of ``granularity`` content
tokens (arXiv 2601.21525). A document longer than the model's window is read in successive windows, each of
which holds whole slices, so that no token is lost and every landmark closes a known piece of the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The content tokens of one text, without any special token.

    Attributes:
        ids: token ids, int32 (n,).
        offsets: the code points [start, end) of the text that each token stands for, int32 (n, 2).
    """

    ids: IntArray
    offsets: IntArray

    def __len__(self) -> int:
        """Count the content tokens."""
        return len(self.ids)

    def __getitem__(self, part: slice) -> "Tokens":
        """Take a run of tokens."""
        return Tokens(self.ids[part], self.offsets[part])


@dataclass(frozen=True, slots=True)
class Window:
    """One sequence as the model reads it, and which of its states are wanted.

    Attributes:
        ids: token ids with the special ones, int32 (length,).
        tokens: how many of them are content.
        pooled: positions whose states go into the document's vector, int32 (p,); position, never id, tells a
            landmark, so a "[SEP]" that a user wrote is content.
        evidence: positions [start, stop) whose mean state is one evidence vector, int32 (m, 2).
        spans: the code points [start, end) of the text that each evidence vector stands for, int32 (m, 2).
    """

    ids: IntArray
    tokens: int
    pooled: IntArray
    evidence: IntArray
    spans: IntArray

    def __len__(self) -> int:
        """Count the positions of the sequence."""
        return len(self.ids)


def landmark_windows(
    tokens: Tokens, *, cls: int, landmark: int, granularity: int, window: int, closing: bool = False
) -> list[Window]:
    """Lay a text out in windows ``[CLS] z1 [LMK] ... zn [LMK]`` of at most ``window`` positions.

    Args:
        tokens: the text's content tokens; none give the single window ``[CLS][LMK]``.
        cls: id of the token that opens each window.
        landmark: id of the landmark (the tokenizer's SEP, or EOS).
        granularity: content tokens a slice, at least 1; the last slice may be shorter.
        window: positions that the model reads at once.
        closing: each window ends with one landmark more, which is pooled but closes no slice of its own
            (generation C of sentence-transformers pull request 3642 keeps the tokenizer's trailing SEP).

    Raises:
        ValueError: where not even one slice with its landmark fits the window.
    """
    per_window = slices_per_window(granularity, window, closing=closing)
    step = per_window * granularity
    # The room that whole slices leave takes the text's short last slice, so that what fits a window stays in one.
    room = window - 1 - int(closing) - per_window * (granularity + 1)
    starts = list(range(0, len(tokens), step)) or [0]
    if len(starts) > 1 and len(tokens) - starts[-1] + 1 <= room:
        starts.pop()
    stops = [*starts[1:], len(tokens)]
    parts = [tokens[start:stop] for start, stop in zip(starts, stops, strict=True)]
    return [_landmark_window(part, cls, landmark, granularity, closing) for part in parts]


def slices_per_window(granularity: int, window: int, *, closing: bool = False) -> int:
    """Count the whole slices, each with its landmark, that one window holds behind its CLS."""
    if granularity < 1:
        raise ValueError(f"The granularity must be at least 1 token, not {granularity}.")
    count = (window - 1 - int(closing)) // (granularity + 1)
    if count < 1:
        raise ValueError(
            f"A slice of {granularity} tokens with its landmark does not fit the model's window of {window} "
            f"positions: choose a granularity of at most {max(window - 2 - int(closing), 1)}."
        )
    return count


def _landmark_window(part: Tokens, cls: int, landmark: int, granularity: int, closing: bool) -> Window:
    slices = [part[start : start + granularity] for start in range(0, len(part), granularity)] or [part]
    ids = [cls]
    landmarks = []
    for piece in slices:
        ids.extend(piece.ids.tolist())
        landmarks.append(len(ids))
        ids.append(landmark)
    closers = _ints(landmarks)
    if closing:
        landmarks.append(len(ids))
        ids.append(landmark)
    return Window(
        ids=_ints(ids),
        tokens=len(part),
        pooled=_ints(landmarks),
        evidence=np.stack([closers, closers + 1], axis=1),
        spans=_spans(slices),
    )


def plain_windows(
    tokens: Tokens, *, pooling: str, prefix: Sequence[int], suffix: Sequence[int], granularity: int, window: int
) -> list[Window]:
    """Lay a text out in windows without landmarks, ``[CLS] up to window - 2 tokens [SEP]``, for the baselines.

    Args:
        tokens: the text's content tokens; none give one window of special tokens alone.
        pooling: ``mean`` and ``max`` pool every position of every window, ``mcls`` the first position of every
            window, ``cls`` the first position of the first window, ``lasttoken`` the last of the last.
        prefix: ids that open each window (usually CLS).
        suffix: ids that close each window (usually SEP).
        granularity: content tokens an evidence slice; ``mean`` keeps one vector a slice, ``mcls`` one a window,
            the others none.
        window: positions that the model reads at once.

    Returns:
        The windows that have to be read: for ``cls`` the first alone, for ``lasttoken`` the last alone.

    Raises:
        ValueError: where the special tokens leave no room in the window, or the pooling is not known.
    """
    step = window - len(prefix) - len(suffix)
    if step < 1:
        raise ValueError(
            f"A window of {window} positions holds no text beside {len(prefix) + len(suffix)} special tokens: "
            "choose a model with a longer window."
        )
    parts = [tokens[start : start + step] for start in range(0, len(tokens), step)] or [tokens]
    if pooling == "cls":
        parts = parts[:1]
    elif pooling == "lasttoken":
        parts = parts[-1:]
    return [_plain_window(part, pooling, prefix, suffix, granularity) for part in parts]


def _plain_window(part: Tokens, pooling: str, prefix: Sequence[int], suffix: Sequence[int], granularity: int) -> Window:
    # Where the tokenizer adds nothing, an empty text still needs a position to be read.
    ids = _ints([*prefix, *part.ids.tolist(), *suffix] or [0])
    evidence, spans = _ints([]).reshape(0, 2), _ints([]).reshape(0, 2)
    if pooling in ("mean", "max"):
        pooled = np.arange(len(ids), dtype=np.int32)
    elif pooling in ("cls", "mcls"):
        pooled = _ints([0])
    elif pooling == "lasttoken":
        pooled = _ints([len(ids) - 1])
    else:
        raise ValueError(f"Pooling {pooling!r} is not known: choose lmk, mean, cls, mcls, lasttoken or max.")
    if pooling == "mean" and len(part):
        starts = np.arange(0, len(part), granularity, dtype=np.int32)
        stops = np.minimum(starts + granularity, len(part)).astype(np.int32)
        evidence = np.stack([starts, stops], axis=1) + np.int32(len(prefix))
        spans = _spans([part[start:stop] for start, stop in zip(starts, stops, strict=True)])
    elif pooling == "mcls" and len(part):
        evidence, spans = _ints([[0, 1]]), _spans([part])
    return Window(ids=ids, tokens=len(part), pooled=pooled, evidence=evidence, spans=spans)


def _spans(slices: Sequence[Tokens]) -> IntArray:
    return _ints([(piece.offsets[0, 0], piece.offsets[-1, 1]) if len(piece) else (0, 0) for piece in slices])


def _ints(values: Sequence[int] | Sequence[Sequence[int]]) -> IntArray:
    return np.asarray(values, dtype=np.int32)
