"""A collection's own test: questions whose documents are known, answered by each pooling and measured."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from indexes.collection import Collection
from indexes.errors import CollectionError
from indexes.query import Words
from indexes.records import StoredDocument
from lmk_rag.candidates import Question, Ranking, by_vector, by_words
from lmk_rag.comparison import BM25
from lmk_rag.evaluation import beir, metrics
from lmk_rag.near_duplicates import Found
from lmk_rag.search import Searcher

DEPTH = 100
"""Distinct documents looked at for each question: as many as the deepest measure needs."""
_HEADINGS = ("query", "path")

Ranker = Callable[[int], Ranking]
"""Ranks that many candidates."""


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions and the documents that answer them.

    Attributes:
        queries: text of each question by its id.
        answers: for each question, the ids of the documents that answer it.
        unknown: names of documents that the collection does not have, or has more than once.
    """

    queries: Mapping[str, str]
    answers: Mapping[str, frozenset[int]]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """How well one pooling answers.

    Attributes:
        name: the pooling, or ``bm25``.
        averages: for each measure of ``lmk_rag.evaluation.metrics.MEASURES`` its average, 0 to 1.
        intervals: for each measure its 95 % bootstrap interval.
        by_length: for each class of document length in tokens, ``mean`` and ``ci95`` of nDCG@10, number of ``queries``.
    """

    name: str
    averages: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    by_length: Mapping[str, Mapping[str, Any]]

    def row(self) -> dict[str, Any]:
        """Give one row of a table: each measure with both ends of its interval."""
        cells: dict[str, Any] = {"pooling": self.name}
        for name, value in self.averages.items():
            low, high = self.intervals[name]
            cells |= {name: round(value, 4), f"{name} low": round(low, 4), f"{name} high": round(high, 4)}
        return cells


def from_csv(text: str, collection: Collection) -> Questions:
    """Read questions from a CSV with the columns ``query`` and ``path``, separated by commas or by semicolons.

    A path may be whole, or only its end (``report.pdf``, ``2024/report.pdf``) where one document alone has that end;
    several rows of one query name several documents that answer it.

    Raises:
        ValueError: a column is missing, a quote is not closed, or no row names a document of the collection.
    """
    first, *rows = _rows(text.removeprefix("\ufeff")) or [[]]
    headings = [each.strip().lower() for each in first]
    if not rows and all(each in headings for each in _HEADINGS):
        raise ValueError("The file has no questions: below the line 'query,path' it needs a line for each of them.")
    if any(each not in headings for each in _HEADINGS):
        named = ", ".join(filter(None, headings))
        raise ValueError(
            f"The file {f'has the columns {named}' if named else 'is empty'}: a question set needs a first line with "
            "'query,path' and a line for each question."
        )
    query, path = map(headings.index, _HEADINGS)
    cells = [[*map(str.strip, row), *[""] * len(headings)] for row in rows]  # a line may be short
    pairs = [(row[query], row[path]) for row in cells if row[query]]
    numbered = {query: str(number) for number, query in enumerate(dict.fromkeys(query for query, _ in pairs), 1)}
    queries = {number: query for query, number in numbered.items()}
    return _matched(queries, [(numbered[query], path) for query, path in pairs], collection)


def _rows(text: str) -> list[list[str]]:
    """Read a table's lines, but for empty ones; the first tells what separates the columns."""
    first = text.lstrip().partition("\n")[0]
    separator = ";" if first.count(";") > first.count(",") else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ValueError(
                f'The quote (") that line {line} of the file opens is not closed as it should be: put one at each end '
                'of the question or path, and write one inside of it twice ("").'
            ) from error
        if row is None:
            return rows
        if row:
            rows.append(row)


def from_beir(folder: Path, collection: Collection, split: str = "test") -> Questions:
    """Read questions from a folder in BEIR's format, whose documents have been indexed into the collection.

    An id of the corpus is looked for as a path, as a file's name and as a file's name without its ending.

    Raises:
        ValueError: no question has a document of the collection.
        FileNotFoundError: a file of the format is missing.
    """
    dataset = beir.load(folder, split)
    pairs = [(query, key) for query, grades in dataset.qrels.items() for key, grade in grades.items() if grade > 0]
    return _matched(dataset.queries, pairs, collection)


def _matched(queries: Mapping[str, str], pairs: Sequence[tuple[str, str]], collection: Collection) -> Questions:
    names = _Names(collection.documents())
    answers: dict[str, set[int]] = {}
    unknown = []
    for query, name in pairs:
        found = names.find(name)
        if found is None:
            unknown.append(name)
        else:
            answers.setdefault(query, set()).add(found)
    if not answers:
        told = f"the first is {unknown[0]!r}" if unknown else "it names none"
        raise ValueError(f"No question names a document of this collection ({told}): check the paths.")
    return Questions(
        {query: queries[query] for query in answers},
        {query: frozenset(found) for query, found in answers.items()},
        tuple(dict.fromkeys(unknown)),
    )


