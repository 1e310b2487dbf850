"""Where in a document the evidence stands: spans that match become passages of whole sentences on one page.

A passage's offsets are exact: ``page_text[start:end] == passage.text``. Passages point and give context; they are
never the unit of retrieval.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
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
"""What finding all of a query's terms in a span adds to its cosine, when spans are ranked."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of one page that answers or matches a query.

    Attributes:
        page: counts from 1.
        start: first code point in the page's own text.
        end: code point after the last.
        text: ``page_text[start:end]``.
        score: the best cosine of its evidence vectors with the query, in [-1, 1]; where a document has no evidence
            vectors, the share of the query's terms that stand in it, in [0, 1].
    """

    page: int
    start: int
    end: int
    text: str
    score: float


def term_pattern(terms: Sequence[str]) -> re.Pattern[str] | None:
    """Make a pattern that finds a query's terms as the starts of words, whatever their case; None without terms."""
    words = sorted({term.strip() for term in terms if term.strip()}, key=len, reverse=True)
    if not words:
        return None
    spaced = (r"[\W_]+".join(map(re.escape, word.split())) for word in words)
    return re.compile(r"(?<![^\W_])(?:" + "|".join(spaced) + ")", re.IGNORECASE)


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
    pattern = term_pattern(terms)
    likeliest = np.argsort(-cosines, kind="stable")[: max(10 * count, 50)]
    if pattern is not None:
        likeliest = np.union1d(likeliest, _spans_with_terms(text, spans, pattern))
    coverage = np.array([_coverage(text[start:end], pattern, len(terms)) for start, end in spans[likeliest]])
    order = likeliest[np.argsort(-(cosines[likeliest] + _TERMS_WEIGHT * coverage), kind="stable")]
    best = zip(spans[order].tolist(), cosines[order].tolist(), strict=True)
    return _distinct(pages, [(start, end, cosine) for (start, end), cosine in best], count)


def from_terms(pages: Sequence[str], terms: Sequence[str], count: int) -> list[Passage]:
    """Find passages where a query's terms stand closest together: for documents without evidence vectors.

    Args:
        pages: the texts of the document's pages.
        terms: the query's terms.
        count: how many passages are wanted.

    Returns:
        Passages, best first; the document's beginning where no term occurs.
    """
    pattern = term_pattern(terms)
    text = PAGE_SEPARATOR.join(pages)
    found = [(m.start(), m.end(), m.group().casefold()) for m in pattern.finditer(text)] if pattern else []
    scored = []
    first = 0
    for last, (_, end, _) in enumerate(found):
        while end - found[first][0] > _AROUND:
            first += 1
        inside = found[first : last + 1]
        distinct = len({word for _, _, word in inside})
        scored.append((inside[0][0], end, min(distinct / len(terms), 1.0), len(inside)))
    scored.sort(key=lambda each: (-each[2], -each[3], each[0]))
    spans = [(start, end, score) for start, end, score, _ in scored[: 50 * count]]
    return _distinct(pages, spans or [(0, min(len(text), 1), 0.0)], count)


def _spans_with_terms(text: str, spans: npt.NDArray[np.int32], pattern: re.Pattern[str]) -> npt.NDArray[np.int64]:
    """List the spans that hold the start of a term."""
    starts = np.fromiter((match.start() for match in pattern.finditer(text)), dtype=np.int64)
    places = np.unique(np.searchsorted(spans[:, 0], starts, side="right") - 1)
    return places[places >= 0]


def _coverage(text: str, pattern: re.Pattern[str] | None, terms: int) -> float:
    if pattern is None:
        return 0.0
    return min(len({match.group().casefold() for match in pattern.finditer(text)}) / terms, 1.0)


def _distinct(pages: Sequence[str], spans: Sequence[tuple[int, int, float]], count: int) -> list[Passage]:
    """Grow spans to passages and keep the first ``count`` that overlap none before."""
    starts = _page_starts(pages)
    kept: list[Passage] = []
    for start, end, score in spans:
        passage = _grow(pages, starts, start, end, score)
        if passage is not None and not any(_overlap(passage, other) for other in kept):
            kept.append(passage)
        if len(kept) == count:
            break
    return kept


def _page_starts(pages: Sequence[str]) -> list[int]:
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
