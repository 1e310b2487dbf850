"""Search side by side: BM25, LangChain's usual chunks, each pooling's one vector, and ours with evidence and BM25.

    python benchmarks/search_quality.py rfc [--split test] [--limit N] [--json FILE]

DATASET is what `lmk-rag eval` takes: rfc, python-docs, linux-docs, passkey, needle, passkey-32768, a BEIR folder. Every
query is asked alone, as a user would; it is embedded for each system anew, and the clock runs from its text to 100
ranked documents (folding near copies and finding passages are not in it). Embeddings and answers are kept in the
evaluation's cache folder, the answers by the queries, the models and the source of this package: a run that was stopped
goes on, and what has changed is asked anew.

- bm25: bm25s with its defaults.
- chunks: RecursiveCharacterTextSplitter 1000/200, all-MiniLM-L6-v2 under mean, FAISS flat; a document counts as its
  best chunk.
- lmk, mean, cls: one vector a document, by the shipped adapters.
- lmk+evidence, hybrid, hybrid+evidence: this package's search.

Bytes are those that a system keeps beside the text itself, its evidence vectors among them. Seconds of indexing are
those of the embedding as it was done, whatever else the machine did then, and of filling the index; for ours, that is
the whole collection with all poolings and the full text.
"""

import argparse
import hashlib
import itertools
import json
import statistics
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import indexes
import lmk_rag
from indexes.collection import Collection
from lmk_rag.evaluation import beir, metrics, searched
from lmk_rag.evaluation.cli import cache_folder, parts_of
from lmk_rag.evaluation.extras import require
from lmk_rag.evaluation.kept import kept_rows
from lmk_rag.evaluation.report import compare
from lmk_rag.evaluation.systems import (
    DEPTH,
    Options,
    Run,
    character_chunks,
    load_encoder,
    token_lengths,
    untrained_base,
)
from lmk_rag.evaluation.vectors import VectorCache
from lmk_rag.search import Searcher

POOLINGS = ("lmk", "mean", "cls")
SEARCHES = {
    "lmk": ("dense", "lmk", False),
    "mean": ("dense", "mean", False),
    "cls": ("dense", "cls", False),
    "lmk+evidence": ("dense", "lmk", True),
    "hybrid": ("hybrid", "lmk", False),
    "hybrid+evidence": ("hybrid", "lmk", True),
}
"""By system: mode, pooling, evidence, as :meth:`lmk_rag.search.Searcher.rank` takes them."""
SYSTEMS = ("bm25", "chunks", *SEARCHES)

_BYTES_OF_SCALE = 4

Scores = dict[str, float]


class System(ABC):
    """An index over a data set: what it weighs, and what it answers.

    Attributes:
        vectors: in the index that is searched.
        evidence: vectors beside it, of the candidates' landmarks.
        bytes: kept beside the text.
        seconds: that indexing took.
    """

    vectors = 0
    evidence = 0
    bytes = 0
    seconds = 0.0

    @abstractmethod
    def ask(self, query: str) -> Scores:
        """Give the scores of the best documents, 100 or more where there are as many."""


class Words(System):
    """bm25s with its defaults."""

    def __init__(self, dataset: beir.Dataset) -> None:
        self._bm25s, self._keys = require("bm25s"), tuple(dataset.corpus)
        began = time.monotonic()
        tokens = self._bm25s.tokenize(list(dataset.corpus.values()), stopwords="en", show_progress=False)
        self._index = self._bm25s.BM25()
        self._index.index(tokens, show_progress=False)
        self.seconds = time.monotonic() - began
        with tempfile.TemporaryDirectory() as folder:
            self._index.save(folder)
            self.bytes = sum(file.stat().st_size for file in Path(folder).iterdir())

    def ask(self, query: str) -> Scores:
        """Give BM25 scores above 0."""
        asked = self._bm25s.tokenize([query], stopwords="en", show_progress=False, return_ids=False)
        rows, scores = self._index.retrieve(asked, k=min(DEPTH, len(self._keys)), show_progress=False)
        return {self._keys[at]: float(score) for at, score in zip(rows[0], scores[0], strict=True) if score > 0}


