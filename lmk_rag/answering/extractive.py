"""The answer without a language model: the sentences that answer best, quoted."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from indexes.collection import Collection
from indexes.filters import Filter
from lmk_rag.answering.followup import own_terms
from lmk_rag.answering.records import NOT_FOUND, Answer, Citation
from lmk_rag.answering.sentences import Sentence, plain, score_sentences
from lmk_rag.answering.terms import QuestionTerms
from lmk_rag.answering.threshold import answerable
from lmk_rag.passages import Passage, from_terms
from lmk_rag.search import Results, Searcher

_MOST_QUOTED = 3
_MOST_NEAR = 3
_NUMBERS = re.compile(r"\s*\[\d+\]\s*")
_BY_WORDS = 2
"""Passages of each document that are chosen by the question's words alone, beside those of the search."""
_DEFINITION = 300
"""Code points from where a definition begins: the signature of a function may be long."""
_SAME_WORDS = 0.8
_NEAR_BEST = 0.2
"""How far below the best sentence's score another may stand to be quoted beside it."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a search found for a question.

    Attributes:
        results: the hits.
        passages: of each hit, where it matches by evidence, where the question's words stand together, and where it
            may say what a thing is that is asked for, by the document's id.
        pages: the texts of each hit's pages, by the document's id.
        terms: the question's.
        sentences: those of the passages, best first.
    """

    results: Results
    passages: Mapping[int, Sequence[Passage]]
    pages: Mapping[int, Sequence[str]]
    terms: QuestionTerms
    sentences: Sequence[Sentence]


def look(searcher: Searcher, question: str, k: int = 4, filter: Filter | None = None, topic: str = "") -> Findings:
    """Search for a question and score the sentences of the passages.

    Args:
        searcher: over the collection.
        question: one that stands alone, or with a topic a follow-up.
        k: documents looked at, at least 1.
        filter: only documents that it lets through.
        topic: what a follow-up is about, in the words of the questions before.
    """
    with searcher.collection.snapshot():
        results = searcher.search(f"{topic} {question}" if topic else question, k=k, filter=filter)
        pages = {hit.id: searcher.collection.page_texts(hit.id) for hit in results.hits}
        terms = QuestionTerms(searcher.collection, question, topic)
    passages = {
        hit.id: [*hit.passages, *from_terms(pages[hit.id], terms.terms, _BY_WORDS), *_defining(pages[hit.id], terms)]
        for hit in results.hits
    }
    return Findings(results, passages, pages, terms, score_sentences(searcher, results, passages, pages, terms))


def _defining(pages: Sequence[str], terms: QuestionTerms) -> Iterator[Passage]:
    """Point to where a document may say what the question asks the meaning of."""
    for page, start in terms.definition.places(pages) if terms.definition else ():
        text = pages[page - 1][start : start + _DEFINITION]
        yield Passage(page, start, start + len(text), text, 0.0)


def narrow(findings: Findings, collection: Collection, question: str, said: str) -> Findings:
    """Leave the sentences that a follow-up can mean: those that name what it names, and were not quoted before.

    Args:
        findings: of the follow-up and its topic.
        collection: that was searched.
        question: the follow-up as it was asked.
        said: the answer before.
    """
    own = QuestionTerms(collection, question) if own_terms(question) else None
    quoted = [each for each in _NUMBERS.split(said) if each]
    left = [
        each
        for each in findings.sentences
        if (own is None or own.share(each.text) > 0) and not _told(plain(each.text), quoted)
    ]
    return replace(findings, sentences=left)


def _told(text: str, quoted: Sequence[str]) -> bool:
    """Whether one of the quotes says what a sentence says, whether or not with the signature in front of it."""
    return any(text in each or each in text or _alike(text, each) for each in quoted)


def quote(findings: Findings) -> Answer:
    """Quote the best sentences, one to three, in reading order; or say that the documents do not answer."""
    if not answerable(findings):
        return Answer(NOT_FOUND, found=False, notes=findings.results.notes, nearest=nearest(findings))
    least = findings.sentences[0].score - _NEAR_BEST
    best: list[Sentence] = []
    for each in findings.sentences:
        if each.score < least or len(best) == _MOST_QUOTED:
            break
        says = each.bonus >= 0 or not best  # a heading or code only where nothing is better
        if says and not _told(plain(each.text), [plain(other.text) for other in best]):
            best.append(each)
    best.sort(key=lambda each: (each.hit.rank, each.page, each.start))
    citations = tuple(
        Citation(n, each.hit.id, each.hit.path, each.page, each.start, each.end, each.text, each.hit.title)
        for n, each in enumerate(best, start=1)
    )
    text = " ".join(f"{plain(each.quote)} [{each.n}]" for each in citations)
    return Answer(text, found=True, citations=citations, notes=findings.results.notes)


def nearest(findings: Findings) -> tuple[Citation, ...]:
    """Point to the best passage of each of the best documents: what to show where nothing answers."""
    best = [(hit, hit.passages[0]) for hit in findings.results.hits if hit.passages][:_MOST_NEAR]
    return tuple(
        Citation(n, hit.id, hit.path, passage.page, passage.start, passage.end, passage.text, hit.title)
        for n, (hit, passage) in enumerate(best, start=1)
    )


def _alike(one: str, other: str) -> bool:
    """Whether two sentences are the same but for a few words or marks: one file in two formats, two editions."""
    words, others = (set(re.findall(r"\w+", text.casefold())) for text in (one, other))
    return len(words & others) >= _SAME_WORDS * len(words | others)