class _Names:
    """Documents by their path, and by each end of it that one document alone has."""

    def __init__(self, documents: Iterable[StoredDocument]) -> None:
        self._whole: dict[str, int] = {}
        self._ends: dict[str, int | None] = {}
        for document in documents:
            self._whole[document.path] = document.id
            for end in self._ends_of(document.path):
                self._ends[end] = document.id if end not in self._ends else None

    @staticmethod
    def _ends_of(path: str) -> set[str]:
        parts = path.replace("\\", "/").strip("/").split("/")
        ends = {"/".join(parts[start:]) for start in range(len(parts))}
        return ends | {parts[-1].rpartition(".")[0]} - {""}

    def find(self, name: str) -> int | None:
        whole = self._whole.get(name)
        return whole if whole is not None else self._ends.get(name.replace("\\", "/").removeprefix("./").strip("/"))


def measure(
    searcher: Searcher,
    questions: Questions,
    names: Sequence[str],
    progress: Callable[[int, int], None] | None = None,
) -> list[Measured]:
    """Let each pooling answer all questions by its document vectors alone, and measure.

    Near copies are one document, as in :func:`lmk_rag.comparison.compare`: they take one rank, and whichever of them
    is found first, it is the document that the question names.

    Args:
        searcher: over the collection that the questions were read for.
        questions: at least one.
        names: poolings of the collection, or ``bm25``.
        progress: told how many names are done, and how many there are.

    Raises:
        CollectionError: where a pooling is not indexed.
        ValueError: where the library that measures is not installed.
    """
    wanted = {query: _originals(searcher, answers) for query, answers in questions.answers.items()}
    qrels = {query: dict.fromkeys(map(str, sorted({*found.values()})), 1) for query, found in wanted.items()}
    groups = metrics.groups_of(qrels)
    lengths = _lengths(searcher.collection, {each for found in questions.answers.values() for each in found})
    measured = []
    for done, name in enumerate(names, start=1):
        asked = questions.queries
        rankers = _bm25(searcher, asked) if name == BM25 else _dense(searcher, asked, name)
        run = {query: _scores(searcher, ranker, wanted[query]) for query, ranker in rankers.items()}
        values = metrics.measure(qrels, run)
        measured.append(
            Measured(
                name,
                {key: metrics.mean(each) for key, each in values.items()},
                {key: metrics.interval(each, groups) for key, each in values.items()},
                metrics.by_length(values["ndcg@10"], groups, lengths),
            )
        )
        if progress:
            progress(done, len(names))
    return measured


def _lengths(collection: Collection, documents: set[int]) -> dict[str, int]:
    """Give the content tokens of documents, read or left out, by the first encoder that has them."""
    lengths = dict.fromkeys(map(str, documents), 0)
    for record in reversed(collection.encoders()):
        for document, stored in collection.embeddings(record.id, documents).items():
            lengths[str(document)] = stored.tokens + stored.truncated
    return lengths


def _bm25(searcher: Searcher, queries: Mapping[str, str]) -> dict[str, Ranker]:
    collection, nothing = searcher.collection, np.empty((0, 0), np.float32)
    asked = {key: Question(collection.parse(text), None, nothing.ravel(), nothing) for key, text in queries.items()}
    return {key: partial(by_words, collection, question, filter=None) for key, question in asked.items()}


def _dense(searcher: Searcher, queries: Mapping[str, str], pooling: str) -> dict[str, Ranker]:
    collection = searcher.collection
    record = collection.encoder(pooling)
    if record is None:
        raise CollectionError(f"{collection.path} has no {pooling} vectors: index that pooling first.")
    asked = searcher.encoder(record).encode_queries(list(queries.values()))
    questions = [Question(Words(()), record, each.vector, each.vector[None]) for each in asked]
    rankers = [partial(by_vector, collection, question, filter=None) for question in questions]
    return dict(zip(queries, rankers, strict=True))


def _originals(searcher: Searcher, answers: Iterable[int]) -> dict[int, int]:
    """Tell of each document that answers a question which of the others it is a near copy of; of most, itself."""
    alike = Ranking(dict.fromkeys(answers, 0.0), complete=True)
    found = searcher.distinct(lambda depth: alike, len(alike.scores))
    return {number: each.document.id for each in found for number in _ids(each)}


def _scores(searcher: Searcher, ranker: Ranker, originals: Mapping[int, int]) -> dict[str, float]:
    """Score distinct documents; one that has an answer among its near copies, or is one, stands for the answer."""
    scores: dict[str, float] = {}
    with searcher.collection.snapshot():
        for each in searcher.distinct(ranker, DEPTH):
            for number in {originals[copy] for copy in _ids(each) if copy in originals} or {each.document.id}:
                scores.setdefault(str(number), each.score)
    return scores


def _ids(found: Found) -> tuple[int, ...]:
    return (found.document.id, *(document.id for document, _, _ in found.folded))