class Chunks(System):
    """Chunks of 1,000 characters, the base's mean, FAISS flat, a document by its best chunk."""

    def __init__(self, dataset: beir.Dataset, options: Options) -> None:
        import faiss

        self._encoder = untrained_base(options)
        parts = {key: character_chunks(text) for key, text in dataset.corpus.items()}
        self._owners = [key for key, chunks in parts.items() for _ in chunks]
        self.vectors = len(self._owners)
        cache = VectorCache(options.cache, self._encoder.fingerprint(), evidence=False)
        texts = {f"{key}\0{number}": chunk for key, chunks in parts.items() for number, chunk in enumerate(chunks)}
        embedded = cache.get(texts, self._encoder.encode_documents, _told("chunks"))
        cache.close()
        began = time.monotonic()
        self._index = faiss.IndexFlatIP(embedded.matrix.shape[1])
        self._index.add(embedded.matrix)
        self.seconds = embedded.seconds + time.monotonic() - began
        self.bytes = len(faiss.serialize_index(self._index))

    def ask(self, query: str) -> Scores:
        """Give cosines of the best chunks."""
        vector = self._encoder.encode_queries([query])[0].vector[None]
        depth = 10 * DEPTH
        while True:
            cosines, rows = self._index.search(vector, min(depth, self.vectors))
            best: Scores = {}
            for cosine, row in zip(cosines[0].tolist(), rows[0].tolist(), strict=True):
                best.setdefault(self._owners[row], cosine)
            if len(best) >= DEPTH or depth >= self.vectors:
                return best
            depth *= 4


class Ours(System):
    """One of :data:`SEARCHES` in a collection that holds all poolings."""

    def __init__(self, name: str, searcher: Searcher, keys: Mapping[int, str], seconds: Mapping[str, float]) -> None:
        self._searcher, self._keys = searcher, keys
        self._mode, self._pooling, self._evidence = SEARCHES[name]
        self.vectors = len(keys)
        sizes = searcher.collection.sizes()
        of_pooling = sizes["encoders"][self._pooling]
        self.bytes = of_pooling["vectors"] + of_pooling["index"]
        self.seconds = seconds[self._pooling] + seconds["filling"]
        if self._evidence:
            self.bytes += sum(of_pooling[kind] for kind in ("evidence", "scales", "spans"))
            self.evidence = of_pooling["scales"] // _BYTES_OF_SCALE
        if self._mode == "hybrid":
            self.bytes += sizes["fulltext"]

    def ask(self, query: str) -> Scores:
        """Give the scores of :meth:`lmk_rag.search.Searcher.rank`."""
        ranking = self._searcher.rank(query, DEPTH, self._mode, self._pooling, self._evidence)
        return {self._keys[number]: score for number, score in ranking.best()[:DEPTH]}


def indexed(dataset: beir.Dataset, options: Options) -> tuple[Collection, dict[int, str], dict[str, float]]:
    """Fill a collection with all poolings where that is not done; gives keys by id, and seconds by pooling."""
    encoders, seconds = [], {}
    for pooling in POOLINGS:
        loaded = load_encoder(pooling, options)
        cache = VectorCache(options.cache, loaded.fingerprint(), evidence=pooling == searched.POOLING)
        seconds[pooling] = cache.get(dataset.corpus, loaded.encode_documents, _told(pooling)).seconds
        encoders.append(searched.CachedEncoder(loaded, cache))
    folder = options.cache / f"collection-quality-{_digest(*(searched.digest(dataset, each) for each in encoders))}"
    collection = Collection.open(folder, create=True)
    began = time.monotonic()
    keys, _ = searched.index(collection, dataset, encoders, "index", lambda *told: _told(told[0])(*told[1:]))
    file = folder / "seconds.json"
    if not file.exists():
        file.write_text(json.dumps(time.monotonic() - began), encoding="utf-8")
    return collection, keys, {**seconds, "filling": float(json.loads(file.read_text(encoding="utf-8")))}


