"""An answer and what it cites."""

from dataclasses import dataclass
from typing import Any

NOT_FOUND = "Not found in these documents."


@dataclass(frozen=True, slots=True)
class Citation:
    """Where words of a document stand that an answer rests on.

    Attributes:
        n: the number that the answer's text uses, ``[n]``; counts from 1.
        id: the document's id in its collection.
        path: the file's absolute path (the external id of a document without a file).
        page: counts from 1.
        start: first code point in the page's own text.
        end: code point after the last.
        quote: ``page_text[start:end]``, word for word.
        title: the document's title.
    """

    n: int
    id: int
    path: str
    page: int
    start: int
    end: int
    quote: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question.

    Attributes:
        text: the answer, with ``[n]`` where it rests on citation n.
        found: whether the documents answer: without a language model by the measured threshold, with one when its
            answer rests on at least one passage and does not say that the passages lack it.
        citations: in the order of their numbers.
        model: the language model that wrote the text; None where sentences are quoted.
        notes: what the user should know, one sentence each.
        nearest: where nothing answers, the best places of the search, which are no answer; not in the JSON.
    """

    text: str
    found: bool
    citations: tuple[Citation, ...] = ()
    model: str | None = None
    notes: tuple[str, ...] = ()
    nearest: tuple[Citation, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Give the object that ``lmk-rag ask --json`` prints."""
        keys = ("n", "id", "path", "page", "start", "end", "quote")
        return {
            "answer": self.text,
            "found": self.found,
            "citations": [{key: getattr(each, key) for key in keys} for each in self.citations],
            "model": self.model,
        }
