"""The answer without a language model: the sentences that answer best, quoted."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from indexes.collection import Collection
from indexes.filters import Filter
from lmk_rag.answering.followup import own_terms
from lmk_rag.answering.records import NOT_FOUND, Answer, Citation
from lmk_rag.answering.sentences import Sentence, score_sentences
from lmk_rag.answering.terms import QuestionTerms
from lmk_rag.answering.threshold import answerable
from lmk_rag.search import Results, Searcher

_MOST_QUOTED = 3
_SAME_WORDS = 0.8
_NEAR_BEST = 0.12
"""How far below the best sentence's score another may stand to be quoted beside it."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a search found for a question.

    Attributes:
        results: the hits.
        pages: the texts of each hit's pages, by the document's id.
        terms: the question's.
        sentences: those of the passages, best first.
    """

    results: Results
    pages: Mapping[int, Sequence[str]]
    terms: QuestionTerms
    sentences: Sequence[Sentence]


def look(searcher: Searcher, question: str, k: int = 4, filter: Filter | None = None) -> Findings:
    """Search for a question and score the sentences of the passages.

    Args:
        searcher: over the collection.
        question: one that stands alone.
        k: documents looked at, at least 1.
        filter: only documents that it lets through.
    """
    with searcher.collection.snapshot():
        results = searcher.search(question, k=k, filter=filter)
        pages = {hit.id: searcher.collection.page_texts(hit.id) for hit in results.hits}
        terms = QuestionTerms(searcher.collection, question)
    return Findings(results, pages, terms, score_sentences(searcher, results, pages, terms))


def narrow(findings: Findings, collection: Collection, question: str, said: str) -> Findings:
    """Leave the sentences that a follow-up can mean: those that name what it names, and were not quoted before.

    Args:
        findings: of the question joined with the ones before.
        collection: that was searched.
        question: the follow-up as it was asked.
        said: the answer before.
    """
    own = QuestionTerms(collection, question) if own_terms(question) else None
    left = [
        each
        for each in findings.sentences
        if _plain(each.text) not in said and (own is None or own.share(each.text) > 0)
    ]
    return replace(findings, sentences=left)


def quote(findings: Findings) -> Answer:
    """Quote the best sentences, one to three, in reading order; or say that the documents do not answer."""
    if not answerable(findings):
        return Answer(NOT_FOUND, found=False, notes=findings.results.notes)
    least = findings.sentences[0].score - _NEAR_BEST
    best: list[Sentence] = []
    for each in findings.sentences:
        if each.score < least or len(best) == _MOST_QUOTED:
            break
        if not any(_alike(each.text, other.text) for other in best):
            best.append(each)
    best.sort(key=lambda each: (each.hit.rank, each.page, each.start))
    citations = tuple(
        Citation(n, each.hit.id, each.hit.path, each.page, each.start, each.end, each.text, each.hit.title)
        for n, each in enumerate(best, start=1)
    )
    text = " ".join(f"{_plain(each.quote)} [{each.n}]" for each in citations)
    return Answer(text, found=True, citations=citations, notes=findings.results.notes)


def _alike(one: str, other: str) -> bool:
    """Whether two sentences are the same but for a few words or marks: one file in two formats, two editions."""
    words, others = (set(re.findall(r"\w+", text.casefold())) for text in (one, other))
    return len(words & others) >= _SAME_WORDS * len(words | others)


def _plain(text: str) -> str:
    return " ".join(text.split())