def systems_of(dataset: beir.Dataset, options: Options) -> Iterator[tuple[str, System]]:
    """Make each system in turn; one is done with before the next is made."""
    yield "bm25", Words(dataset)
    yield "chunks", Chunks(dataset, options)
    collection, keys, seconds = indexed(dataset, options)
    with collection:
        for name in SEARCHES:  # a searcher keeps the queries that it has embedded: each system gets its own
            yield name, Ours(name, Searcher(collection, options.device), keys, seconds)


def answers(name: str, system: System, dataset: beir.Dataset, file: Path) -> tuple[dict[str, Scores], list[float]]:
    """Ask every query that is not answered in the file; gives scores by query, and each query's milliseconds."""
    rows = kept_rows(file)
    missing = {query: text for query, text in dataset.queries.items() if query not in rows}
    if missing:
        system.ask(next(iter(missing.values())))  # what is loaded at the first query is not what a query costs
    with file.open("a", encoding="utf-8") as out:
        for done, (query, text) in enumerate(missing.items(), start=1):
            began = time.perf_counter()
            scores = system.ask(text)
            took = (time.perf_counter() - began) * 1000
            rows[query] = {
                "query": query,
                "scores": {key: round(score, 6) for key, score in scores.items()},
                "ms": took,
            }
            out.write(json.dumps(rows[query]) + "\n")
            _told(f"{name}, queries")(done, len(missing))
    found = {query: dict(rows[query]["scores"]) for query in dataset.queries}
    return found, [float(rows[query]["ms"]) for query in dataset.queries]


def run_all(dataset: beir.Dataset, options: Options) -> tuple[dict[str, Run], dict[str, dict[str, Any]]]:
    """Let all systems answer a data set; gives their runs, and what each weighs and took."""
    runs, costs = {}, {}
    encoders = [untrained_base(options), *(load_encoder(pooling, options) for pooling in POOLINGS)]
    told = [searched.digest(dataset, each) for each in encoders]
    digest = _digest(json.dumps(dataset.queries, sort_keys=True), _source(), *told)
    for name, system in systems_of(dataset, options):
        file = options.cache / f"quality-{digest}-{name}.jsonl"
        found, milliseconds = answers(name, system, dataset, file)
        runs[name] = Run(found, system.seconds, 0)
        costs[name] = {
            "vectors": system.vectors, "evidence": system.evidence, "bytes": system.bytes, "seconds": system.seconds,
            "ms": milliseconds,
        }  # fmt: skip
    return runs, costs


def _source() -> str:
    """Give all source that has a say in what is found."""
    folders = (Path(__file__).parent, Path(lmk_rag.__file__).parent, Path(indexes.__file__).parent)
    files = sorted(file for folder in folders for file in folder.rglob("*.py"))
    return "".join(file.read_text(encoding="utf-8") for file in files)


