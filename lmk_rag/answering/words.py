"""Patterns that find words of a question in a text."""

import re

_ENDINGS = re.compile(r"(?:ations?|ings?|ies|ied|ers?|ed|es|s|e|y)$")
_SHORTEST_STEM = 4


def written(words: str) -> str:
    """Give what finds words that follow each other, whatever the last one's ending: "addresses" finds "Address".

    Args:
        words: one or more, separated by blanks.
    """
    *before, last = words.split()
    return r"[\W_]+".join([*map(re.escape, before), re.escape(_stem(last))])


def as_typed(words: str) -> str:
    """Give what finds words that follow each other as they are: "dump" does not find "dumps"."""
    return r"[\W_]+".join(map(re.escape, words.split())) + r"(?![^\W_])"


def _stem(word: str) -> str:
    ending = _ENDINGS.search(word)
    return word[: ending.start()] if ending and ending.start() >= _SHORTEST_STEM else word
