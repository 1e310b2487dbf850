"""Would the one vector be better if its landmarks did not count alike? By place, by likeness, by how unusual they are.

    python benchmarks/landmark_weights.py rfc --split dev --limit 150

LMK pooling is the mean of the landmarks. Here the same landmarks are summed with weights; differences are to the plain
vector, by a paired test over documents.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lmk_rag.encoding.encoder import Encoder
from lmk_rag.evaluation import beir, metrics
from lmk_rag.evaluation.cli import cache_folder
from lmk_rag.evaluation.systems import best_of
from lmk_rag.evaluation.vectors import VectorCache, Vectors

Array = npt.NDArray[np.float32]


def unit(rows: Array) -> Array:
    """Scale rows to length 1."""
    scaled: Array = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return scaled


def summed(documents: Vectors, weights: Array) -> Array:
    """Give each document's weighted sum of landmarks, float32 (documents, d), of length 1."""
    starts = np.searchsorted(documents.owners, np.arange(len(documents.keys)))
    return unit(np.add.reduceat(weights[:, None] * documents.evidence.astype(np.float32), starts))


def variants(documents: Vectors) -> Iterator[tuple[str, Array]]:
    """Give each way of weighing, and the documents' vectors by it."""
    landmarks, owners = documents.evidence.astype(np.float32), documents.owners
    alike = np.ones(len(owners), dtype=np.float32)
    plain = summed(documents, alike)
    starts = np.searchsorted(owners, np.arange(len(documents.keys)))
    number = np.arange(len(owners)) - starts[owners]
    place = number / np.bincount(owners)[owners]
    likeness = (landmarks * plain[owners]).sum(axis=1)
    unusual = 1 - landmarks @ unit(landmarks.mean(axis=0, keepdims=True))[0]
    yield "the mean, as it is", documents.matrix
    yield "the mean of landmarks scaled to length 1", plain
    for factor in (1, 2, 4):
        yield f"by place, exp(-{factor} place)", summed(documents, np.exp(-factor * place).astype(np.float32))
    for first, factor in ((16, 2), (16, 4), (32, 2), (32, 4)):
        weights = np.where(number < first, factor, 1).astype(np.float32)
        yield f"the first {first} count {factor}", summed(documents, weights)
    for factor in (-4, -2, 2, 4):
        yield f"by likeness to the whole, exp({factor} cosine)", summed(documents, np.exp(factor * likeness))
    for power in (1, 2, 4):
        yield f"by distance from the collection's mean, power {power}", summed(documents, unusual**power)
    yield "the collection's mean taken off", unit(plain - documents.matrix.mean(axis=0))


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", help="a BEIR folder, or a name such as rfc")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--limit", type=int, help="a fixed draw of so many documents")
    parser.add_argument("--model", default="default")
    options = parser.parse_args()
    dataset = beir.load(beir.find(options.dataset, options.split, full=False), options.split)
    dataset = dataset.limited(options.limit) if options.limit else dataset
    encoder = Encoder.load(options.model, "lmk")
    kept = VectorCache(cache_folder(), encoder.fingerprint(), evidence=True)
    asked = VectorCache(cache_folder(), {**encoder.fingerprint(), "side": "query"}, evidence=False)
    documents = kept.get(dataset.corpus, encoder.encode_documents)
    queries = asked.get(dataset.queries, encoder.encode_queries)
    groups = metrics.groups_of(dataset.qrels)
    first: metrics.Values = {}
    print("| landmarks weighed | nDCG@10 | difference | p |\n|---|---:|---:|---:|")
    for name, matrix in variants(documents):
        run = best_of(queries.matrix @ matrix.T, queries.keys, documents.keys)
        values = metrics.measure(dataset.qrels, run)["ndcg@10"]
        first = first or values
        difference, p = metrics.paired(values, first, groups)
        print(f"| {name} | {metrics.mean(values):.3f} | {difference:+.4f} | {p:.3f} |")


if __name__ == "__main__":
    main()