def _digest(*told: str) -> str:
    return hashlib.sha256("\0".join(told).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def measured(name: str, parts: list[beir.Dataset], options: Options) -> dict[str, Any]:
    """Compare all systems on a data set of one part or several; what a system costs is added up over the parts."""
    done = [run_all(part, options) for part in parts]
    by_part = {id(part): runs for part, (runs, _) in zip(parts, done, strict=True)}
    lengths = {key: length for part in parts for key, length in token_lengths(part).items()}
    report = compare(name, parts, SYSTEMS, lambda system, part: by_part[id(part)][system], lengths)
    for row in report["results"]:
        costs = [of[row["system"]] for _, of in done]
        times = list(itertools.chain.from_iterable(each["ms"] for each in costs))
        row |= {key: sum(each[key] for each in costs) for key in ("vectors", "evidence", "bytes", "seconds")}
        row |= {"p50": statistics.median(times), "p95": float(np.percentile(times, 95))}
        row["by_part"] = {
            part.name: metrics.mean(metrics.measure(part.qrels, by_part[id(part)][row["system"]].scores)["recall@1"])
            for part in parts
        }
        del row["tokens"]
    report["text"] = sum(len(text.encode("utf-8", "replace")) for part in parts for text in part.corpus.values())
    return report


def show(report: Mapping[str, Any]) -> str:
    """Set the systems side by side, as Markdown."""
    lines = [
        "| system | nDCG@10 | 95 % | recall@100 | MRR@10 | index vectors | evidence vectors | bytes / text "
        "| indexing, s | p50, ms | p95, ms |",
        "|---|" + "---:|" * 10,
    ]
    for row in report["results"]:
        low, high = row["ci95"]["ndcg@10"]
        cells = [
            row["system"], f"{row['ndcg@10']:.3f}", f"{low:.3f} to {high:.3f}", f"{row['recall@100']:.3f}",
            f"{row['mrr@10']:.3f}", f"{row['vectors']:,}", f"{row['evidence']:,}",
            f"{row['bytes'] / report['text']:.2f}",
            f"{row['seconds']:,.0f}", f"{row['p50']:.1f}", f"{row['p95']:.1f}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    tables = {"nDCG@10 by kind of query": "by_kind", "nDCG@10 by tokens of the document, up to": "by_length"}
    if any(len(row["by_part"]) > 1 for row in report["results"]):
        tables["found at rank 1"] = "by_part"
    for title, key in tables.items():
        present = {name for row in report["results"] for name in row[key]}
        order = list(metrics.LENGTH_NAMES) if key == "by_length" else list(report["results"][0][key])
        columns = [name for name in order if name in present]
        if columns:
            lines += ["", f"| {title} | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
            lines += [f"| {row['system']} | " + _cells(row[key], columns) + " |" for row in report["results"]]
    lines += ["", "| nDCG@10 of hybrid+evidence minus | difference | p |", "|---|---:|---:|"]
    for pair in report["paired"]:
        if pair["b"] == "hybrid+evidence":
            lines.append(f"| {pair['a']} | {round(-pair['difference'], 3) + 0.0:+.3f} | {pair['p']:.4f} |")
    return "\n".join(lines)


def _cells(values: Mapping[str, Any], columns: list[str]) -> str:
    found = [values.get(name, 0.0) for name in columns]
    return " | ".join(f"{each['mean'] if isinstance(each, dict) else each:.3f}" for each in found)


def _told(what: str) -> Callable[[int, int], None]:
    def told(done: int, everything: int) -> None:
        if done % 100 == 0 or done == everything:
            print(f"{what}: {done}/{everything}", file=sys.stderr, flush=True)

    return told


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset")
    parser.add_argument("--split", default="test")
    parser.add_argument("--limit", type=int, help="a fixed draw of so many documents")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--cache", type=Path, default=cache_folder())
    parser.add_argument("--json", type=Path, help="write the whole report here too")
    arguments = parser.parse_args()
    parts = parts_of(arguments.dataset, arguments.split, full=False)
    if arguments.limit:
        parts = [part.limited(arguments.limit) for part in parts]
    arguments.cache.mkdir(parents=True, exist_ok=True)
    report = measured(arguments.dataset, parts, Options(cache=arguments.cache, device=arguments.device))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
    documents, queries = sum(len(part.corpus) for part in parts), sum(len(part.queries) for part in parts)
    print(
        f"{arguments.dataset}: {documents:,} documents, {report['text'] / 1e6:,.1f} MB of text, {queries:,} queries\n"
    )
    print(show(report))


if __name__ == "__main__":
    main()
