"""What a language model gets to read: passages of the best documents in reading order, within a token budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from lmk_rag.passages import Passage
from lmk_rag.search import Hit

BUDGET = 3000
"""Tokens of all passages together, about; small models have windows of 4,096."""
_CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Block:
    """A numbered piece of one page, from one passage or several that touch.

    Attributes:
        n: its number in the prompt, counting from 1.
        hit: the document.
        page: counts from 1.
        start: first code point in the page's own text.
        end: code point after the last.
        text: ``page_text[start:end]``.
    """

    n: int
    hit: Hit
    page: int
    start: int
    end: int
    text: str


def build_context(hits: Sequence[Hit], pages: Mapping[int, Sequence[str]], budget: int = BUDGET) -> list[Block]:
    """Choose passages, every document's best before any document's second, and put them in reading order.

    Args:
        hits: best first; the best document's passages come first in the prompt as well.
        pages: the texts of each hit's pages, by the document's id.
        budget: tokens of all passages together, by :func:`count_tokens`; the first passage is kept in any case.
    """
    chosen: dict[int, list[Passage]] = {hit.id: [] for hit in hits}
    used = 0
    for layer in zip_longest(*(hit.passages for hit in hits)):
        for hit, passage in zip(hits, layer, strict=True):
            cost = count_tokens(passage.text) if passage else 0
            if passage and (used + cost <= budget or not used):
                chosen[hit.id].append(passage)
                used += cost
    pieces = [(hit, page, start, end) for hit in hits for page, start, end in _merged(chosen[hit.id], pages[hit.id])]
    return [
        Block(n, hit, page, start, end, pages[hit.id][page - 1][start:end])
        for n, (hit, page, start, end) in enumerate(pieces, start=1)
    ]


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text for any language model: four ASCII characters are one, any other is one alone."""
    ascii_characters = sum(character.isascii() for character in text)
    return len(text) - ascii_characters + -(-ascii_characters // _CHARACTERS_A_TOKEN)


def _merged(passages: Sequence[Passage], pages: Sequence[str]) -> list[tuple[int, int, int]]:
    """Join passages that overlap or have only white space between them; gives (page, start, end) in reading order."""
    merged: list[tuple[int, int, int]] = []
    for passage in sorted(passages, key=lambda each: (each.page, each.start)):
        if merged:
            page, start, end = merged[-1]
            if page == passage.page and not pages[page - 1][end : passage.start].strip():
                merged[-1] = (page, start, max(end, passage.end))
                continue
        merged.append((passage.page, passage.start, passage.end))
    return merged
