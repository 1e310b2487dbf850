"""A question's words, and how much each of them says in a collection: the rarer, the more."""

import math
import re

from indexes.collection import Collection
from indexes.fulltext import query_terms

_ASKING = frozenset(
    """
    called define defined definition describe described describes difference differ done exist exists explain
    explained find give given happen happens mean meaning means please purpose say said says show tell use used uses
    using work worked working works
    """.split()  # noqa: SIM905 - a list would take a line a word
)
"""Words that ask rather than say what about."""
_ENDINGS = re.compile(r"(?:ations?|ings?|ies|ied|ers?|ed|es|s|e|y)$")
_SHORTEST_STEM = 4


class QuestionTerms:
    """The terms of a question with their weights; tells which share of them a text holds."""

    def __init__(self, collection: Collection, question: str) -> None:
        terms = query_terms(question)
        self.terms = [term for term in terms if term not in _ASKING] or terms
        documents = collection.count()
        counts = collection.holding(self.terms)
        self._weights = [math.log1p(documents / (1 + count)) for count in counts]
        self._patterns = [_pattern(term) for term in self.terms]
        self._all = sum(self._weights)

    def share(self, text: str) -> float:
        """Tell how much of the question's weight stands in a text: 0 for none of its terms, 1 for all."""
        if not self._all:
            return 0.0
        found = zip(self._weights, self._patterns, strict=True)
        return sum(weight for weight, pattern in found if pattern.search(text)) / self._all


def _pattern(term: str) -> re.Pattern[str]:
    """Make a pattern that finds a term whatever its case and ending: "addresses" finds "Address"."""
    words = [re.escape(word) for word in term.split()[:-1]] + [re.escape(_stem(term.rsplit(maxsplit=1)[-1]))]
    return re.compile(r"(?<![^\W_])" + r"[\W_]+".join(words), re.IGNORECASE)


def _stem(word: str) -> str:
    ending = _ENDINGS.search(word)
    return word[: ending.start()] if ending and ending.start() >= _SHORTEST_STEM else word
