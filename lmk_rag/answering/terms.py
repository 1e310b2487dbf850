"""A question's words, and how much each of them says in a collection: the rarer, the more."""

import math
import re

from indexes.collection import Collection
from indexes.query import STOP_WORDS, query_terms
from lmk_rag.answering.definitions import Definition
from lmk_rag.answering.words import as_typed, written

_ASKING = frozenset(
    """
    called define defined definition describe described describes difference different differ done exist exists explain
    explained find get give given happen happens make mean meaning means please purpose say said says show tell use
    used uses using want way work worked working works
    """.split()  # noqa: SIM905 - a list would take a line a word
)
"""Words that ask rather than say what about."""
_TYPED = re.compile(r"[^\W_]+")
_IDENTIFIER = re.compile(r"\w+(?:(?:\.|::|->)\w+)+|\w*_\w+|\w+(?=\()")
"""A name of a program's: "json.dump", "lru_cache", "dump()"; another ending makes another name of it."""
_OWN = 3 / 4
"""How much of a follow-up's weight its own words have; the rest is that of what it is about."""
_NUMBER = re.compile(
    r"\bhow (?:big|deep|fast|high|large|long|many|much|often|old|short|small|wide)\b|"
    r"\b(?:what|which)(?: is the)? (?:\w+ )?(?:length|limit|number|port|size|version|year)\b",
    re.IGNORECASE,
)


class QuestionTerms:
    """The terms of a question with their weights; tells which share of them a text holds.

    Attributes:
        terms: the words and quoted phrases that say what the question is about, for a follow-up with those of its
            topic behind them; an identifier counts once, not with each of its parts.
        definition: of what the question asks the meaning of; None where it asks something else.
        wants_number: whether it asks how many, how large, which port.
    """

    def __init__(self, collection: Collection, question: str, topic: str = "") -> None:
        """Look the terms up.

        Args:
            collection: that is asked.
            question: as it is asked.
            topic: for a follow-up, the words of the questions before, which say what it is about.
        """
        own = _terms(question)
        if topic:
            own = [term for term in own if term not in STOP_WORDS]
        about = [term for term in _terms(topic) if term not in own] if topic else []
        self.terms = own + about
        self.definition = Definition.asked(question)
        self.wants_number = _NUMBER.search(question) is not None
        typed = " ".join(_IDENTIFIER.findall(f"{topic} {question}"))
        names = frozenset(_TYPED.findall(typed.lower()))
        self._weighted = _weighted(collection, own, names, _OWN if about else 1.0)
        self._weighted += _weighted(collection, about, names, 1 - _OWN if own else 1.0)

    def share(self, text: str) -> float:
        """Tell how much of the question's weight stands in a text: 0 for none of its terms, 1 for all."""
        return min(sum(weight for weight, pattern in self._weighted if pattern.search(text)), 1.0)


def _terms(question: str) -> list[str]:
    """List what a question names: of "shutil.copy2" the words "shutil" and "copy2", not "copy" nor the whole."""
    found = query_terms(question)
    typed = set(_TYPED.findall(question.lower()))
    kept = [term for term in found if _counts(term, typed, found)] or found
    return [term for term in kept if term not in _ASKING] or kept


def _counts(term: str, typed: set[str], found: list[str]) -> bool:
    words = term.split()
    if len(words) == 1 or not term.isascii():  # a script without spaces is searched by pairs of characters
        return term in typed or not term.isascii()
    return "".join(words) not in typed and any(len(word) > 1 and word not in found for word in words)


def _weighted(
    collection: Collection, terms: list[str], names: frozenset[str], whole: float
) -> list[tuple[float, re.Pattern[str]]]:
    """Weigh terms by their rarity, together as much as they are to weigh; those in names are found as they are."""
    documents = collection.count()
    weights = [math.log1p(documents / (1 + count)) for count in collection.holding(terms)]
    total = sum(weights)
    return [
        (whole * weight / total, _pattern(as_typed(term) if names.issuperset(term.split()) else written(term)))
        for weight, term in zip(weights, terms, strict=True)
        if total
    ]


def _pattern(found: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_]){found}", re.IGNORECASE)
