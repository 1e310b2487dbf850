"""Where in a document the evidence stands: spans that match become passages of whole sentences on one page.

A passage's offsets are exact: ``page_text[start:end] == passage.text``. Passages point and give context; they are
never the unit of retrieval.
"""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sentencex import get_sentence_boundaries

from indexes.records import PAGE_SEPARATOR

_LONGEST = 700
"""Code points of a passage, at most: what a reader takes in at a glance."""
_AROUND = 400
"""Code points looked at on each side of a span to find where its sentences begin and end."""
_TERMS_WEIGHT = 0.3
"""What finding all of a query's terms in a passage adds to its cosine, when passages are ranked."""
_MARGIN = 40
"""Code points beside a span in which its cut words are looked for."""
_GROWN = 8
"""Spans that are grown to passages, for each passage that is wanted, before the best of them are kept, at most."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of one page that answers or matches a query.

    Attributes:
        page: counts from 1.
        start: first code point in the page's own text.
        end: code point after the last.
        text: ``page_text[start:end]``.
        score: the cosine of the evidence that it grew from with the query, in [-1, 1]; where a document has no
            evidence vectors, the share of the query's terms that stand together there, rare ones counting more,
            in [0, 1].
        marks: where the query's terms stand, [start, end) in ``text``, ascending and apart.
    """

    page: int
    start: int
    end: int
    text: str
    score: float
    marks: tuple[tuple[int, int], ...] = ()


def term_pattern(terms: Sequence[str]) -> re.Pattern[str] | None:
    """Make a pattern that finds a query's terms as the starts of words, whatever their case; None without terms."""
    choice = _choice(terms)
    return re.compile(rf"(?<![^\W_])(?:{choice})", re.IGNORECASE) if choice else None


def occurrences(text: str, terms: Sequence[str]) -> list[tuple[int, str]]:
    """List what :func:`term_pattern` finds in a long text, several times as fast: starts, and words in lower case."""
    choice, lowered = _choice(terms), text.lower()
    if not choice:
        return []
    if len(lowered) != len(text):  # a few capitals have two letters in lower case
        found = re.finditer(rf"(?<![^\W_])(?:{choice})", text, re.IGNORECASE)
        return [(match.start(), match.group().casefold()) for match in found]
    # Without the flag and with nothing before it, the search skips to where one of the first letters stands.
    pattern = re.compile(choice)
    starts: list[tuple[int, str]] = []
    place = 0
    while match := pattern.search(lowered, place):
        place = match.end()
        if match.start() and lowered[match.start() - 1].isalnum():
            place = match.start() + 1
        else:
            starts.append((match.start(), match.group().casefold()))
    return starts


def _choice(terms: Sequence[str]) -> str:
    words = sorted({term.strip() for term in terms if term.strip()}, key=len, reverse=True)
    return "|".join(r"[\W_]+".join(map(re.escape, word.split())) for word in words)


def from_evidence(
    pages: Sequence[str],
    spans: npt.NDArray[np.int32],
    cosines: npt.NDArray[np.float32],
    terms: Sequence[str],
    count: int,
) -> list[Passage]:
    """Turn the evidence that matches a query best into passages, best first, none overlapping another.

    Args:
        pages: the texts of the document's pages.
        spans: code points [start, end) in the document's text, int32 (n, 2).
        cosines: each span's best cosine with the query, float32 (n,).
        terms: the query's terms; between spans of like cosine the one that holds more of them goes first.
        count: how many passages are wanted.
    """
    text = PAGE_SEPARATOR.join(pages)
    words = _Words(text, terms)
    likeliest = np.argsort(-cosines, kind="stable")[: max(10 * count, 50)]
    likeliest = np.union1d(likeliest, _spans_with_words(spans, words))
    # A span may begin or end inside a word that counts: looked at with a margin, then as the passage it grows to.
    shares = words.shares(spans[likeliest, 0] - _MARGIN, spans[likeliest, 1] + _MARGIN)
    likeliest = likeliest[_best_first(cosines[likeliest], shares)[: _GROWN * count]]
    starts = page_starts(pages)
    grown = [_grow(pages, starts, int(spans[at, 0]), int(spans[at, 1]), float(cosines[at])) for at in likeliest]
    inside = [words.share(passage.text) if passage else 0.0 for passage in grown]
    order = _best_first(cosines[likeliest], np.array(inside))
    return _distinct([grown[at] for at in order], count)


def from_terms(pages: Sequence[str], terms: Sequence[str], count: int) -> list[Passage]:
    """Find passages where a query's terms stand closest together: for documents without evidence vectors.

    Args:
        pages: the texts of the document's pages.
        terms: the query's terms.
        count: how many passages are wanted.

    Returns:
        Passages, best first; the document's beginning where no term occurs.
    """
    words = _Words(PAGE_SEPARATOR.join(pages), terms)
    scored = []
    first = 0
    for last, (start, word) in enumerate(words.found):
        end = start + len(word)
        while end - words.found[first][0] > _AROUND:
            first += 1
        inside = [word for _, word in words.found[first : last + 1]]
        scored.append((words.found[first][0], end, words.share_of(inside), len(inside)))
    scored.sort(key=lambda each: (-each[2], -each[3], each[0]))
    best = [(start, end, share) for start, end, share, _ in scored[: 50 * count]] or [(0, 1, 0.0)]
    starts = page_starts(pages)
    return _distinct((_grow(pages, starts, start, end, share) for start, end, share in best), count)


