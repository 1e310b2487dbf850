"""What each step reads: windows of plain text for stage 1, queries with views of their documents for stage 2.

Every step has a random generator of its own, made from the seed, the stage and the step: the order of the data
is the same for every pooling, and a run that is taken up again goes on exactly where it stopped.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lmk_rag.encoding.network import TextTokenizer
from lmk_rag.training.config import Recipe
from lmk_rag.training.corpus import Corpus, Entry, TokenIds
from lmk_rag.training.reading import Piece, piece_length

TEMPLATES = (
    "what is {}?",
    "how does {} work?",
    "where is {} described?",
    "what does the text say about {}?",
    "which document is about {}?",
    "explain {}",
)
_SHORT = (4, 64)
_SENTENCE = (8, 60)
_TOO_ALIKE = 0.9
"""Documents whose openings have a higher cosine may be versions of one text: not drawn as neighbours of each other."""
_NEAR = 40
"""How many nearest documents a group of neighbours is drawn from."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A query and a view of its document: some of the document's windows, in reading order."""

    query: Piece
    document: tuple[Piece, ...]


class Examples:
    """Draws the examples of every step from a corpus."""

    def __init__(
        self,
        corpus: Corpus,
        recipe: Recipe,
        tokenizer: TextTokenizer,
        openings: npt.NDArray[np.float32] | None = None,
    ) -> None:
        """Count headings and weigh documents.

        Args:
            corpus: the training text.
            recipe: seed, window, granularities, sources, and what both stages draw.
            tokenizer: the base's.
            openings: a vector for the opening of each document, each of length 1, float32 (documents, d);
                without it no neighbours are drawn together.
        """
        self.corpus = corpus
        self.recipe = recipe
        self.openings = openings
        self._backend = tokenizer.backend
        heads = Counter(heading.lower() for entry in corpus.entries for heading, _, _ in entry.headings)
        self._unique = {heading for heading, count in heads.items() if count == 1}
        vocabulary = tokenizer.backend.get_vocab()
        self._words = np.zeros(max(vocabulary.values()) + 1, dtype=bool)
        self._words[[at for word, at in vocabulary.items() if word.removeprefix("##").isalpha()]] = True
        self._stop = vocabulary.get(".", -1)
        counts = Counter(entry.source for entry in corpus.entries)
        weights = np.array([recipe.sources.get(e.source, 1.0) / counts[e.source] for e in corpus.entries])
        if not weights.sum():
            raise ValueError("Every source of the training text has the weight 0: give one of [sources] more.")
        self._weights = weights / weights.sum()

    def texts(self, step: int) -> list[Piece]:
        """The windows of plain text of a step of stage 1."""
        rng = np.random.default_rng([self.recipe.seed, 1, step])
        settings = self.recipe.distillation
        pieces = []
        for index in rng.choice(len(self._weights), settings.texts, p=self._weights):
            ids = self.corpus.ids(self.corpus.entries[index])
            granularity = int(rng.choice(self.recipe.granularities))
            length = piece_length(granularity, self.recipe.window)
            if rng.random() < settings.short:
                length = min(length, int(rng.integers(*_SHORT, endpoint=True)))
            start = int(rng.integers(max(len(ids) - length, 0) + 1))
            pieces.append(Piece(np.array(ids[start : start + length]), granularity))
        return pieces

    def pairs(self, step: int) -> list[Pair]:
        """The pairs of a step of stage 2, each of another document."""
        rng = np.random.default_rng([self.recipe.seed, 2, step])
        return [self._pair(self.corpus.entries[index], rng) for index in self._documents(rng)]

    def _documents(self, rng: np.random.Generator) -> list[int]:
        """Documents of a step: groups of neighbours where openings are known, else independent draws."""
        settings = self.recipe.contrastive
        wanted = min(settings.pairs, len(self._weights))
        chosen: list[int] = []
        while len(chosen) < wanted:
            seed = int(rng.choice(len(self._weights), p=self._weights))
            if seed in chosen:
                continue
            chosen.append(seed)
            if self.openings is not None and settings.neighbours > 1:
                near = self._near(seed, chosen)
                size = min(settings.neighbours - 1, wanted - len(chosen), len(near))
                chosen += rng.choice(near, size, replace=False).tolist()
        return chosen

    def _near(self, seed: int, chosen: Sequence[int]) -> npt.NDArray[np.int64]:
        assert self.openings is not None
        cosines = self.openings @ self.openings[seed]
        cosines[list(chosen)] = -1
        cosines[cosines > _TOO_ALIKE] = -1
        nearest: npt.NDArray[np.int64] = np.argsort(-cosines)[:_NEAR]
        kept: npt.NDArray[np.int64] = nearest[cosines[nearest] > -1]
        return kept

    def _pair(self, entry: Entry, rng: np.random.Generator) -> Pair:
        granularity = int(rng.choice(self.recipe.granularities))
        tokens = int(rng.choice(self.recipe.contrastive.tokens))
        length = min(piece_length(granularity, self.recipe.window), tokens)
        count = max(1, round(tokens / length))
        kind = rng.choice(self._kinds(entry))
        if kind in ("title", "abstract"):
            query = self._whole_query(entry, kind, rng)
            # half of the views hold the beginning, as a document that is read from its start does
            anchor = 0 if rng.random() < 0.5 else int(rng.integers(len(entry)))
            pieces = self._view(entry, anchor, length, count, rng)
        elif kind == "heading":
            query, pieces = self._heading(entry, length, count, rng)
        else:
            anchor = self._thirds(len(entry), rng)
            pieces = self._view(entry, anchor, length, count, rng)
            query, pieces = self._sentence(pieces, rng)
        return Pair(Piece(query, granularity), tuple(Piece(ids, granularity) for ids in pieces if len(ids)))

    def _kinds(self, entry: Entry) -> list[str]:
        kinds = ["sentence"]
        if entry.title:
            kinds.append("title")
        if len(entry.abstract) > 40:
            kinds.append("abstract")
        if self._headings(entry):
            kinds += ["heading", "heading"]
        return kinds

    def _headings(self, entry: Entry) -> list[tuple[str, int, int]]:
        return [
            (text, at, size)
            for text, at, size in entry.headings
            if size <= 24 and len(text.split()) > 1 and text.lower() in self._unique and at + size < len(entry) - 16
        ]

    def _whole_query(self, entry: Entry, kind: str, rng: np.random.Generator) -> TokenIds:
        if kind == "title":
            return self._tokens(self._asked(entry.title, rng))
        ids = self._tokens(entry.abstract)
        if rng.random() < 0.5 or len(ids) < 24:
            return ids[: self.recipe.window // 2]
        size = int(rng.integers(12, len(ids)))
        start = int(rng.integers(len(ids) - size + 1))
        return ids[start : start + size][: self.recipe.window // 2]

    def _heading(
        self, entry: Entry, length: int, count: int, rng: np.random.Generator
    ) -> tuple[TokenIds, list[TokenIds]]:
        """A heading as the query; in half of the views it is taken out of the text."""
        headings = self._headings(entry)
        wanted = self._thirds(len(entry), rng)
        text, at, size = min(headings, key=lambda heading: abs(heading[1] - wanted))
        pieces = self._view(entry, at, length, count, rng, lead=length // 2)
        if rng.random() < 0.5:
            gone = np.asarray(self.corpus.ids(entry)[at : at + size])
            pieces = [_without(piece, gone) for piece in pieces]
        return self._tokens(self._asked(text, rng)), pieces

    def _sentence(self, pieces: list[TokenIds], rng: np.random.Generator) -> tuple[TokenIds, list[TokenIds]]:
        """A sentence of one of the windows as the query; in two of three it is taken out of the window."""
        where = int(rng.integers(len(pieces)))
        piece = pieces[where]
        stops = np.concatenate([[-1], np.flatnonzero(piece == self._stop)])
        found = [
            (int(start) + 1, int(stop) + 1)
            for start, stop in itertools.pairwise(stops)
            if _SENTENCE[0] <= stop - start <= _SENTENCE[1] and self._words[piece[start + 1 : stop]].mean() > 0.7
        ]
        if found:
            start, stop = found[int(rng.integers(len(found)))]
        else:
            size = min(32, max(len(piece) // 2, 1))
            start = int(rng.integers(len(piece) - size + 1))
            stop = start + size
        if rng.random() < 2 / 3 and len(piece) - (stop - start) >= 32:
            pieces = [*pieces[:where], np.delete(piece, np.s_[start:stop]), *pieces[where + 1 :]]
        return piece[start:stop], pieces

    def _view(
        self, entry: Entry, anchor: int, length: int, count: int, rng: np.random.Generator, lead: int | None = None
    ) -> list[TokenIds]:
        """Windows of the document: the one around ``anchor``, which lies in its first ``lead`` tokens, and others.

        A document's vector is the mean over all its windows, so a draw of them stands for the whole.
        """
        ids = self.corpus.ids(entry)
        if len(ids) <= length:
            return [np.array(ids)]
        before = int(rng.integers(min(lead or length, anchor + 1)))
        first = anchor - before
        cells = [start for start in range(first % length, len(ids), length) if len(ids) - start >= 32]
        if first % length >= 32:
            cells.insert(0, 0)
        others = [start for start in cells if start != first]
        drawn = rng.choice(others, min(count - 1, len(others)), replace=False).tolist() if others else []
        bounds = [
            (start, start + length if start or not first % length else first % length) for start in [first, *drawn]
        ]
        return [np.array(ids[start:stop]) for start, stop in sorted(bounds)]

    def _asked(self, text: str, rng: np.random.Generator) -> str:
        return str(rng.choice(TEMPLATES)).format(text) if rng.random() < 0.25 else text

    def _tokens(self, text: str) -> TokenIds:
        return np.asarray(self._backend.encode(text, add_special_tokens=False).ids, dtype=np.uint16)

    @staticmethod
    def _thirds(length: int, rng: np.random.Generator) -> int:
        """A place in the beginning, the middle or the end of a document, each as likely."""
        third = int(rng.integers(3))
        return min(int((third + rng.random()) / 3 * length), length - 1)


def _without(ids: TokenIds, gone: TokenIds) -> TokenIds:
    """The ids without the first run that equals ``gone``."""
    if not 0 < len(gone) <= len(ids):
        return ids
    hits = np.flatnonzero((np.lib.stride_tricks.sliding_window_view(ids, len(gone)) == gone).all(axis=1))
    return np.delete(ids, np.s_[int(hits[0]) : int(hits[0]) + len(gone)]) if len(hits) else ids
