"""A follow-up question becomes one that stands alone, so that it can be searched for."""

import re
from collections.abc import Sequence

from indexes.query import STOP_WORDS, query_terms
from lmk_rag.answering.chat import Chat
from lmk_rag.answering.prompt import standalone_messages

_POINTING = re.compile(
    r"\b(it|its|they|them|their|theirs|this|that|these|those|he|she|him|her|his|one|ones|former|latter|same)\b", re.I
)
_GOING_ON = re.compile(r"\s*(and|or|but|also|then|what about|how about)\b", re.I)
_FEW_WORDS = 2
_LONGEST = 300

History = Sequence[tuple[str, str]]
"""Questions and their answers so far, oldest first."""


def rewrite(question: str, history: History, chat: Chat) -> str:
    """Let a model write a follow-up so that it stands alone; where it writes nothing usable, the question stays.

    Raises:
        ChatError: the model does not answer.
    """
    if not history:
        return question
    lines = [line.strip(" \"'*") for line in chat.ask(standalone_messages(question, history)).splitlines()]
    return next((line for line in lines if 0 < len(line) <= _LONGEST), question)


def topic_of(question: str, history: History) -> str:
    """Give the words of the question before that one is about which is short or points back, without a model.

    For "And for IPv6?" after "What is the largest UDP datagram?" these are "largest UDP datagram"; a question that was
    a follow-up itself takes along what it pointed at. Empty where a question stands alone.
    """
    if not history or not (points_back(question) or len(_words(question)) <= _FEW_WORDS):
        return ""
    *before, (earlier, _) = history
    if points_back(earlier):
        earlier = f"{topic_of(earlier, before)} {earlier}"
    present = {word.casefold() for word in _words(question)}
    return " ".join(word for word in _words(earlier) if word.casefold() not in present)


def own_terms(question: str) -> list[str]:
    """Return what a question names itself: its terms without stop words, none where it only points back."""
    return [term for term in query_terms(question) if term not in STOP_WORDS]


def points_back(question: str) -> bool:
    """Tell whether a question cannot be understood without the one before."""
    return bool(_POINTING.search(question) or _GOING_ON.match(question))


def _words(text: str) -> list[str]:
    stripped = (word.strip(".,;:?!\"'()[]") for word in text.split())
    return [word for word in stripped if own_terms(word)]
