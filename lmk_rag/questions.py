"""A collection's own test: questions whose documents are known, answered by each pooling and measured."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexes.collection import Collection
from indexes.errors import CollectionError
from indexes.records import StoredDocument
from lmk_rag.comparison import BM25
from lmk_rag.evaluation import beir, metrics
from lmk_rag.search import Searcher

DEPTH = 100
"""Documents looked at for each question: as many as the deepest measure needs."""
_HEADINGS = ("query", "path")


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
    """Read questions from a CSV with the columns ``query`` and ``path``.

    A path may be whole, or only its end (``report.pdf``, ``2024/report.pdf``) where one document alone has that end;
    several rows of one query name several documents that answer it.

    Raises:
        ValueError: a column is missing, or no row names a document of the collection.
    """
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))
    headings = [each.strip().lower() for each in (rows[0] if rows else {}) if each]
    if not rows or any(each not in headings for each in _HEADINGS):
        raise ValueError(
            f"The file has the columns {', '.join(headings) or 'none'}: a question set needs a first line with "
            "'query,path' and a line for each question."
        )
    cleaned = [{(key or "").strip().lower(): (value or "") for key, value in row.items() if key} for row in rows]
    pairs = [(row["query"].strip(), row["path"].strip()) for row in cleaned if row["query"].strip()]
    numbered = {query: str(number) for number, query in enumerate(dict.fromkeys(query for query, _ in pairs), 1)}
    queries = {number: query for query, number in numbered.items()}
    return _matched(queries, [(numbered[query], path) for query, path in pairs], collection)


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

    Args:
        searcher: over the collection that the questions were read for.
        questions: at least one.
        names: poolings of the collection, or ``bm25``.
        progress: told how many names are done, and how many there are.

    Raises:
        CollectionError: where a pooling is not indexed.
        ValueError: where the library that measures is not installed.
    """
    qrels = {query: {str(each): 1 for each in sorted(found)} for query, found in questions.answers.items()}
    groups = metrics.groups_of(qrels)
    lengths = _lengths(searcher.collection, {each for found in questions.answers.values() for each in found})
    measured = []
    for done, name in enumerate(names, start=1):
        run = _bm25(searcher, questions.queries) if name == BM25 else _dense(searcher, questions.queries, name)
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


def _bm25(searcher: Searcher, queries: Mapping[str, str]) -> dict[str, dict[str, float]]:
    return {key: _scores(searcher.collection.fulltext(text, DEPTH)) for key, text in queries.items()}


def _dense(searcher: Searcher, queries: Mapping[str, str], pooling: str) -> dict[str, dict[str, float]]:
    record = searcher.collection.encoder(pooling)
    if record is None:
        raise CollectionError(f"{searcher.collection.path} has no {pooling} vectors: index that pooling first.")
    asked = searcher.encoder(record).encode_queries(list(queries.values()))
    index = searcher.collection.index(record)
    return {key: _scores(index.search(each.vector, DEPTH)) for key, each in zip(queries, asked, strict=True)}


def _scores(found: Iterable[tuple[int, float]]) -> dict[str, float]:
    return {str(document): score for document, score in found}
