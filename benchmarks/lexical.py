"""BM25 on a development split: bm25s, FTS5's own, and ours with and without other forms of words and neighbours.

    python benchmarks/lexical.py rfc --split dev [--limit N]

No vectors are made. Differences are to bm25s, by a paired test over documents.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from indexes import bm25
from indexes.collection import Collection
from indexes.query import Words
from indexes.records import Document
from lmk_rag.evaluation import beir, metrics
from lmk_rag.evaluation.systems import DEPTH, Options, run_system

SETTINGS = {
    "words alone, k1 = 1.2": (1.2, 0.0, 0.0),
    "words alone": (bm25.K1, 0.0, 0.0),
    "words and other forms": (bm25.K1, bm25.INFLECTED, 0.0),
    "words and neighbours": (bm25.K1, 0.0, bm25.PAIR),
    "ours": (bm25.K1, bm25.INFLECTED, bm25.PAIR),
}
"""K1, INFLECTED and PAIR."""

Ask = Callable[[Words], Iterable[tuple[int, float]]]


def fts5(collection: Collection, words: Words) -> list[tuple[int, float]]:
    """Rank by FTS5's own function, over the same terms."""
    found = collection._database.rows(
        "SELECT rowid, -bm25(fulltext) AS score FROM fulltext WHERE fulltext MATCH ? ORDER BY score DESC LIMIT ?",
        (" OR ".join(f'"{term}"' for term in words.terms), DEPTH),
    )
    return [(number, score) for number, score in found]


def asked(collection: Collection, dataset: beir.Dataset, ask: Ask) -> tuple[metrics.Scores, float]:
    """Ask every query; gives scores by query, and the median of the milliseconds."""
    keys = {document.id: document.external_id for document in collection.documents()}
    run, times = {}, []
    for query, text in dataset.queries.items():
        began = time.perf_counter()
        found = list(ask(collection.parse(text)))
        times.append((time.perf_counter() - began) * 1000)
        run[query] = {keys[number]: score for number, score in found}
    return run, statistics.median(times)


def systems(dataset: beir.Dataset) -> Iterator[tuple[str, metrics.Scores, float]]:
    """Give each system's name, scores and milliseconds a query."""
    run = run_system("bm25", dataset, Options(cache=Path()))
    yield "bm25s, its defaults", run.scores, 0.0
    with tempfile.TemporaryDirectory() as folder, Collection.open(Path(folder), create=True) as collection:
        with collection.write("lexical"), collection.transaction() as transaction:
            for key, text in dataset.corpus.items():
                transaction.put(Document(external_id=key, pages=(text,), source="lexical"), {})
        yield "FTS5's bm25()", *asked(collection, dataset, lambda words: fts5(collection, words))
        for name, (bm25.K1, bm25.INFLECTED, bm25.PAIR) in SETTINGS.items():
            yield name, *asked(collection, dataset, lambda words: collection.fulltext(words, DEPTH))


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--limit", type=int, help="a fixed draw of so many documents")
    arguments = parser.parse_args()
    dataset = beir.load(beir.find(arguments.dataset, arguments.split, full=False), arguments.split)
    dataset = dataset.limited(arguments.limit) if arguments.limit else dataset
    groups = metrics.groups_of(dataset.qrels)
    kinds = sorted(set(dataset.kinds.values()))
    print(f"{dataset.name}: {len(dataset.corpus):,} documents, {len(dataset.queries):,} queries\n")
    print(f"| | {''.join(f'{kind} | ' for kind in kinds)}all | 95 % | difference | p | ms a query |")
    print("|---|" + "---:|" * (5 + len(kinds)))
    first: metrics.Values = {}
    for name, run, milliseconds in systems(dataset):
        values = metrics.measure(dataset.qrels, run)["ndcg@10"]
        first = first or values
        low, high = metrics.interval(values, groups)
        difference, p = metrics.paired(values, first, groups)
        of_kinds = metrics.by_kind(values, dataset.kinds)
        cells = [name, *(f"{of_kinds.get(kind, 0.0):.3f}" for kind in kinds), f"{metrics.mean(values):.3f}"]
        cells += [f"{low:.3f} to {high:.3f}", f"{difference:+.3f}", f"{p:.4f}", f"{milliseconds:.1f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
