"""A question becomes an answer whose citations are checked; with a language model or without one."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from indexes.filters import Filter
from lmk_rag.answering.chat import Chat, ChatError
from lmk_rag.answering.citations import check
from lmk_rag.answering.context import Block, build_context
from lmk_rag.answering.extractive import Findings, look, narrow, nearest, quote
from lmk_rag.answering.followup import History, points_back, rewrite, topic_of
from lmk_rag.answering.prompt import LACKING, question_messages
from lmk_rag.answering.records import NOT_FOUND, Answer, Citation
from lmk_rag.search import Searcher

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = ["NOT_FOUND", "Answer", "Citation", "answer", "stream"]


def answer(
    searcher: Searcher,
    question: str,
    llm: "str | BaseChatModel | None" = None,
    history: History = (),
    k: int = 4,
    filter: Filter | None = None,
) -> Answer:
    """Answer a question from a collection; :func:`stream` without the pieces.

    Args:
        searcher: over the collection.
        question: any text; with a history it may be a follow-up.
        llm: a language model, see :meth:`lmk_rag.answering.chat.Chat.load`; None for quoted sentences. One that
            cannot be had or does not answer is told of in the notes, and sentences are quoted.
        history: questions and answers before this one, oldest first.
        k: documents that the answer may rest on, at least 1.
        filter: only documents that it lets through.

    Raises:
        ValueError: for a k below 1.
        CollectionError: where the collection cannot be searched.
    """
    return next(piece for piece in stream(searcher, question, llm, history, k, filter) if isinstance(piece, Answer))


def stream(
    searcher: Searcher,
    question: str,
    llm: "str | BaseChatModel | None" = None,
    history: History = (),
    k: int = 4,
    filter: Filter | None = None,
) -> Iterator[str | Answer]:
    """Answer a question piece by piece.

    Yields:
        A language model's text as it comes, unchecked; at the end, in any case, the checked :class:`Answer`, whose
        text takes the place of the pieces. Without a model there are no pieces.
    """
    failed: tuple[str, ...] = ()
    if llm is not None and question.strip():
        try:
            chat = Chat.load(llm)
            findings = look(searcher, rewrite(question, history, chat), k, filter)
            yield from _written(findings, chat)
            return
        except ChatError as error:
            failed = (f"{error} Sentences are quoted instead.",)
    quoted = _quoted(searcher, question, history, k, filter)
    yield replace(quoted, notes=(*failed, *quoted.notes))


def _quoted(searcher: Searcher, question: str, history: History, k: int, filter: Filter | None) -> Answer:
    """Quote sentences: for a follow-up those that it can mean, else, where it can stand alone, as if it did."""
    topic = topic_of(question, history)
    if topic or (history and points_back(question)):
        findings = look(searcher, question, k, filter, topic)
        quoted = quote(narrow(findings, searcher.collection, question, history[-1][1]))
        if quoted.found or points_back(question):
            return quoted
    return quote(look(searcher, question, k, filter))


def _written(findings: Findings, chat: Chat) -> Iterator[str | Answer]:
    """Let a model write the answer over numbered passages, then check it."""
    blocks = build_context(findings.results.hits, findings.pages)
    if not blocks:
        yield Answer(NOT_FOUND, False, (), chat.name, findings.results.notes, nearest(findings))
        return
    pieces = []
    for piece in chat.stream(question_messages(findings.results.query, blocks)):
        pieces.append(piece)
        yield piece
    yield _checked("".join(pieces), blocks, chat, findings)


def _checked(written: str, blocks: list[Block], chat: Chat, findings: Findings) -> Answer:
    notes = findings.results.notes
    if not written.strip() or _says_lacking(written):
        return Answer(NOT_FOUND, False, (), chat.name, notes, nearest(findings))
    text, citations, doubts = check(written, blocks)
    if not citations:
        doubts.append("The answer cites no passage, so that nothing in it is checked.")
    return Answer(text, bool(citations), tuple(citations), chat.name, (*notes, *doubts))


def _says_lacking(written: str) -> bool:
    """Whether a text says in its first sentence only that the passages lack the answer."""
    said = written.strip(" \n.\"'*`")
    return said.casefold() == LACKING.casefold() or re.match(rf"{LACKING}\W*?(?:[.!:\n]|$)", said) is not None
