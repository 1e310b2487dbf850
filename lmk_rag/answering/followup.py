"""A follow-up question becomes one that stands alone, so that it can be searched for."""

import re
from collections.abc import Sequence

from indexes.fulltext import query_terms
from lmk_rag.answering.chat import Chat
from lmk_rag.answering.prompt import standalone_messages

_POINTING = re.compile(
    r"\b(it|its|they|them|their|theirs|this|that|these|those|he|she|him|her|his|one|ones|former|latter|same)\b", re.I
)
_FEW_TERMS = 2
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


def join(question: str, history: History) -> str:
    """Put the terms of the question before in front of one that is short or points back, without a model."""
    if not history or not (_POINTING.search(question) or len(query_terms(question)) <= _FEW_TERMS):
        return question
    before = [term for term in query_terms(history[-1][0]) if term not in query_terms(question)]
    return " ".join([*before, question])
