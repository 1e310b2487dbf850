"""What the granularity costs and gives: one landmark adapter, used with 16 to 256 tokens a landmark.

    python benchmarks/granularity.py rfc --split dev --limit 150 --max-tokens 2048 [--model FOLDER]

Prints nDCG@10 of the one vector and of the best landmark, and how many landmarks there are.
"""

import argparse
import warnings

from rich.console import Console
from rich.table import Table

from lmk_rag.encoding.base_model import ModelWarning
from lmk_rag.encoding.encoder import Encoder
from lmk_rag.evaluation import beir, metrics
from lmk_rag.evaluation.cli import cache_folder
from lmk_rag.evaluation.systems import best_evidence, best_of
from lmk_rag.evaluation.vectors import VectorCache

GRANULARITIES = (16, 32, 64, 128, 256)


def measured(dataset: beir.Dataset, encoder: Encoder) -> tuple[float, float, int]:
    """nDCG@10 by the vector, by the best landmark, and the number of landmarks."""
    caches = [
        VectorCache(cache_folder(), encoder.fingerprint(), evidence=True),
        VectorCache(cache_folder(), {**encoder.fingerprint(), "side": "query"}, evidence=False),
    ]
    documents = caches[0].get(dataset.corpus, encoder.encode_documents)
    queries = caches[1].get(dataset.queries, encoder.encode_queries)
    for cache in caches:
        cache.close()
    scores = [queries.matrix @ documents.matrix.T, best_evidence(queries.matrix, documents)]
    vector, best = (
        metrics.mean(metrics.measure(dataset.qrels, best_of(each, queries.keys, documents.keys))["ndcg@10"])
        for each in scores
    )
    return vector, best, len(documents.evidence)


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description="nDCG@10 of landmark pooling by granularity.")
    parser.add_argument("dataset", help="a BEIR folder, or a name such as rfc")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--limit", type=int, help="a fixed draw of so many documents")
    parser.add_argument("--max-tokens", type=int)
    parser.add_argument("--model", default="default")
    options = parser.parse_args()
    name = options.dataset if options.dataset in beir.NAMES else None
    dataset = beir.load(beir.find(options.dataset, options.split, full=False), options.split, name)
    if options.limit:
        dataset = dataset.limited(options.limit)
    table = Table("granularity", "one vector", "best landmark", "landmarks", title=f"{options.dataset}: nDCG@10")
    for granularity in GRANULARITIES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # that it is made for another granularity is the point
            encoder = Encoder.load(options.model, "lmk", granularity, max_tokens=options.max_tokens)
        vector, best, landmarks = measured(dataset, encoder)
        table.add_row(str(granularity), f"{vector:.3f}", f"{best:.3f}", f"{landmarks:,}")
    Console().print(table)


if __name__ == "__main__":
    main()