class _Words:
    """Where a query's terms stand in a document, and how much each of them says there: the rarer, the more."""

    def __init__(self, text: str, terms: Sequence[str]) -> None:
        self.pattern = term_pattern(terms)
        self.found = occurrences(text, terms)
        counts = Counter(word for _, word in self.found)
        self.weights = {word: 1 / (1 + math.log(count)) for word, count in counts.items()}
        self.all = sum(self.weights.values()) + max(len(terms) - len(self.weights), 0)

    def share(self, text: str) -> float:
        """Tell how much of the query stands in a piece of the document, 0 to 1."""
        return self.share_of(match.group().casefold() for match in self.pattern.finditer(text)) if self.pattern else 0.0

    def shares(self, starts: npt.NDArray[np.int32], ends: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """Tell the same of many stretches [start, end) of the document at once."""
        total = np.zeros(len(starts))
        by_word: dict[str, list[int]] = {word: [] for word in self.weights}
        for start, word in self.found:
            by_word[word].append(start)
        for word, places in by_word.items():
            weight = self.weights[word]
            total += weight * (np.searchsorted(places, starts) < np.searchsorted(places, ends - len(word), "right"))
        return np.minimum(total / self.all, 1.0) if self.all else total

    def share_of(self, words: Iterable[str]) -> float:
        """Tell the same of words that were found; a term that the document lacks counts like one that it has once."""
        return min(sum(self.weights.get(word, 0.0) for word in set(words)) / self.all, 1.0) if self.all else 0.0


def _spans_with_words(spans: npt.NDArray[np.int32], words: _Words) -> npt.NDArray[np.int64]:
    """List the spans that hold the start of a term."""
    starts = np.array([start for start, _ in words.found], dtype=np.int64)
    places = np.unique(np.searchsorted(spans[:, 0], starts, side="right") - 1)
    return places[places >= 0]


def _best_first(cosines: npt.NDArray[np.float32], shares: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    return np.argsort(-(cosines + _TERMS_WEIGHT * shares), kind="stable")


def _distinct(passages: Iterable[Passage | None], count: int) -> list[Passage]:
    """Keep the first ``count`` passages that overlap none before and hold a word: a ruled line tells nothing."""
    kept: list[Passage] = []
    for passage in passages:
        if passage is None or not any(map(str.isalnum, passage.text)):
            continue
        if not any(_overlap(passage, other) for other in kept):
            kept.append(passage)
        if len(kept) == count:
            break
    return kept


def page_starts(pages: Sequence[str]) -> list[int]:
    """Tell where each page begins in the document's text."""
    starts, position = [], 0
    for page in pages:
        starts.append(position)
        position += len(page) + len(PAGE_SEPARATOR)
    return starts


def _grow(pages: Sequence[str], starts: Sequence[int], start: int, end: int, score: float) -> Passage | None:
    """Cut a span to the page that holds most of it, then grow it to whole sentences there."""
    first = max(bisect_right(starts, start) - 1, 0)
    last = max(bisect_right(starts, max(end - 1, start)) - 1, first)
    clipped = [
        (number, max(start - starts[number], 0), min(end - starts[number], len(pages[number])))
        for number in range(first, last + 1)
    ]
    number, begin, stop = max(clipped, key=lambda each: each[2] - each[1])
    if stop <= begin:
        return None
    begin, stop = _to_sentences(pages[number], begin, stop)
    text = pages[number][begin:stop]
    return Passage(number + 1, begin, stop, text, score) if text else None


def _to_sentences(page: str, start: int, end: int) -> tuple[int, int]:
    """Move borders out to the sentences' own, as far as a passage may be long, and in from white space."""
    low, high = max(start - _AROUND, 0), min(end + _AROUND, len(page))
    sentences = [
        (low + each["start_index"], low + each["end_index"]) for each in get_sentence_boundaries("en", page[low:high])
    ]
    begin = max((a for a, _ in sentences if a <= start and (a > low or low == 0)), default=start)
    stop = min((b for _, b in sentences if b >= end and (b < high or high == len(page))), default=end)
    if stop - begin > _LONGEST:
        begin = start if start - begin > stop - end else begin
        stop = end if stop - begin > _LONGEST else stop
    begin, stop = _to_words(page, begin, stop)
    while begin < stop and page[begin].isspace():
        begin += 1
    while stop > begin and page[stop - 1].isspace():
        stop -= 1
    return begin, stop


def _to_words(page: str, start: int, end: int) -> tuple[int, int]:
    while start > 0 and page[start - 1].isalnum() and page[start : start + 1].isalnum():
        start -= 1
    while end < len(page) and page[end].isalnum() and page[end - 1].isalnum():
        end += 1
    return start, end


def _overlap(one: Passage, other: Passage) -> bool:
    return one.page == other.page and one.start < other.end and other.start < one.end
