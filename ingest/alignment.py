"""Where a piece of a cleaned text stands in the raw text that it was cleaned from.

Cleaning joins words at line ends, folds ligatures, composes accents and leaves characters out, so offsets do not carry
over. What both texts have in common are their visible characters in their order; those are compared.
"""

import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher

_IGNORED = {"Cc", "Cf", "Cn", "Co", "Cs", "Mn", "Pd", "Zl", "Zp", "Zs"}
"""Categories that cleaning may add, drop or change: blanks, hyphens, accents, control and private-use characters."""
_ENOUGH = 0.6
"""Share of a piece's visible characters that must be found again."""
_GAP = 4
"""Visible characters that may be missing inside one range."""
_NOISE = 3
"""Runs of fewer characters than this say nothing about where a piece stands."""

Range = tuple[int, int]


def find_ranges(cleaned: str, raw: Sequence[str], start: int, end: int) -> list[Range]:
    """Find the raw characters of ``cleaned[start:end]``.

    Args:
        cleaned: the whole cleaned text.
        raw: the raw text as a sequence of characters; one may be a string of any length, the empty one included.
        start: first code point of the piece.
        end: code point after its last.

    Returns:
        Ranges [first, last + 1) of positions in ``raw``, ascending; empty where the piece is not found again.
    """
    text, owners = _visible(cleaned)
    raw_text, raw_owners = _visible(raw)
    first, last = _bounds(owners, start, end)
    if first == last:
        return []
    piece = text[first:last]
    if text == raw_text:
        found = [(first, last)]
    else:
        found = _exact(piece, raw_text, first * len(raw_text) / len(text)) or _similar(piece, raw_text)
    return [(raw_owners[a], raw_owners[b - 1] + 1) for a, b in found]


def _visible(text: Sequence[str]) -> tuple[str, list[int]]:
    """Give the visible characters of a text, decomposed, and the position that each of them comes from."""
    kept: list[str] = []
    owners: list[int] = []
    for position, character in enumerate(text):
        if character.isascii():  # most are, and they need no decomposition
            visible = character if character.isprintable() and character not in " -" else ""
        else:
            decomposed = unicodedata.normalize("NFKD", character)
            visible = "".join(each for each in decomposed if unicodedata.category(each) not in _IGNORED)
        kept.append(visible)
        owners += [position] * len(visible)
    return "".join(kept), owners


def _bounds(owners: Sequence[int], start: int, end: int) -> Range:
    from bisect import bisect_left

    return bisect_left(owners, start), bisect_left(owners, end)


def _exact(piece: str, text: str, expected: float) -> list[Range]:
    """Find the occurrence that is nearest to where it is expected."""
    found = []
    at = text.find(piece)
    while at >= 0:
        found.append(at)
        at = text.find(piece, at + 1)
    if not found:
        return []
    nearest = min(found, key=lambda each: abs(each - expected))
    return [(nearest, nearest + len(piece))]


def _similar(piece: str, text: str) -> list[Range]:
    """Find the runs of characters that both have in the same order, where they are enough of the piece."""
    matcher = SequenceMatcher(None, text, piece, autojunk=False)
    blocks = [block for block in matcher.get_matching_blocks() if block.size >= _NOISE]
    if sum(block.size for block in blocks) < _ENOUGH * len(piece):
        return []
    ranges: list[Range] = []
    for block in blocks:
        if ranges and block.a - ranges[-1][1] <= _GAP:
            ranges[-1] = (ranges[-1][0], block.a + block.size)
        else:
            ranges.append((block.a, block.a + block.size))
    return ranges
