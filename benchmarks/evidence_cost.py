"""What keeping evidence small costs: nDCG@10 of every landmark and of those that are kept, in float32 and in int8.

    python benchmarks/evidence_cost.py rfc --split dev [--model FOLDER] [--ratio 1.6] [--limit N]

Documents are scored by evidence alone (MaxSim), where any loss shows most. The scores of each batch of documents are
kept in the evaluation's cache folder: a run that was stopped goes on where it was.
"""

import argparse
import hashlib
import json
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lmk_rag.encoding.encoder import Embedding, Encoder
from lmk_rag.evaluation import beir, metrics
from lmk_rag.evaluation.cli import cache_folder
from lmk_rag.evaluation.systems import Options, best_of, load_encoder
from lmk_rag.evidence import EVIDENCE_RATIO, fitting, query_vectors, store
from lmk_rag.indexing import batches

FloatArray = npt.NDArray[np.float32]

VARIANTS = ("all landmarks, float32", "kept, float32", "kept, int8")
_CHARACTERS = 400_000  # encoded at once


def scores(dataset: beir.Dataset, encoder: Encoder, ratio: float, cache: Path) -> dict[str, FloatArray]:
    """Score every document for every query by each variant's evidence: float32 (queries, documents), -1 to 1."""
    told = {key: value for key, value in encoder.fingerprint().items() if key != "model"}
    digest = hashlib.sha256(json.dumps([told, ratio, sorted(dataset.queries.items())]).encode()).hexdigest()
    database = sqlite3.connect(cache / f"evidence-{digest[:24]}.sqlite")
    database.execute("CREATE TABLE IF NOT EXISTS scores (text TEXT PRIMARY KEY, made BLOB) WITHOUT ROWID")
    digests = {
        key: hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for key, text in dataset.corpus.items()
    }
    known = {row[0] for row in database.execute("SELECT text FROM scores")}
    missing = {key: text for key, text in dataset.corpus.items() if digests[key] not in known}
    asked = [query_vectors(each.evidence) for each in encoder.encode_queries(list(dataset.queries.values()))]
    for made in _scored(missing, encoder, ratio, asked):
        with database:
            database.executemany(
                "INSERT OR REPLACE INTO scores VALUES (?, ?)",
                ((digests[key], row.tobytes()) for key, row in made.items()),
            )
    rows = dict(database.execute("SELECT text, made FROM scores"))
    database.close()
    found = [np.frombuffer(rows[digests[key]], np.float32).reshape(len(VARIANTS), -1) for key in dataset.corpus]
    return {name: np.stack([each[place] for each in found], axis=1) for place, name in enumerate(VARIANTS)}


def _scored(
    texts: Mapping[str, str], encoder: Encoder, ratio: float, asked: list[FloatArray]
) -> Iterator[dict[str, FloatArray]]:
    """Give the scores of a batch of documents after the other, float32 (variants, queries) each."""
    stacked = np.concatenate(asked)
    starts = np.cumsum([0, *(len(each) for each in asked[:-1])])
    counts = np.array([len(each) for each in asked], np.float32)
    done = 0
    for batch in batches(texts, lambda key: len(texts[key]), _CHARACTERS):
        embeddings = encoder.encode_documents([texts[key] for key in batch])
        yield {
            key: np.stack(
                [
                    np.add.reduceat((stacked @ vectors.T).max(axis=1), starts) / counts
                    for vectors in _variants(embedding, texts[key], ratio)
                ]
            ).astype(np.float32)
            for key, embedding in zip(batch, embeddings, strict=True)
        }
        done += len(batch)
        print(f"documents: {done}/{len(texts)}", file=sys.stderr, flush=True)


def _variants(embedding: Embedding, text: str, ratio: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    kept = store(embedding, text, ratio)
    return embedding.evidence, fitting(embedding, text, ratio)[0], kept.evidence * kept.scales[:, None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", help="a BEIR folder, or a name such as rfc")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--full", action="store_true", help="all documents of the split")
    parser.add_argument("--model", help="by default the shipped adapters")
    parser.add_argument("--ratio", type=float, default=EVIDENCE_RATIO, help="bytes a byte of text")
    parser.add_argument("--limit", type=int, help="a fixed draw of so many documents")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--cache", type=Path, default=cache_folder())
    arguments = parser.parse_args()
    dataset = beir.load(beir.find(arguments.dataset, arguments.split, full=arguments.full), arguments.split)
    dataset = dataset.limited(arguments.limit) if arguments.limit else dataset
    arguments.cache.mkdir(parents=True, exist_ok=True)
    encoder = load_encoder("lmk", Options(cache=arguments.cache, model=arguments.model, device=arguments.device))
    made = scores(dataset, encoder, arguments.ratio, arguments.cache)
    queries, keys, groups = tuple(dataset.queries), tuple(dataset.corpus), metrics.groups_of(dataset.qrels)
    values = {
        name: metrics.measure(dataset.qrels, best_of(each, queries, keys))["ndcg@10"] for name, each in made.items()
    }
    print(f"{dataset.name}: {len(keys)} documents, {len(queries)} queries, ratio {arguments.ratio}\n")
    print("| evidence | nDCG@10 | 95 % | difference to float32 of the same vectors | p |\n|---|---:|---:|---:|---:|")
    for name, of_queries in values.items():
        low, high = metrics.interval(of_queries, groups)
        difference, p = metrics.paired(of_queries, values["kept, float32"], groups)
        print(f"| {name} | {metrics.mean(of_queries):.4f} | {low:.3f} to {high:.3f} | {difference:+.4f} | {p:.4f} |")


if __name__ == "__main__":
    main()
