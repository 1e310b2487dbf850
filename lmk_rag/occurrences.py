"""Where a query's terms stand in a document, as the full-text index finds them: exact places, fast in long texts.

`indexes.highlight` asks the index's own tokenizer, which takes too long for whole documents, and does not tell one term
from another.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from indexes.inflections import stem
from indexes.query import split_identifiers

Places = list[tuple[int, int]]

_WORD = re.compile(r"[^\W_]+")
_REST = re.compile(r"[^\W_]*")
_SMALL = frozenset("abcdefghijklmnopqrstuvwxyz")
# Marks belong to the letter in front of them and count for nothing.
_MARKS = re.compile("[\u0300-\u036f]")
# Small letters that fold to another one: Latin ones with diacritics, and forms of Greek ones.
_FOLDED = re.compile("[\u00b5\u00df-\u024f\u03c2\u03d0-\u03f5\u1e00-\u1eff]")
# What a stem may have in place of what its words go on with: "studi" for "study", "hope" for "hoping", "capabl" for
# "capability".
_STEM_END = re.compile("(?<=b)l$|[eiy]$")
_LONGEST_STEMMED = 64  # letters; longer words are no language's


def occurrences(text: str, terms: Sequence[str]) -> list[Places]:
    """Find each term as written, inflected, with other accents, and as part of an identifier.

    A word counts for a term of one word where it has the same stem, or where it falls apart ("RFC2119", "ThreadPool",
    any script without spaces) and one of its parts has that stem or several in a row are the term. The words of a
    phrase follow each other, either as words or as parts of words.

    Args:
        text: a whole document's, of any length.
        terms: words and phrases, as `indexes.query.query_terms` gives them.

    Returns:
        For each term the [start, end) of where it stands, in code points, ascending; marks behind a letter are inside.
    """
    document = _Document(text)
    return [document.places(term) for term in terms]


class _Document:
    """A text to look for terms in: as it is written, for where words fall apart, and folded, for their letters."""

    def __init__(self, text: str) -> None:
        marks = [] if text.isascii() else [mark.start() for mark in _MARKS.finditer(text)]
        self._written = _MARKS.sub("", text) if marks else text
        self._folded = _fold(self._written)
        self._marks = [place - before for before, place in enumerate(marks)]
        self._known: dict[str, dict[int, int]] = {}
        self._last: tuple[int, int, dict[int, int]] = (0, 0, {})

    def places(self, term: str) -> Places:
        """List where a term stands in the text that was given."""
        words = _WORD.findall(_fold(_MARKS.sub("", term)))
        beginnings = [_beginning(word) for word in words]
        if not words or not all(beginning in self._folded for beginning in beginnings):
            return []
        stems = [_stem(word) for word in words]
        found: Places = []
        lengths: dict[tuple[str, int], int] = {}  # what a single word's depends on is the word around it alone
        for place, start, end in self._candidates(beginnings[0]):
            around = self._written[start:end], place - start
            length = lengths.get(around)
            if length is None:
                length = self._length(place, start, end, words, stems)
                if len(words) == 1:
                    lengths[around] = length
            if length:
                found.append((self._with_marks(place), self._with_marks(place + length)))
        return found

    def _length(self, place: int, start: int, end: int, words: Sequence[str], stems: Sequence[str]) -> int:
        """Tell how long a term is that stands at a place; 0 if it does not stand there."""
        last = (
            (place == start and self._row(place, start, end, stems, apart=False))
            or self._row(place, start, end, stems, apart=True)
            or (len(words) == 1 and self._joined(place, start, end, words[0]))
        )
        return last - place if last else 0

    def _with_marks(self, place: int) -> int:
        return place + bisect_right(self._marks, place)

    def _candidates(self, beginning: str) -> Iterator[tuple[int, int, int]]:
        """Yield where a word or a part of one may begin so, ascending, and the [start, end) of the word around it."""
        written, find = self._written, self._folded.find
        start = end = 0
        at = find(beginning)
        while at >= 0:
            # No word falls apart between two small letters.
            if not at or written[at] not in _SMALL or written[at - 1] not in _SMALL:
                if at >= end:
                    start = at
                    while start > end and written[start - 1].isalnum():
                        start -= 1
                    end = _end(written, at)
                yield at, start, end
            at = find(beginning, at + 1)

    def _row(self, place: int, start: int, end: int, stems: Sequence[str], apart: bool) -> int:
        """Tell where words end that follow each other from a place in the word at [start, end) on.

        Args:
            place: where the first begins.
            start: of the word that the place is in.
            end: of that word.
            stems: of the words that are looked for.
            apart: whether words are taken for their parts.

        Returns:
            The end of the last; 0 where other words stand there.
        """
        for wanted in stems:
            if place == end:
                behind = _WORD.search(self._written, end)
                if behind is None:
                    return 0
                start, end = behind.span()
                place = start
            last = start + self._parts(start, end).get(place - start, 0) if apart else end
            if not self._has_stem(place, last, wanted):  # nothing has one, where no part begins
                return 0
            place = last
        return place

    def _has_stem(self, start: int, end: int, stem: str) -> bool:
        word = self._folded[start:end]
        several = end - start > 2 and self._written[end - 1] == "s" and self._written[start : end - 1].isupper()
        return _stem(word) == stem or (several and _stem(word[:-1]) == stem)  # no stemmer knows "RFCs" and "CPUs"

    def _joined(self, place: int, start: int, end: int, word: str) -> int:
        """Tell where several parts of the word at [start, end) end that make up another word; 0 if they do not."""
        parts, last = self._parts(start, end), place + len(word)
        borders = place - start in parts and (last == end or last - start in parts)
        return last if borders and self._folded.startswith(word, place) else 0

    def _parts(self, start: int, end: int) -> dict[int, int]:
        """Cut the word at [start, end) as the index does: where its parts begin and end, counted from its start."""
        if self._last[:2] != (start, end):
            word = self._written[start:end]
            if word not in self._known:
                _, places = split_identifiers(word)
                cuts = (places[at + 1] for at, place in enumerate(places) if place < 0)
                self._known[word] = dict(pairwise([0, *cuts, len(word)]))
            self._last = start, end, self._known[word]
        return self._last[2]


def _end(text: str, place: int) -> int:
    rest = _REST.match(text, place)
    return rest.end() if rest else place


def _fold(text: str) -> str:
    """Take capitals and diacritics away, a letter for a letter, as the full-text index does."""
    if text.isascii():
        return text.lower()
    small = text.replace("İ", "i").lower()  # the one capital that has two letters in lower case
    for letter in set(_FOLDED.findall(small)):
        small = small.replace(letter, _plain(letter))
    return small


def _plain(letter: str) -> str:
    small = letter.casefold()
    apart = unicodedata.normalize("NFD", small)
    if apart[0].isascii() and all(map(unicodedata.combining, apart[1:])):
        return apart[0]
    return small if len(small) == 1 else letter  # "ss" for "ß"


def _stem(word: str) -> str:
    return stem(word) if len(word) <= _LONGEST_STEMMED else word


def _beginning(word: str) -> str:
    """Return what a word and the others with its stem begin with."""
    beginning = _STEM_END.sub("", _stem(word))
    while not word.startswith(beginning):  # of "dying" the stem is "die"
        beginning = beginning[:-1]
    return beginning or word
