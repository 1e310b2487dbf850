"""Near copies: documents whose texts are nearly the same, such as one file at two paths or in two formats.

Texts are compared by the share of runs of five words that both have (the Jaccard index of their shingles), estimated
from a sketch of each: the smallest hashes of its runs. Two revisions of one text that were really rewritten, however
like their subject, share few runs; one text in two formats shares nearly all.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
import numpy.typing as npt

from indexes.records import StoredDocument

SAME = 0.9
"""Share of common runs from which on two documents are near copies: about one word in a hundred may differ.

Measured: see docs/decisions.md.
"""

_RUN = 5
_SKETCH = 2048  # hashes; the estimate's standard deviation is 0.007 at 0.9
_KEPT = 2000  # sketches of 16 kB each
# Cheaper signs that two texts differ, before they are read:
_SHORTEST = 0.7  # the shorter has fewer characters than this share of the longer's
_ALIKE = 0.9  # the cosine of their vectors is below this
_EQUAL = 0.7  # where one has no vector, the lower of their BM25 scores is below this share of the higher
_WORD = re.compile(r"\w+")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

Hashes = npt.NDArray[np.uint64]
Vectors = Mapping[int, npt.NDArray[np.float32]]
Scores = Mapping[int, float]


def sketch(text: str) -> Hashes:
    """Give the smallest hashes of a text's runs of five words, whatever their case and what stands between them.

    Returns:
        uint64 (n,), ascending, each once; n is at most 2,048. A text of fewer than five words is one run.
    """
    words = _WORD.findall(text.lower())
    if not words:
        return np.empty(0, np.uint64)
    known = {word: crc32(word.encode("utf-8", "surrogatepass")) for word in set(words)}
    hashes = np.fromiter(map(known.__getitem__, words), np.uint64, len(words))
    run = min(_RUN, len(words))
    mixed = np.zeros(len(words) - run + 1, np.uint64)
    for place in range(run):  # each word mixed in at its place: order counts
        mixed = _mix(mixed + hashes[place : place + len(mixed)])
    return np.unique(mixed)[:_SKETCH]


def _mix(values: Hashes) -> Hashes:
    """Spread values over all 64 bits; unsigned numbers wrap around."""
    values = (values ^ (values >> np.uint64(32))) * _MULTIPLIER
    return values ^ (values >> np.uint64(29))


def similarity(one: Hashes, other: Hashes) -> float:
    """Estimate from two sketches the share of runs that both texts have among those that either has, in [0, 1]."""
    if not len(one) or not len(other):
        return 0.0
    both = np.union1d(one, other)
    if max(len(one), len(other)) == _SKETCH:  # beyond its last hash a full sketch does not tell what its text has
        both = both[:_SKETCH]
    shared = np.isin(both, one, assume_unique=True) & np.isin(both, other, assume_unique=True)
    return float(shared.mean())


@dataclass(slots=True)
class Found:
    """A document that was found, with the near copies that are folded under it.

    Attributes:
        document: its row.
        score: as it was ranked by.
        folded: near copies found after it, each with its score and its similarity.
    """

    document: StoredDocument
    score: float
    folded: list[tuple[StoredDocument, float, float]] = field(default_factory=list)


class NearDuplicates:
    """Folds near copies; keeps sketches of texts that it has read. Threads may share it."""

    def __init__(self, text: Callable[[int], str]) -> None:
        """Take what gives a document's text by its id."""
        self._text = text
        self._sketches: OrderedDict[str, Hashes] = OrderedDict()
        self._lock = threading.Lock()

    def fold(
        self, ranked: Sequence[tuple[StoredDocument, float]], k: int, vectors: Vectors, words: Scores
    ) -> list[Found]:
        """Go down a ranking and put each document under the first before it that it is a near copy of.

        Args:
            ranked: documents with their scores, best first.
            k: how many distinct documents are wanted; near copies of them are looked for in all of the ranking.
            vectors: of the documents that have one, each of length 1.
            words: BM25 scores of the documents that have one.

        Returns:
            At most k distinct documents, best first.
        """
        kept: list[Found] = []
        for document, score in ranked:
            original, share = self._original(document, kept, vectors, words)
            if original is not None:
                original.folded.append((document, score, share))
            elif len(kept) < k:
                kept.append(Found(document, score))
        return kept

    def _original(
        self, document: StoredDocument, kept: Sequence[Found], vectors: Vectors, words: Scores
    ) -> tuple[Found | None, float]:
        for each in kept:
            share = self.compare(document, each.document, vectors, words)
            if share >= SAME:
                return each, share
        return None, 0.0

    def compare(self, one: StoredDocument, other: StoredDocument, vectors: Vectors, words: Scores) -> float:
        """Give the similarity of two documents' texts, or 0 where something cheaper tells that it is small."""
        if one.text_sha256 == other.text_sha256:
            return 1.0
        pair = (one.id, other.id)
        if min(one.characters, other.characters) < _SHORTEST * max(one.characters, other.characters):
            return 0.0
        if vectors.keys() >= {*pair}:
            if float(vectors[one.id] @ vectors[other.id]) < _ALIKE:
                return 0.0
        elif words.keys() >= {*pair} and _ratio(words[one.id], words[other.id]) < _EQUAL:
            return 0.0
        return similarity(self._sketch(one), self._sketch(other))

    def _sketch(self, document: StoredDocument) -> Hashes:
        with self._lock:
            known = self._sketches.get(document.text_sha256)
            if known is not None:
                self._sketches.move_to_end(document.text_sha256)
                return known
        made = sketch(self._text(document.id))
        with self._lock:
            self._sketches[document.text_sha256] = made
            while len(self._sketches) > _KEPT:
                self._sketches.popitem(last=False)
        return made


def _ratio(one: float, other: float) -> float:
    """Divide the smaller by the larger; 1 where both are 0."""
    return min(one, other) / max(one, other) if max(one, other) > 0 else 1.0
