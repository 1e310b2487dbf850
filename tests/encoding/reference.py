"""The definition of each pooling, written plainly: one text at a time, one window at a time, no padding."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import AutoModel, AutoTokenizer

Vector = npt.NDArray[np.float64]


@dataclass
class Expected:
    """What the encoder should give for one text."""

    vector: Vector
    evidence: list[Vector] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    tokens: int = 0
    truncated: int = 0


def unit(vector: Vector) -> Vector:
    """Divide by the length, in float64."""
    return vector / math.sqrt(sum(float(x) ** 2 for x in vector))


def average(vectors: list[Vector]) -> Vector:
    """Add up one by one and divide."""
    total = np.zeros_like(vectors[0])
    for vector in vectors:
        total = total + vector
    return total / len(vectors)


class Reference:
    """A model folder read by transformers alone."""

    def __init__(self, folder: Path, model: Any = None) -> None:
        self.tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
        self.model: Any = model or AutoModel.from_pretrained(str(folder), dtype=torch.float32).eval()
        names = self.tokenizer
        self.cls = int(names.cls_token_id if names.cls_token_id is not None else names.bos_token_id)
        self.sep = int(names.sep_token_id if names.sep_token_id is not None else names.eos_token_id)

    def content(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids and code point offsets of the content tokens."""
        read = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, truncation=False)
        return list(read["input_ids"]), [(int(start), int(end)) for start, end in read["offset_mapping"]]

    def states(self, ids: list[int]) -> list[Vector]:
        """Last layer's state at each position of one sequence."""
        with torch.no_grad():
            hidden = self.model(input_ids=torch.tensor([ids])).last_hidden_state[0]
        return [row.double().numpy() for row in hidden]

    def expect(
        self, text: str, pooling: str, *, granularity: int = 32, window: int, max_tokens: int | None = None
    ) -> Expected:
        """Embed one text by the definition."""
        ids, offsets = self.content(text)
        kept = len(ids) if max_tokens is None else min(max_tokens, len(ids))
        if pooling == "lmk":
            found = self._landmarks(ids[:kept], offsets[:kept], granularity, window)
        else:
            found = self._plain(ids[:kept], offsets[:kept], pooling, granularity, window)
        found.truncated = len(ids) - found.tokens
        return found

    def _landmarks(self, ids: list[int], offsets: list[tuple[int, int]], granularity: int, window: int) -> Expected:
        starts = list(range(0, len(ids), granularity)) or [0]
        windows: list[list[int]] = [[self.cls]]
        places: list[list[int]] = [[]]
        spans = []
        for start in starts:
            piece = ids[start : start + granularity]
            if places[-1] and len(windows[-1]) + len(piece) + 1 > window:
                windows.append([self.cls])
                places.append([])
            windows[-1] += piece
            places[-1].append(len(windows[-1]))
            windows[-1].append(self.sep)
            spans.append((offsets[start][0], offsets[start + len(piece) - 1][1]) if piece else (0, 0))
        landmarks = []
        for sequence, positions in zip(windows, places, strict=True):
            assert len(sequence) <= window
            states = self.states(sequence)
            landmarks += [states[position] for position in positions]
        return Expected(unit(average(landmarks)), [unit(each) for each in landmarks], spans, len(ids))

    def _plain(
        self, ids: list[int], offsets: list[tuple[int, int]], pooling: str, granularity: int, window: int
    ) -> Expected:
        step = window - 2
        starts = list(range(0, len(ids), step)) or [0]
        if pooling == "cls":
            starts = starts[:1]
        if pooling == "lasttoken":
            starts = starts[-1:]
        every: list[Vector] = []
        firsts: list[Vector] = []
        lasts: list[Vector] = []
        evidence: list[Vector] = []
        spans: list[tuple[int, int]] = []
        read = 0
        for start in starts:
            piece = ids[start : start + step]
            states = self.states([self.cls, *piece, self.sep])
            read += len(piece)
            every += states
            firsts.append(states[0])
            lasts.append(states[-1])
            if pooling == "mcls" and piece:
                evidence.append(unit(states[0]))
                spans.append((offsets[start][0], offsets[start + len(piece) - 1][1]))
            for low in range(0, len(piece), granularity) if pooling == "mean" else ():
                high = min(low + granularity, len(piece))
                evidence.append(unit(average(states[1 + low : 1 + high])))
                spans.append((offsets[start + low][0], offsets[start + high - 1][1]))
        if pooling == "mean":
            vector = average(every)
        elif pooling == "mcls":
            vector = average(firsts)
        elif pooling == "max":
            vector = np.array([max(state[d] for state in every) for d in range(len(every[0]))])
        else:
            vector = firsts[0] if pooling == "cls" else lasts[-1]
        return Expected(unit(vector), evidence, spans, read)
