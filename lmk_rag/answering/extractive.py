"""The answer without a language model: the sentences that answer best, quoted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from indexes.filters import Filter
from lmk_rag.answering.records import NOT_FOUND, Answer, Citation
from lmk_rag.answering.sentences import Sentence, score_sentences
from lmk_rag.answering.terms import QuestionTerms
from lmk_rag.answering.threshold import answerable
from lmk_rag.search import Results, Searcher

_MOST_QUOTED = 3
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


def quote(findings: Findings, said: str = "") -> Answer:
    """Quote the best sentences, one to three, in reading order; or say that the documents do not answer.

    Args:
        findings: what a search found.
        said: an earlier answer; what it quotes is not quoted again.
    """
    sentences = [each for each in findings.sentences if _plain(each.text) not in said] if said else findings.sentences
    if not sentences or not answerable(findings):
        return Answer(NOT_FOUND, found=False, notes=findings.results.notes)
    least = sentences[0].score - _NEAR_BEST
    best = [each for each in sentences if each.score >= least][:_MOST_QUOTED]
    best.sort(key=lambda each: (each.hit.rank, each.page, each.start))
    citations = tuple(
        Citation(n, each.hit.id, each.hit.path, each.page, each.start, each.end, each.text, each.hit.title)
        for n, each in enumerate(best, start=1)
    )
    text = " ".join(f"{_plain(each.quote)} [{each.n}]" for each in citations)
    return Answer(text, found=True, citations=citations, notes=findings.results.notes)


def _plain(text: str) -> str:
    return " ".join(text.split())
